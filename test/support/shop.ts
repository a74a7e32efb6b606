import { bridgeText, grantsText, manifestText, policyText } from './model-text.js';

/** A shop with customers in two regions, their orders, and an entity with a column of every type. */
export const SHOP_MANIFEST = manifestText(
  'shop',
  {
    'shop.customers': `id int4, name text not null, email text pii, tax_no text secret, born date birth,
    region text not null`,
    'shop.orders': `id int8, customer_id int4 not null, region text not null, quantity int4 not null,
    amount numeric not null, placed_at timestamptz not null, note text`,
    'shop.products': 'id int4, label text not null',
    'shop.lines': 'order_id int8, product_id int4, pieces int4 not null',
    'shop.samples': `id int4, flag bool, small int2, big int8, real4 float4, real8 float8, exact numeric, words text,
    token uuid, day date, clock time, local timestamp, moment timestamptz, span interval, bytes bytea,
    doc jsonb, numbers int4[], texts text[], moments timestamptz[], docs jsonb[]`,
  },
  `entities:
  customer:
    source: db.shop.customers
    primary_key: [id]
    columns: [id, name, email, tax_no, born, region]
  order:
    source: db.shop.orders
    primary_key: [id]
    entity_key_columns: [id, customer_id]
    columns: [id, customer_id, region, quantity, amount, placed_at, note]
  product:
    source: db.shop.products
    primary_key: [id]
    columns: [id, label]
  sample:
    source: db.shop.samples
    primary_key: [id]
    columns:
      [id, flag, small, big, real4, real8, exact, words, token, day, clock, local, moment, span, bytes, doc,
       numbers, texts, moments, docs]
bridges:
${bridgeText('line', 'shop.lines', ['order', 'order_id'], ['product', 'product_id'], 'pieces')}
relationships:
  order_customer: { from: order.customer_id, to: customer.id, kind: many_to_one }
facets:
  labels:
    source: db.shop.products
    entity: product
    entity_key: id
    document_id: label
    text: label
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
metrics:
  revenue: { entity: order, expression: sum(amount), format: { kind: currency, currency: EUR } }
raw_sql:
  allow: [db.shop.customers, db.shop.orders, db.shop.lines]
`,
);

/**
 * \`user:ann\` analyst (masked) · \`user:ada\` auditor (clear) · \`user:eu\`, \`user:us\` their region only ·
 * \`user:den\` analyst who may not use addresses · \`user:nil\` nothing · \`agent:bot\` acts for others ·
 * \`user:root\` analyst with an admin role, if the token claims it
 */
export const SHOP_POLICY = policyText(
  'shop',
  {
    'user:ann': 'analyst',
    'user:ada': 'auditor, analyst',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:us': 'regional { attributes: { region: us } }',
    'user:den': 'analyst, no_addresses',
    'user:nil': '',
    'agent:bot': 'analyst, regional { attributes: { region: { any: true } } }',
    'user:root': 'analyst { admin: [TENANT_ADMIN] }',
  },
  `roles:
  analyst:
    grants:
${grantsText(['customer', 'order', 'product', 'line', 'sample', 'labels'])}
  auditor:
    grants:
      - { on: customer, columns: "*", unmask: [pii, secret, birth] }
      - { on: order, columns: "*" }
  regional:
    grants:
      - { on: customer, columns: [id, name, email, region], rows: "region = attribute('region')" }
      - { on: order, columns: "*", rows: "region = attribute('region')" }
  no_addresses:
    grants: []
    deny:
      - { on: customer, columns: [email] }
masks:
  pii: redact
  secret: hash
  birth: year
limits:
  query: 100000
  sample: 100000
  schema: 100000
  authoring: 100000
  catalog: 100000
`,
);

export const SHOP_SCRIPT = `
CREATE SCHEMA shop;
CREATE TABLE shop.customers (
  id int4 PRIMARY KEY, name text NOT NULL, email text, tax_no text, born date, region text NOT NULL);
CREATE TABLE shop.orders (
  id int8 PRIMARY KEY, customer_id int4 NOT NULL, region text NOT NULL, quantity int4 NOT NULL,
  amount numeric NOT NULL, placed_at timestamptz NOT NULL, note text);
CREATE TABLE shop.products (id int4 PRIMARY KEY, label text NOT NULL);
CREATE TABLE shop.lines (order_id int8, product_id int4, pieces int4 NOT NULL, PRIMARY KEY (order_id, product_id));
CREATE TABLE shop.samples (
  id int4 PRIMARY KEY, flag bool, small int2, big int8, real4 float4, real8 float8, exact numeric, words text,
  token uuid, day date, clock time, local timestamp, moment timestamptz, span interval, bytes bytea, doc jsonb,
  numbers int4[], texts text[], moments timestamptz[], docs jsonb[]);
INSERT INTO shop.customers VALUES
  (1, 'Ada', 'ada@eu.example', 'EU-1', '1990-05-17', 'eu'),
  (2, 'Bo', 'bo@eu.example', 'EU-2', '1985-01-02', 'eu'),
  (3, 'Cy', 'cy@us.example', 'US-3', '1979-12-31', 'us'),
  (4, 'Di', NULL, NULL, NULL, 'us');
INSERT INTO shop.orders
  SELECT n, 1 + n % 4, CASE WHEN n % 4 < 2 THEN 'eu' ELSE 'us' END, n, n * 1.25,
    timestamptz '2026-01-01 00:00:00+00' + n * interval '1 hour', CASE WHEN n % 3 = 0 THEN 'note ' || n END
  FROM generate_series(1, 40) AS n;
INSERT INTO shop.products VALUES (1, 'tea'), (2, 'salt');
INSERT INTO shop.lines SELECT n, 1 + n % 2, n FROM generate_series(1, 40) AS n;
INSERT INTO shop.samples VALUES
  (1, true, -7, 9007199254740993, 1.5, 0.1, 12345678901234567890.10, E'a "b" \\\\ \\n\\t\\x01 é 😀',
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-01-31', '23:59:01.5', '2026-01-31 23:59:01.5',
   '2026-01-31 23:59:01.25+00', '1 year 2 days 03:04:05', '\\xdeadbeef00', '{"a": [1, null, 1e400], "b": "é"}',
   '{1,NULL,3}', E'{"a,b","c\\\\"d\\\\\\\\",NULL,"NULL",""}', '{"2026-01-01 00:00:00+00",infinity}',
   ARRAY['{"x": "y"}', 'null']::jsonb[]),
  (2, false, 0, -1, 'NaN', '-Infinity', 'NaN', '', NULL, 'infinity', NULL, '-infinity', 'infinity', '-1 mons', '',
   'null', '{}', '{{a,b},{c,d}}', NULL, NULL),
  (3, NULL, NULL, NULL, 'Infinity', 1e300, -0.5, NULL, NULL, '0044-03-15 BC', NULL, '12026-01-01 00:00:00',
   '0044-03-15 00:00:00+00 BC', NULL, NULL, '17', '[0:1]={1,2}', NULL, NULL, NULL);
`;
