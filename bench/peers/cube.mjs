import { compilersOf, PostgresQuery } from './cube-compilers.mjs';
import { literalsOf, named } from './shop.mjs';


const MODEL = `
cube('Customers', {
  sql: 'SELECT * FROM shop.customers',
  joins: {
    Orders: { relationship: 'hasMany', sql: \`\${CUBE}.id = \${Orders}.customer_id\` },
    OwnOrders: { relationship: 'hasMany', sql: \`\${CUBE}.id = \${OwnOrders}.customer_id\` },
  },
  dimensions: {
    id: { sql: 'id', type: 'number', primaryKey: true, public: true },
    region: { sql: 'region', type: 'string' },
  },
  measures: { count: { type: 'count' } },
});
cube('Orders', {
  sql: 'SELECT * FROM shop.orders',
  joins: { LineItems: { relationship: 'hasMany', sql: \`\${CUBE}.id = \${LineItems}.order_id\` } },
  dimensions: {
    id: { sql: 'id', type: 'number', primaryKey: true },
    status: { sql: 'status', type: 'string' },
    region: { sql: 'region', type: 'string' },
    amount: { sql: 'amount', type: 'number' },
    createdAt: { sql: 'created_at', type: 'time' },
  },
  measures: { revenue: { sql: 'amount', type: 'sum' }, count: { type: 'count' } },
});
cube('OwnOrders', {
  sql: \`SELECT * FROM shop.orders WHERE \${SECURITY_CONTEXT.region.filter('region')}\`,
  dimensions: { id: { sql: 'id', type: 'number', primaryKey: true } },
  measures: { count: { type: 'count' } },
});
cube('LineItems', {
  sql: 'SELECT * FROM shop.line_items',
  dimensions: { id: { sql: 'id', type: 'number', primaryKey: true } },
  measures: { units: { sql: 'quantity', type: 'sum' } },
});
`;

const compilers = await compilersOf('shop.js', MODEL);

function statement(query) {
  const planner = new PostgresQuery(compilers, { timezone: 'UTC', useNativeSqlPlanner: false, ...query });
  const [sql, params] = planner.buildSqlAndParams();
  return { sql, params };
}

const filter = (member, operator, value) => ({ member, operator, values: [`${value}`] });

const ordersOf = (cube) => ({
  measures: [`${cube}.count`],
  dimensions: ['Customers.id'],
  order: [{ id: 'Customers.id', desc: false }],
});

export const peer = {
  id: 'compile.vs_cube',
  name: `${named('@cubejs-backend/schema-compiler')} (legacy planner)`,
  compile: (variant) => {
    const { status, amount, orders } = literalsOf(variant);
    return statement({
      measures: ['Orders.revenue', 'Orders.count'],
      dimensions: ['Orders.status'],
      timeDimensions: [{ dimension: 'Orders.createdAt', granularity: 'month' }],
      filters: [
        filter('Orders.status', 'equals', status),
        filter('Orders.amount', 'gt', amount),
        filter('Orders.createdAt', 'afterOrOnDate', '2026-01-01'),
        filter('Orders.count', 'gt', orders),
      ],
      order: [{ id: 'Orders.revenue', desc: true }],
      rowLimit: 10,
    }).sql;
  },
  forms: [
    {
      question: 'fan-out',
      form: 'sum over orders, sum over line items',
      statement: () =>
        statement({
          measures: ['Orders.revenue', 'LineItems.units'],
          dimensions: ['Customers.region'],
          order: [{ id: 'Customers.region', desc: false }],
        }),
    },
    {
      question: 'left join',
      form: 'filter added to the query, as access policies and `queryRewrite` do',
      statement: () =>
        statement({ ...ordersOf('Orders'), filters: [filter('Orders.region', 'equals', 'eu')] }),
    },
    {
      question: 'left join',
      form: "`SECURITY_CONTEXT` in the cube's `sql`",
      statement: () =>
        statement({ ...ordersOf('OwnOrders'), contextSymbols: { securityContext: { region: 'eu' } } }),
    },
  ],
};
