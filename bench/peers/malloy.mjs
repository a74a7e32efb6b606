import { SingleConnectionRuntime } from '@malloydata/malloy';
import { literalsOf, named } from './shop.mjs';

const number = (name, numberType) => ({ type: 'number', numberType, name });
const string = (name) => ({ type: 'string', name });
const TABLES = new Map([
  ['shop.customers', [number('id', 'bigint'), string('region')]],
  [
    'shop.orders',
    [
      number('id', 'bigint'),
      number('customer_id', 'bigint'),
      string('status'),
      string('region'),
      string('email'),
      number('amount', 'float'),
      { type: 'timestamp', name: 'created_at' },
    ],
  ],
  ['shop.line_items', [number('id', 'bigint'), number('order_id', 'bigint'), number('quantity', 'integer')]],
]);

/** Tells Malloy the tables; there is no database behind it. */
const connection = {
  name: 'db',
  dialectName: 'postgres',
  getDigest: () => 'bench',
  isPool: () => false,
  canPersist: () => false,
  canStream: () => false,
  close: async () => undefined,
  fetchSchemaForTables: async (tables) => ({
    schemas: Object.fromEntries(
      Object.entries(tables).map(([key, tablePath]) => [
        key,
        {
          type: 'table',
          name: key,
          dialect: 'postgres',
          tablePath,
          connection: 'db',
          fields: TABLES.get(tablePath),
        },
      ]),
    ),
    errors: {},
  }),
};

const MODEL = `
source: line_items is db.table('shop.line_items') extend { primary_key: id }
source: orders is db.table('shop.orders') extend {
  primary_key: id
  join_many: line_items on line_items.order_id = id
  measure: revenue is amount.sum(), order_count is count()
}
source: customers is db.table('shop.customers') extend {
  primary_key: id
  join_many: orders on orders.customer_id = id
}
source: orders_of_eu is orders extend { where: region = 'eu' }
source: customers_of_eu is customers extend {
  join_many: visible is orders_of_eu on visible.customer_id = id
}
`;

const model = new SingleConnectionRuntime({ connection }).loadModel(MODEL);
await model.getModel();

const sqlOf = (malloy) => model.loadQuery(malloy).getSQL();
const statement = async (malloy) => ({ sql: await sqlOf(malloy), params: [] });

const leftJoin = (count) =>
  `run: customers_of_eu -> { group_by: id aggregate: order_count is ${count} order_by: id }`;

export const peer = {
  id: 'compile.vs_malloy',
  name: `${named('@malloydata/malloy')} (its own compiler, text to Postgres SQL)`,
  compile: (variant) => {
    const { status, amount, orders } = literalsOf(variant);
    return sqlOf(`run: orders -> {
      where: status = '${status}' and amount > ${amount} and created_at >= @2026-01-01
      group_by: created_month is created_at.month, status
      aggregate: revenue, order_count
      having: order_count > ${orders}
      order_by: revenue desc
      limit: 10
    }`);
  },
  forms: [
    {
      question: 'fan-out',
      form: '`orders.amount.sum()`, `orders.line_items.quantity.sum()`',
      statement: () =>
        statement(`run: customers -> {
          group_by: region
          aggregate: revenue is orders.amount.sum(), units is orders.line_items.quantity.sum()
          order_by: region
        }`),
    },
    {
      question: 'left join',
      form: '`join_many` of a source with `where:`, `visible.count()`',
      statement: () => statement(leftJoin('visible.count()')),
    },
    {
      question: 'left join',
      form: '`join_many` of a source with `where:`, `count(visible.id)`',
      statement: () => statement(leftJoin('count(visible.id)')),
    },
  ],
};
