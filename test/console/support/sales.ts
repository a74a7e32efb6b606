import { grantsText, manifestText, policyText } from '../../support/model-text.js';

/** Sales over two years, in which there is something to draw: regions, categories, months, and what not all may see. */
const SALES_MANIFEST = manifestText(
  'sales',
  {
    'sales.customers': 'id int4, name text not null person, email text pii, region text not null',
    'sales.products': 'id int4, label text not null, category text not null',
    'sales.orders': `id int8, customer_id int4 not null, product_id int4 not null, amount numeric not null,
    status text not null, placed_at timestamptz not null`,
    'sales.visits': 'id int8, customer_id int4 not null, seconds int4 not null',
  },
  `entities:
  customer:
    description: Who buys.
    source: db.sales.customers
    primary_key: [id]
    columns: [id, name, email, region]
  product:
    description: What is sold.
    source: db.sales.products
    primary_key: [id]
    columns: [id, label, category]
  order:
    description: One purchase of one product.
    source: db.sales.orders
    primary_key: [id]
    entity_key_columns: [id, customer_id, product_id]
    time_dimension: placed_at
    columns: [id, customer_id, product_id, amount, status, placed_at]
  visit:
    description: One look at the shop.
    source: db.sales.visits
    primary_key: [id]
    entity_key_columns: [id, customer_id]
    columns: [id, customer_id, seconds]
relationships:
  buyer: { from: order.customer_id, to: customer.id, kind: many_to_one }
  bought: { from: order.product_id, to: product.id, kind: many_to_one }
  visitor: { from: visit.customer_id, to: customer.id, kind: many_to_one }
metrics:
  revenue:
    description: What was paid for orders.
    entity: order
    expression: sum(amount)
    format: { kind: currency, currency: EUR, decimals: 0 }
  orders: { description: Number of orders., entity: order, expression: count(*) }
  returned_share:
    description: Share of the orders that came back.
    type: ratio
    numerator: { metric: orders, filter: status = 'returned' }
    denominator: orders
    format: { kind: percent }
  visits: { description: Looks at the shop., entity: visit, expression: count(*) }
  orders_per_visit: { type: derived, expression: orders / visits }
  revenue_so_far: { type: cumulative, metric: revenue }
lexicon:
  turnover: { refers_to: revenue, synonyms: [sales] }
`,
);

/**
 * `user:ann` sees no addresses; `user:ada` all; `user:eu` the region of hers and no products; `user:sum` orders in
 * groups of 145 alone; `user:nil` nothing.
 */
const SALES_POLICY = policyText(
  'sales',
  {
    'user:ann': 'analyst',
    'user:ada': 'auditor',
    'user:eu': 'regional',
    'user:sum': 'counter',
    'user:nil': '',
  },
  `roles:
  analyst:
    grants:
      - { on: customer, columns: "*", unmask: [person] }
${grantsText(['product', 'order', 'visit'])}
  auditor:
    grants:
      - { on: customer, columns: "*", unmask: [pii, person] }
${grantsText(['product', 'order'])}
  regional:
    grants:
      - { on: customer, columns: [id, region], rows: "region = 'eu'" }
      - { on: order, columns: [id, customer_id, amount, status, placed_at] }
  counter:
    grants:
      - { on: order, columns: [id, status, amount, placed_at], min_group_size: 145 }
masks: { pii: redact, person: redact }
limits: { query: 10000, schema: 10000 }
`,
);

const SALES_SCRIPT = `
CREATE SCHEMA sales;
CREATE TABLE sales.customers (id int4 PRIMARY KEY, name text NOT NULL, email text, region text NOT NULL);
CREATE TABLE sales.products (id int4 PRIMARY KEY, label text NOT NULL, category text NOT NULL);
CREATE TABLE sales.orders (id int8 PRIMARY KEY, customer_id int4 NOT NULL, product_id int4 NOT NULL,
  amount numeric NOT NULL, status text NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE sales.visits (id int8 PRIMARY KEY, customer_id int4 NOT NULL, seconds int4 NOT NULL);
INSERT INTO sales.customers SELECT n, 'Customer ' || n, 'c' || n || '@shop.example',
  (ARRAY['eu','us','asia'])[1 + n % 3] FROM generate_series(1, 60) AS n;
INSERT INTO sales.products SELECT n, 'Product ' || n, (ARRAY['tea','coffee','cups','books'])[1 + n % 4]
  FROM generate_series(1, 12) AS n;
INSERT INTO sales.orders SELECT n, 1 + n * 7 % 60, 1 + (n * n * 5 + n % 7) % 12,
  round((18 + n % 50 + n * 0.012 + 14 * sin(n / 95.0))::numeric, 2),
  CASE WHEN n % 11 = 0 THEN 'returned' WHEN n % 7 = 0 THEN 'open' ELSE 'paid' END,
  timestamptz '2025-01-01 09:00:00+00' + n * interval '5 hours' FROM generate_series(1, 2900) AS n;
INSERT INTO sales.visits SELECT n, 1 + n % 60, n % 300 FROM generate_series(1, 9000) AS n;
`;

export const SALES = {
  manifest: SALES_MANIFEST,
  policy: SALES_POLICY,
  script: SALES_SCRIPT,
  schema: 'sales',
};

export const SALES_CALLERS = ['user:ann', 'user:ada', 'user:eu', 'user:sum', 'user:nil'].map((name) => ({
  chain: [name],
  about: `as ${name}`,
}));
