import 'reflect-metadata';
import { Between, DataSource, EntitySchema, ILike, In, IsNull, MoreThan, Not, Raw } from 'typeorm';

const Customer = new EntitySchema({
  name: 'Customer',
  tableName: 'customer',
  columns: {
    id: { type: 'int', primary: true },
    name: { type: 'text' },
    email: { type: 'text', nullable: true },
    born: { type: 'date', nullable: true },
    region: { type: 'text' },
  },
  relations: { orders: { type: 'one-to-many', target: 'Order', inverseSide: 'customer' } },
});
const Order = new EntitySchema({
  name: 'Order',
  tableName: 'order',
  columns: {
    id: { type: 'bigint', primary: true },
    region: { type: 'text' },
    status: { type: 'text' },
    quantity: { type: 'int' },
    amount: { type: 'numeric' },
    placed_at: { type: 'timestamptz' },
    note: { type: 'text', nullable: true },
  },
  relations: {
    customer: {
      type: 'many-to-one',
      target: 'Customer',
      joinColumn: { name: 'customer_id' },
      inverseSide: 'orders',
    },
    payments: { type: 'one-to-many', target: 'Payment', inverseSide: 'order' },
  },
});
const Payment = new EntitySchema({
  name: 'Payment',
  tableName: 'payment',
  columns: { id: { type: 'int', primary: true }, method: { type: 'text' }, paid: { type: 'numeric' } },
  relations: {
    order: {
      type: 'many-to-one',
      target: 'Order',
      joinColumn: { name: 'order_id' },
      inverseSide: 'payments',
    },
  },
});
const ds = new DataSource({
  type: 'postgres',
  host: '127.0.0.1',
  port: +process.env.PGPORT,
  username: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
  schema: 'entities',
  installExtensions: false,
  entities: [Customer, Order, Payment],
  poolSize: 1,
});
await ds.initialize();
const go = async (f) => {
  try {
    await f();
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
const c = ds.getRepository('Customer'),
  o = ds.getRepository('Order');
await go(() => c.find({ order: { id: 'ASC' } }));
await go(() => c.findOneBy({ id: 1 }));
await go(() => c.find({ relations: { orders: true }, order: { id: 'ASC' } }));
await go(() => c.find({ relations: { orders: true }, order: { id: 'ASC' }, take: 3, skip: 1 }));
await go(() =>
  o.find({
    where: [
      { status: In(['new', 'paid']), quantity: Between(3, 9) },
      { note: IsNull(), amount: MoreThan(200) },
    ],
    order: { id: 'DESC' },
  }),
);
await go(() =>
  o.find({
    relations: { customer: true, payments: true },
    where: { customer: { name: ILike('a%') } },
    order: { id: 'ASC' },
  }),
);
await go(() => o.findAndCount({ where: { region: Not('us') }, take: 5, order: { id: 'ASC' } }));
await go(() => o.count({ where: { status: 'paid' } }));
await go(() => o.exists({ where: { region: 'eu' } }));
await go(() => o.sum('quantity', { region: 'eu' }));
await go(() => o.average('quantity'));
await go(() => o.maximum('quantity'));
await go(() => c.find({ relationLoadStrategy: 'query', relations: { orders: true }, order: { id: 'ASC' } }));
await go(() =>
  c.find({
    select: { id: true, name: true },
    where: { name: Raw((a) => `lower(${a}) like '%a%'`) },
    order: { id: 'ASC' },
  }),
);
await go(() =>
  o
    .createQueryBuilder('o')
    .select('o.region', 'region')
    .addSelect('COUNT(*)', 'n')
    .addSelect('SUM(o.amount)', 's')
    .groupBy('o.region')
    .having('COUNT(*) > :n', { n: 1 })
    .orderBy('s', 'DESC')
    .getRawMany(),
);
await go(() =>
  o
    .createQueryBuilder('o')
    .leftJoinAndSelect('o.customer', 'c')
    .where('c.region = :r', { r: 'eu' })
    .andWhere((qb) => `o.amount > ${qb.subQuery().select('AVG(x.amount)').from('Order', 'x').getQuery()}`)
    .orderBy('o.id')
    .limit(5)
    .getMany(),
);
await go(() =>
  o
    .createQueryBuilder('o')
    .distinctOn(['o.customer'])
    .select(['o.id', 'o.status'])
    .orderBy('o.customer')
    .addOrderBy('o.id')
    .getMany(),
);
await go(() =>
  o
    .createQueryBuilder('o')
    .addCommonTableExpression("SELECT id FROM entities.customer WHERE region = 'eu'", 'eu')
    .where('o.customer_id IN (SELECT id FROM eu)')
    .getCount(),
);
const r = ds.createQueryRunner();
await go(() => r.getTables(['entities.customer', 'entities.order']));
await go(() => r.getViews([]));
await go(() => r.hasTable('entities.customer'));
await go(() => r.hasColumn('entities.customer', 'name'));
await go(() => r.getSchemas());
await go(() => r.getCurrentSchema());
await go(() => r.hasSchema('entities'));
await r.release();
await go(() => ds.driver.createSchemaBuilder().log());
await go(() => ds.transaction('REPEATABLE READ', (m) => m.getRepository('Customer').count()));
await ds.destroy();
