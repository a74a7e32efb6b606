import { Kysely, PostgresDialect, sql } from 'kysely';
import { jsonArrayFrom, jsonBuildObject, jsonObjectFrom } from 'kysely/helpers/postgres';
import pg from 'pg';

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 1 }) }) });
const go = async (q) => {
  try {
    await q;
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
await go(db.introspection.getTables());
await go(db.introspection.getSchemas());
const d = db.withSchema('entities');
await go(d.selectFrom('customer').selectAll().orderBy('id').execute());
await go(
  d
    .selectFrom('customer')
    .select([
      'id',
      (eb) =>
        jsonArrayFrom(
          eb
            .selectFrom('order')
            .select(['order.id', 'order.amount'])
            .whereRef('order.customer_id', '=', 'customer.id')
            .orderBy('order.id'),
        ).as('orders'),
    ])
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select([
      'order.id',
      (eb) =>
        jsonObjectFrom(
          eb
            .selectFrom('customer')
            .select(['customer.id', 'customer.name'])
            .whereRef('customer.id', '=', 'order.customer_id'),
        ).as('customer'),
    ])
    .orderBy('order.id')
    .limit(5)
    .execute(),
);
await go(
  d
    .selectFrom('customer')
    .select((eb) => ['id', jsonBuildObject({ name: eb.ref('name'), region: eb.ref('region') }).as('j')])
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .innerJoin('customer', 'customer.id', 'order.customer_id')
    .select(['order.id', 'customer.name as customer_name'])
    .where('order.status', 'in', ['new', 'paid'])
    .where((eb) => eb.or([eb('order.quantity', '>', 20), eb('order.note', 'is', null)]))
    .orderBy('order.id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select(({ fn }) => [
      'region',
      fn.countAll().as('n'),
      fn.sum('amount').as('total'),
      fn.avg('quantity').as('mean'),
      fn.count('customer_id').distinct().as('who'),
      fn.max('placed_at').as('last'),
    ])
    .groupBy('region')
    .having(({ fn }) => fn.countAll(), '>', 2)
    .orderBy('region')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select((eb) => [
      'id',
      eb.fn
        .agg('row_number')
        .over((ob) => ob.partitionBy('customer_id').orderBy('placed_at'))
        .as('rn'),
    ])
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select((eb) => [
      'id',
      eb.case().when('quantity', '<', 10).then('small').else('big').end().as('size'),
      eb.fn.coalesce('note', eb.val('-')).as('note'),
    ])
    .orderBy('id')
    .limit(10)
    .execute(),
);
await go(
  d
    .with('big', (q) => q.selectFrom('order').selectAll().where('amount', '>', 100))
    .selectFrom('big')
    .select(({ fn }) => [fn.countAll().as('n')])
    .execute(),
);
await go(
  d
    .selectFrom('customer')
    .distinctOn('region')
    .select(['region', 'id'])
    .orderBy('region')
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('customer')
    .select('id')
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('event')
          .select('event.id')
          .whereRef('event.customer_id', '=', 'customer.id')
          .where('event.kind', '=', 'buy'),
      ),
    )
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('customer')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('order')
          .select(['order.id as oid', 'order.amount'])
          .whereRef('order.customer_id', '=', 'customer.id')
          .orderBy('order.amount', 'desc')
          .limit(1)
          .as('o'),
      (j) => j.onTrue(),
    )
    .select(['customer.id', 'o.oid', 'o.amount'])
    .orderBy('customer.id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select('status')
    .union(d.selectFrom('event').select('kind as status'))
    .orderBy('status')
    .execute(),
);
await go(
  d
    .selectFrom('product')
    .select((eb) => [
      'id',
      eb.ref('specs', '->').key('dims').at(0).as('d0'),
      eb.ref('specs', '->>').key('origin').as('origin'),
    ])
    .orderBy('id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select(({ fn }) => fn.countAll().filterWhere('status', '=', 'paid').as('paid'))
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .selectAll()
    .orderBy('amount', (o) => o.desc().nullsLast())
    .orderBy('id')
    .limit(3)
    .offset(3)
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select([sql`date_trunc('month', placed_at)`.as('month'), (eb) => eb.fn.sum('amount').as('s')])
    .groupBy(sql`date_trunc('month', placed_at)`)
    .orderBy('month')
    .execute(),
);
await go(
  d.selectFrom('customer').selectAll().where(sql`lower(name)`, 'like', sql`${'%a%'}`).orderBy('id').execute(),
);
await go(
  d
    .selectFrom('order')
    .innerJoin('payment', (j) =>
      j.onRef('payment.order_id', '=', 'order.id').on('payment.method', '=', 'card'),
    )
    .select(['order.id', 'payment.paid'])
    .orderBy('order.id')
    .execute(),
);
await go(
  d
    .selectFrom('order')
    .select('id')
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('region', 'status'), 'in', [tuple('eu', 'new'), tuple('us', 'paid')]),
    )
    .orderBy('id')
    .execute(),
);
await go(
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((t) => t.withSchema('entities').selectFrom('category').selectAll().orderBy('id').execute()),
);
await db.destroy();
