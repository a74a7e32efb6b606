import { grantsText, manifestText, policyText } from '../../support/model-text.js';

/**
 * A shop in which naive joins inflate: orders with none to four line items and none to two refunds, customers without
 * orders, orders without a customer or of one that is gone, days and weeks without any order, rows without a time.
 */
export interface Customer {
  readonly id: number;
  readonly region: string;
  readonly email: string | null;
}

export interface Order {
  readonly id: number;
  readonly customer_id: number | null;
  /** Milliseconds of UTC. */
  readonly placed_at: number | null;
  readonly status: string;
  readonly region: string;
  /** In cents. */
  readonly amount: number | null;
  readonly carrier_out: number;
  readonly carrier_back: number | null;
}

export interface LineItem {
  readonly id: number;
  readonly order_id: number;
  readonly product_id: number | null;
  readonly quantity: number;
}

export interface Refund {
  readonly id: number;
  readonly order_id: number;
  /** Milliseconds of the beginning of the day. */
  readonly day: number;
  readonly amount: number;
}

export interface Product {
  readonly id: number;
  readonly label: string;
}

export interface Shop {
  readonly customers: readonly Customer[];
  readonly orders: readonly Order[];
  readonly lineItems: readonly LineItem[];
  readonly refunds: readonly Refund[];
  readonly products: readonly Product[];
}

const DAY = 86_400_000;
const START = Date.UTC(2025, 11, 20);

/** Numbers from 0 to below 1, the same for the same seed. */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export function generateShop(seed: number): Shop {
  const roll = dice(seed);
  const below = (n: number): number => Math.floor(roll() * n);
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)] as T; // the lists are not empty
  const regions = ['eu', 'us', 'asia'];
  const customers = Array.from({ length: 40 }, (_, i) => ({
    id: i + 1,
    region: oneOf(regions),
    email: roll() < 0.2 ? null : `c${i + 1}@example.org`,
  }));
  const orders = Array.from({ length: 260 }, (_, i): Order => {
    // No order between the 10th and the 20th day of each run of 40.
    const day = below(100);
    const open = day % 40 < 10 || day % 40 > 20;
    return {
      id: i + 1,
      // The last customers never order; 999 is nobody.
      customer_id: roll() < 0.08 ? null : roll() < 0.03 ? 999 : 1 + below(30),
      placed_at: roll() < 0.03 ? null : START + (open ? day : day + 15) * DAY + below(DAY / 1000) * 1000,
      status: oneOf(['paid', 'paid', 'open', 'void']),
      region: oneOf(regions),
      amount: roll() < 0.03 ? null : 100 + below(90_000),
      carrier_out: 1 + below(3),
      carrier_back: roll() < 0.5 ? null : 1 + below(3),
    };
  });
  let line = 0;
  const lineItems = orders.flatMap((o) =>
    Array.from({ length: below(5) }, () => ({
      id: ++line,
      order_id: o.id,
      product_id: roll() < 0.05 ? null : 1 + below(6),
      quantity: 1 + below(9),
    })),
  );
  let refund = 0;
  const refunds = orders.flatMap((o) =>
    Array.from({ length: Math.max(0, below(5) - 2) }, () => ({
      id: ++refund,
      order_id: o.id,
      day: START + below(120) * DAY,
      amount: 50 + below(5_000),
    })),
  );
  const products = Array.from({ length: 6 }, (_, i) => ({ id: i + 1, label: `product ${i % 4}` }));
  return { customers, orders, lineItems, refunds, products };
}

export const METRICS_MANIFEST = manifestText(
  'shop',
  {
    'shop.customers': 'id int4, region text, email text pii',
    'shop.orders': `id int8, customer_id int4, placed_at timestamptz, status text, region text, amount numeric money,
    carrier_out int4, carrier_back int4`,
    'shop.line_items': 'id int8, order_id int8, product_id int4, quantity int4',
    'shop.refunds': 'id int8, order_id int8, day date, amount numeric',
    'shop.products': 'id int4, label text',
    'shop.carriers': 'id int4, label text',
    'shop.islands': 'id int4',
  },
  `entities:
  Customer: { source: db.shop.customers, primary_key: [id], columns: [id, region, email] }
  order:
    source: db.shop.orders
    primary_key: [id]
    entity_key_columns: [id, customer_id, carrier_out, carrier_back]
    time_dimension: placed_at
    columns: [id, customer_id, placed_at, status, region, amount, carrier_out, carrier_back]
  line_item:
    source: db.shop.line_items
    primary_key: [id]
    entity_key_columns: [id, order_id, product_id]
    columns: [id, order_id, product_id, quantity]
  refund:
    source: db.shop.refunds
    primary_key: [id]
    entity_key_columns: [id, order_id]
    time_dimension: day
    columns: [id, order_id, day, amount]
  product: { source: db.shop.products, primary_key: [id], columns: [id, label] }
  carrier: { source: db.shop.carriers, primary_key: [id], columns: [id, label] }
  island: { source: db.shop.islands, primary_key: [id], columns: [id] }
relationships:
  buyer: { from: order.customer_id, to: Customer.id, kind: many_to_one }
  item_order: { from: line_item.order_id, to: order.id, kind: many_to_one }
  item_product: { from: line_item.product_id, to: product.id, kind: many_to_one }
  refunded_order: { from: refund.order_id, to: order.id, kind: many_to_one }
  sent_by: { from: order.carrier_out, to: carrier.id, kind: many_to_one }
  returned_by: { from: order.carrier_back, to: carrier.id, kind: many_to_one }
metrics:
  orders: { entity: order, expression: count(*) }
  revenue: { entity: order, expression: sum(amount), filter: status <> 'void' }
  average: { entity: order, expression: avg(amount) }
  buyers: { entity: order, expression: count(distinct customer_id) }
  pieces: { entity: line_item, expression: sum(quantity) }
  lines: { entity: line_item, expression: count(*) }
  refunded: { entity: refund, expression: sum(amount) }
  refunds: { entity: refund, expression: count(*) }
  paid_share: { type: ratio, numerator: { metric: orders, filter: status = 'paid' }, denominator: orders }
  piece_price: { type: ratio, numerator: revenue, denominator: pieces }
  refund_rate: { type: ratio, numerator: refunded, denominator: revenue }
  net: { type: derived, expression: "coalesce(revenue, 0) - coalesce(refunded, 0)" }
  per_order: { type: derived, expression: revenue / orders }
  revenue_so_far: { type: cumulative, metric: revenue }
  refunded_so_far: { type: cumulative, metric: refunded }
  net_so_far: { type: derived, expression: "coalesce(revenue_so_far, 0) - coalesce(refunded_so_far, 0)" }
  revenue_7_days: { type: cumulative, metric: revenue, window: 7 days }
  revenue_1_month: { type: cumulative, metric: revenue, window: 1 month }
  revenue_of_month: { type: cumulative, metric: revenue, grain_to_date: month }
  orders_of_week: { type: cumulative, metric: orders, grain_to_date: week }
  buyers_30_days: { type: cumulative, metric: buyers, window: 30 days }
  average_so_far: { type: cumulative, metric: average }
  opened: { entity: order, expression: count(*), filter: status = 'open' }
  settled: { entity: order, expression: count(*), filter: status = 'paid' }
  settled_for: { entity: order, expression: sum(amount), filter: "status = 'paid' and buyer.region is not null" }
  settling: { type: conversion, base: opened, conversion: settled, entity: Customer, window: 30 days }
  settled_there:
    type: conversion
    base: opened
    conversion: settled_for
    entity: Customer
    constant_properties: [{ base: region, conversion: region }]
    calculation: conversions
  refunds_after: { type: conversion, base: orders, conversion: refunds, entity: order, calculation: conversions }
  settled_and_refunded: { type: derived, expression: "coalesce(refunds_after, 0) + settling" }
  paid_share_so_far: { type: cumulative, metric: paid_share }
`,
);

/**
 * `user:all` everything · `user:eu` rows of its region, no amounts, addresses masked · `user:blind` may not read when
 * an order was placed, nor who bought · `user:nobody` no order at all
 */
export const METRICS_POLICY = policyText(
  'shop',
  {
    'user:all': 'all',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:blind': 'blind',
    'user:nobody': 'regional { attributes: { region: nowhere } }',
  },
  `roles:
  all:
    grants:
      - { on: Customer, columns: "*", unmask: [pii] }
      - { on: order, columns: "*", unmask: [money] }
${grantsText(['line_item', 'refund', 'product', 'carrier', 'island'])}
  regional:
    grants:
      - { on: Customer, columns: "*", rows: "region = attribute('region')" }
      - { on: order, columns: "*", rows: "region = attribute('region')", unmask: [money] }
      - { on: order, columns: [id, customer_id, placed_at, status, region, amount, carrier_out, carrier_back], rows: "region = attribute('region') or status = 'open'" }
      - { on: line_item, columns: "*", rows: quantity < 8 }
${grantsText(['refund', 'product'])}
  blind:
    grants:
      - { on: Customer, columns: "*" }
      - { on: order, columns: [id, status, region, amount], unmask: [money] }
      - { on: line_item, columns: "*" }
masks:
  pii: redact
  money: "null"
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

/** SQL that makes and fills the tables. */
export function scriptOf(shop: Shop): string {
  const text = (v: string | null): string => (v === null ? 'null' : `'${v}'`);
  const money = (cents: number | null): string => (cents === null ? 'null' : `${cents / 100}`);
  const moment = (ms: number | null): string => (ms === null ? 'null' : `'${new Date(ms).toISOString()}'`);
  const insert = (table: string, rows: readonly string[]): string =>
    rows.length === 0 ? '' : `insert into shop.${table} values ${rows.join(', ')};`;
  return `
create schema shop;
create table shop.customers (id int4 primary key, region text, email text);
create table shop.orders (id int8 primary key, customer_id int4, placed_at timestamptz, status text, region text,
  amount numeric, carrier_out int4, carrier_back int4);
create table shop.line_items (id int8 primary key, order_id int8, product_id int4, quantity int4);
create table shop.refunds (id int8 primary key, order_id int8, day date, amount numeric);
create table shop.products (id int4 primary key, label text);
create table shop.carriers (id int4 primary key, label text);
create table shop.islands (id int4 primary key);
${insert(
  'customers',
  shop.customers.map((c) => `(${c.id}, ${text(c.region)}, ${text(c.email)})`),
)}
${insert(
  'orders',
  shop.orders.map(
    (o) =>
      `(${o.id}, ${o.customer_id}, ${moment(o.placed_at)}, ${text(o.status)}, ${text(o.region)}, ${money(o.amount)}, ${o.carrier_out}, ${o.carrier_back})`,
  ),
)}
${insert(
  'line_items',
  shop.lineItems.map((l) => `(${l.id}, ${l.order_id}, ${l.product_id}, ${l.quantity})`),
)}
${insert(
  'refunds',
  shop.refunds.map((r) => `(${r.id}, ${r.order_id}, ${moment(r.day)}, ${money(r.amount)})`),
)}
${insert(
  'products',
  shop.products.map((p) => `(${p.id}, ${text(p.label)})`),
)}
insert into shop.carriers values (1, 'ship'), (2, 'rail'), (3, 'bike');
`;
}
