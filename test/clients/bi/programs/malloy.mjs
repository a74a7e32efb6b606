import { PostgresConnection } from '@malloydata/db-postgres';
import { Runtime } from '@malloydata/malloy';

const connection = new PostgresConnection(
  'postgres',
  () => ({ rowLimit: 100 }),
  () => ({
    host: '127.0.0.1',
    port: +process.env.PGPORT,
    username: process.env.PGUSER,
    password: process.env.PGPASSWORD,
    databaseName: process.env.PGDATABASE,
  }),
);
const runtime = new Runtime({
  connections: { lookupConnection: async () => connection },
  urlReader: { readURL: async () => '' },
});
const MODEL = `
source: customers is postgres.table('entities.customer') extend { primary_key: id measure: customer_count is count() }
source: orders is postgres.table('entities.order') extend {
  primary_key: id
  join_one: customers with customer_id
  measure: order_count is count() revenue is amount.sum() mean is quantity.avg()
  dimension: size is pick 'small' when quantity < 10 else 'big'
}
`;
const QUERIES = [
  'run: orders -> { group_by: region aggregate: order_count, revenue order_by: region }',
  'run: orders -> { group_by: month is placed_at.month aggregate: order_count order_by: month }',
  'run: orders -> { group_by: customers.name aggregate: revenue order_by: name limit: 5 }',
  'run: orders -> { group_by: region nest: by_status is { group_by: status aggregate: order_count order_by: status } order_by: region }',
  "run: orders -> { where: status = 'paid' | 'new', quantity > 5 group_by: size aggregate: order_count order_by: size }",
  "run: orders -> { aggregate: paid is order_count { where: status = 'paid' }, order_count, mean }",
  'run: orders -> { select: id, amount, placed_at order_by: id limit: 3 }',
  'run: orders -> { group_by: region aggregate: order_count } -> { where: order_count > 5 select: * order_by: region }',
  'run: orders -> { aggregate: customers.customer_count, customers_too is count(customer_id) }',
  'run: orders -> { group_by: region aggregate: order_count calculate: r is rank() order_by: region }',
  'run: orders -> { group_by: wk is day_of_week(placed_at) aggregate: order_count order_by: wk }',
  "run: orders -> { where: placed_at ? @2025-11 for 2 months, customers.name ~ 'A%' select: id order_by: id }",
];
for (const query of QUERIES) {
  try {
    await runtime.loadModel(MODEL).loadQuery(query).run();
  } catch (error) {
    console.error(query, String(error).slice(0, 300));
  }
}
await connection.close();
