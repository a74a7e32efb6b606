import knex from 'knex';

const k = knex({
  client: 'pg',
  connection: {
    host: '127.0.0.1',
    port: +process.env.PGPORT,
    user: process.env.PGUSER,
    password: process.env.PGPASSWORD,
    database: process.env.PGDATABASE,
  },
  searchPath: ['entities'],
  pool: { min: 1, max: 1 },
});
const go = async (q) => {
  try {
    await q;
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
await go(k.schema.hasTable('customer'));
await go(k.schema.withSchema('entities').hasTable('customer'));
await go(k.schema.hasColumn('customer', 'name'));
await go(k('customer').columnInfo());
await go(k('customer').withSchema('entities').columnInfo());
await go(k('customer').select('*').orderBy('id'));
await go(
  k('order')
    .where({ status: 'paid' })
    .andWhere('quantity', '>', 5)
    .orWhereNull('note')
    .orderBy('id')
    .limit(10)
    .offset(1),
);
await go(
  k('order as o')
    .join('customer as c', 'c.id', 'o.customer_id')
    .select('o.id', 'c.name')
    .whereIn('o.status', ['new', 'paid'])
    .orderBy('o.id'),
);
await go(
  k('order as o')
    .leftJoin('payment as p', function () {
      this.on('p.order_id', '=', 'o.id').andOnVal('p.method', '=', 'card');
    })
    .select('o.id', 'p.paid')
    .orderBy('o.id'),
);
await go(
  k('order')
    .select('region')
    .count('* as n')
    .sum({ total: 'amount' })
    .avg('quantity as mean')
    .countDistinct('customer_id as who')
    .groupBy('region')
    .havingRaw('count(*) > ?', [1])
    .orderBy('region'),
);
await go(k.with('w', k('order').where('region', 'eu')).from('w').count());
await go(k('order').first().where('id', 1));
await go(k('order').pluck('id').orderBy('id').limit(3));
await go(
  k('order')
    .select('id')
    .rowNumber('rn', (q) => q.partitionBy('customer_id').orderBy('placed_at'))
    .orderBy('id'),
);
await go(k('order').select('id', k.raw('rank() over (order by amount desc) as r')).orderBy('id').limit(5));
await go(k('customer').distinct('region').orderBy('region'));
await go(
  k('order').distinctOn('customer_id').select('customer_id', 'id').orderBy('customer_id').orderBy('id'),
);
await go(
  k('customer')
    .whereExists(k('order').select(k.raw('1')).whereRaw('"order".customer_id = customer.id'))
    .select('id')
    .orderBy('id'),
);
await go(
  k('customer')
    .whereNotIn('id', k('event').select('customer_id').whereNotNull('customer_id').where('kind', 'buy'))
    .select('id')
    .orderBy('id'),
);
await go(k.union([k('order').select('status as s'), k('event').select('kind')]).orderBy('s'));
await go(k('event').whereJsonPath('props', '$.score', '>', 5).count());
await go(k('event').whereJsonSupersetOf('props', { ab: true }).count());
await go(k('product').jsonExtract('specs', '$.origin', 'origin').orderBy('id'));
await go(
  k('order').whereBetween('placed_at', ['2025-11-01', '2025-11-30']).whereILike('note', '%1%').orderBy('id'),
);
await go(
  k.transaction(
    async (t) => {
      await t('category').select().orderBy('id');
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  ),
);
await go(
  k('order')
    .withRecursive('t', ['id', 'name'], (q) =>
      q
        .select('id', 'name')
        .from('category')
        .whereNull('parent_id')
        .unionAll((u) => u.select('c.id', 'c.name').from('category as c').join('t', 't.id', 'c.parent_id')),
    )
    .from('t')
    .select('*')
    .orderBy('id'),
);
await k.destroy();
