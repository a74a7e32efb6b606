import { eq } from 'drizzle-orm';
import { bigint, integer, numeric, pgSchema, text, timestamp } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/pg-proxy';
import { createPostgresExecutor, defineCube, QueryExecutor } from 'drizzle-cube/server';
import { literalsOf, named } from './shop.mjs';

const shop = pgSchema('shop');
const key = (name) => bigint(name, { mode: 'number' });
const customers = shop.table('customers', { id: key('id').primaryKey(), region: text('region') });
const orders = shop.table('orders', {
  id: key('id').primaryKey(),
  customerId: key('customer_id'),
  status: text('status'),
  region: text('region'),
  email: text('email'),
  amount: numeric('amount'),
  createdAt: timestamp('created_at'),
});
const lineItems = shop.table('line_items', {
  id: key('id').primaryKey(),
  orderId: key('order_id'),
  quantity: integer('quantity'),
});

const customersCube = defineCube('Customers', {
  sql: () => ({ from: customers }),
  joins: {
    Orders: {
      targetCube: () => ordersCube,
      relationship: 'hasMany',
      on: [{ source: customers.id, target: orders.customerId }],
    },
  },
  dimensions: {
    id: { name: 'id', type: 'number', sql: () => customers.id, primaryKey: true },
    region: { name: 'region', type: 'string', sql: () => customers.region },
  },
  measures: { count: { name: 'count', type: 'count', sql: () => customers.id } },
});

const ordersCube = defineCube('Orders', {
  // A security filter is what drizzle-cube calls a row filter; without a region everything is seen.
  sql: ({ securityContext: { region } }) => ({
    from: orders,
    ...(region !== undefined && { where: eq(orders.region, region) }),
  }),
  joins: {
    Customers: {
      targetCube: () => customersCube,
      relationship: 'belongsTo',
      on: [{ source: orders.customerId, target: customers.id }],
    },
    LineItems: {
      targetCube: () => lineItemsCube,
      relationship: 'hasMany',
      on: [{ source: orders.id, target: lineItems.orderId }],
    },
  },
  dimensions: {
    id: { name: 'id', type: 'number', sql: () => orders.id, primaryKey: true },
    status: { name: 'status', type: 'string', sql: () => orders.status },
    amount: { name: 'amount', type: 'number', sql: () => orders.amount },
    createdAt: { name: 'createdAt', type: 'time', sql: () => orders.createdAt },
  },
  measures: {
    revenue: { name: 'revenue', type: 'sum', sql: () => orders.amount },
    count: { name: 'count', type: 'count', sql: () => orders.id },
  },
});

const lineItemsCube = defineCube('LineItems', {
  sql: () => ({ from: lineItems }),
  joins: {
    Orders: {
      targetCube: () => ordersCube,
      relationship: 'belongsTo',
      on: [{ source: lineItems.orderId, target: orders.id }],
    },
  },
  dimensions: { id: { name: 'id', type: 'number', sql: () => lineItems.id, primaryKey: true } },
  measures: { units: { name: 'units', type: 'sum', sql: () => lineItems.quantity } },
});

// The executor, not the layer's `dryRun`: that also pretty-prints the SQL, which would count against it.
const planner = new QueryExecutor(createPostgresExecutor(drizzle(async () => ({ rows: [] }))));
const cubes = new Map([customersCube, ordersCube, lineItemsCube].map((cube) => [cube.name, cube]));

const filter = (member, operator, value) => ({ member, operator, values: [value] });

function question({ status, amount, orders }) {
  return {
    measures: ['Orders.revenue', 'Orders.count'],
    dimensions: ['Orders.status'],
    timeDimensions: [{ dimension: 'Orders.createdAt', granularity: 'month' }],
    filters: [
      filter('Orders.status', 'equals', status),
      filter('Orders.amount', 'gt', amount),
      filter('Orders.createdAt', 'gte', '2026-01-01'),
      filter('Orders.count', 'gt', orders),
    ],
    order: { 'Orders.revenue': 'desc' },
    limit: 10,
  };
}

const statement = (query, securityContext = {}) => planner.dryRunSQL(cubes, query, securityContext);

export const peer = {
  id: 'compile.vs_drizzle_cube',
  name: `${named('drizzle-cube')} (its own planner, over drizzle-orm)`,
  compile: async (variant) => (await statement(question(literalsOf(variant)))).sql,
  forms: [
    {
      question: 'fan-out',
      form: 'sum over orders, sum over line items',
      statement: () =>
        statement({
          measures: ['Orders.revenue', 'LineItems.units'],
          dimensions: ['Customers.region'],
          order: { 'Customers.region': 'asc' },
        }),
    },
    {
      question: 'left join',
      form: 'security filter of the cube',
      statement: () =>
        statement(
          { measures: ['Orders.count'], dimensions: ['Customers.id'], order: { 'Customers.id': 'asc' } },
          { region: 'eu' },
        ),
    },
  ],
};
