import pg from 'pg';
import { mintToken } from '../../../policy/index.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { policyText } from '../../support/model-text.js';
import { type NativePostgres, useServer } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { referenceClient } from '../../surfaces/catalog/support/reference.js';
import { IMAGE_DIR } from '../../surfaces/catalog/support/world.js';

/**
 * The shop that the corpus asks about: what tools join and analysts count. Its caller, `user:clerk`, sees no row of
 * the region `ap`, addresses redacted, and no `tax_no`.
 */
const TABLES: readonly {
  readonly name: string;
  readonly table: string;
  readonly keys: readonly string[];
  readonly columns: Readonly<Record<string, string>>;
  /** Rows that the caller sees, as SQL over the table; all by default. */
  readonly permitted?: string;
}[] = [
  {
    name: 'customer',
    table: 'customers',
    keys: ['id'],
    columns: {
      id: 'int4',
      name: 'text!',
      email: 'text',
      tax_no: 'text',
      born: 'date',
      region: 'text!',
      signed_up: 'timestamptz',
    },
    permitted: `select id, name, '[redacted]' as email, born, region, signed_up from shop.customers where region <> 'ap'`,
  },
  {
    name: 'order',
    table: 'orders',
    keys: ['id', 'customer_id'],
    columns: {
      id: 'int8',
      customer_id: 'int4!',
      region: 'text!',
      status: 'text!',
      quantity: 'int4!',
      amount: 'numeric!',
      discount: 'float8',
      placed_at: 'timestamptz!',
      shipped_on: 'date',
      note: 'text',
    },
    permitted: `select * from shop.orders where region <> 'ap'`,
  },
  {
    name: 'category',
    table: 'categories',
    keys: ['id', 'parent_id'],
    columns: { id: 'int4', parent_id: 'int4', name: 'text!' },
  },
  {
    name: 'product',
    table: 'products',
    keys: ['id', 'category_id'],
    columns: {
      id: 'int4',
      category_id: 'int4',
      label: 'text!',
      price: 'numeric',
      tags: 'text[]',
      specs: 'jsonb',
    },
  },
  {
    name: 'event',
    table: 'events',
    keys: ['id', 'customer_id'],
    columns: {
      id: 'int8',
      customer_id: 'int4',
      region: 'text!',
      session_id: 'uuid',
      kind: 'text!',
      at: 'timestamp!',
      seconds: 'int4',
      props: 'jsonb',
    },
    permitted: `select * from shop.events where region <> 'ap'`,
  },
  {
    name: 'employee',
    table: 'employees',
    keys: ['id', 'manager_id'],
    columns: {
      id: 'int4',
      manager_id: 'int4',
      name: 'text!',
      department: 'text!',
      salary: 'numeric',
      hired: 'date',
      active: 'bool',
      skills: 'text[]',
    },
  },
  {
    name: 'subscription',
    table: 'subscriptions',
    keys: ['id', 'customer_id'],
    columns: {
      id: 'int4',
      customer_id: 'int4',
      region: 'text!',
      plan: 'text!',
      monthly: 'numeric!',
      started: 'date!',
      ended: 'date',
    },
    permitted: `select * from shop.subscriptions where region <> 'ap'`,
  },
  {
    name: 'payment',
    table: 'payments',
    keys: ['id', 'order_id'],
    columns: { id: 'int4', order_id: 'int8', method: 'text!', paid: 'numeric!', paid_at: 'timestamptz' },
  },
  {
    name: 'sample',
    table: 'samples',
    keys: ['id'],
    columns: {
      id: 'int4',
      flag: 'bool',
      small: 'int2',
      big: 'int8',
      real4: 'float4',
      real8: 'float8',
      exact: 'numeric',
      words: 'text',
      token: 'uuid',
      day: 'date',
      clock: 'time',
      local: 'timestamp',
      moment: 'timestamptz',
      span: 'interval',
      bytes: 'bytea',
      doc: 'jsonb',
      numbers: 'int4[]',
      texts: 'text[]',
    },
  },
];

const LINE = { order_id: 'int8', product_id: 'int4', pieces: 'int4!', price: 'numeric!' };

const FILL = `
INSERT INTO shop.customers SELECT n, (array['Ada','Bo','Cy','Di','Eve','Finn','Gus','Hal','Ida','Jo','Kim','Lea'])[n],
  CASE WHEN n % 5 > 0 THEN 'c' || n || '@hidden.example' END, 'T-' || n, CASE WHEN n % 4 > 0 THEN date '1970-03-01' + n * 700 END,
  (array['eu','us','eu','ap'])[1 + n % 4], timestamptz '2025-10-03 09:30:00+00' + n * interval '9 days 5 hours' FROM generate_series(1, 12) n;
INSERT INTO shop.orders SELECT n, 1 + n * 7 % 12, (array['eu','us','eu','ap'])[1 + (1 + n * 7 % 12) % 4], (array['new','paid','shipped','returned'])[1 + n * 5 % 4],
  1 + n * 13 % 40, round((n * 37 % 211) * 1.25 + 0.05, 2), CASE WHEN n % 3 = 0 THEN (n % 7) / 20.0 END,
  timestamptz '2025-10-05 08:00:00+00' + n * interval '1 day 3 hours 7 minutes', CASE WHEN n % 4 > 1 THEN date '2025-10-08' + n END,
  CASE WHEN n % 3 = 0 THEN 'note ' || n END FROM generate_series(1, 160) n;
INSERT INTO shop.categories VALUES (1, null, 'all'), (2, 1, 'food'), (3, 1, 'home'), (4, 2, 'tea'), (5, 2, 'spice'), (6, 3, 'kitchen');
INSERT INTO shop.products SELECT n, 2 + n % 5, (array['green tea','salt','pan','chai','pepper','bowl','cumin','kettle'])[n], CASE WHEN n <> 6 THEN n * 3.5 END,
  (array['{new,hot}','{}','{sale}',null]::text[])[1 + n % 4]::text[], jsonb_build_object('weight', n * 100, 'dims', jsonb_build_array(n, n + 1), 'origin', (array['in','lk','de'])[1 + n % 3]) FROM generate_series(1, 8) n;
INSERT INTO shop.lines SELECT n, 1 + (n + k) % 8, 1 + n * k % 5, round((n % 9 + k) * 1.1, 2) FROM generate_series(1, 160) n, generate_series(1, 2) k;
INSERT INTO shop.events SELECT n, CASE WHEN n % 11 > 0 THEN 1 + n * 5 % 12 END, (array['eu','us','eu','ap'])[1 + (1 + n * 5 % 12) % 4],
  ('00000000-0000-4000-8000-0000000' || lpad((n / 4)::text, 5, '0'))::uuid, (array['visit','view','cart','buy','view'])[1 + n * 3 % 5],
  timestamp '2026-01-01 00:00:00' + n * interval '2 hours 13 minutes', CASE WHEN n % 6 > 0 THEN n * 17 % 300 END,
  jsonb_build_object('page', '/p/' || n % 8, 'utm', jsonb_build_object('source', (array['ads','mail','none'])[1 + n % 3]), 'ab', n % 2 = 0, 'score', n % 13) FROM generate_series(1, 320) n;
INSERT INTO shop.employees SELECT n, CASE WHEN n > 1 THEN 1 + (n - 2) / 3 END, (array['Abe','Bea','Cal','Dot','Eli','Fay','Gil','Hana','Ike','Jan','Ken','Liv'])[n],
  (array['ops','sales','it'])[1 + n % 3], CASE WHEN n <> 9 THEN 3000 + n * 137 % 900 * 5 END, date '2019-01-15' + n * 143, n % 6 > 0, (array['{sql}','{sql,excel}','{}','{python,sql}'])[1 + n % 4]::text[] FROM generate_series(1, 12) n;
INSERT INTO shop.subscriptions SELECT n, 1 + n * 5 % 12, (array['eu','us','eu','ap'])[1 + (1 + n * 5 % 12) % 4], (array['free','pro','team'])[1 + n % 3], n % 3 * 15, date '2025-09-01' + n * 11,
  CASE WHEN n % 4 = 0 THEN date '2025-09-01' + n * 11 + 45 END FROM generate_series(1, 24) n;
INSERT INTO shop.payments SELECT n, n, (array['card','bank','cash'])[1 + n % 3], round((n * 37 % 211) * 1.25 + 0.05 - (n % 10 / 9) * 5, 2), CASE WHEN n % 8 > 0 THEN timestamptz '2025-10-06 10:00:00+00' + n * interval '1 day 4 hours' END
  FROM generate_series(1, 160) n WHERE n % 5 > 0;
INSERT INTO shop.samples VALUES
  (1, true, -7, 9007199254740993, 1.5, 0.1, 12345678901234567890.10, 'a "b" \\ é', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-01-31', '23:59:01.5',
   '2026-01-31 23:59:01.5', '2026-01-31 23:59:01.25+00', '1 year 2 days 03:04:05', '\\xdeadbeef00', '{"a": [1, null, 2], "b": "é"}', '{1,NULL,3}', '{"a,b",NULL,""}'),
  (2, false, 0, -1, 'NaN', '-Infinity', 'NaN', '', NULL, 'infinity', NULL, '-infinity', 'infinity', '-1 mons', '', 'null', '{}', '{{a,b},{c,d}}'),
  (3, NULL, NULL, NULL, 'Infinity', 1e300, -0.5, NULL, NULL, '0044-03-15 BC', NULL, '12026-01-01 00:00:00', '0044-03-15 00:00:00+00 BC', NULL, NULL, '17', '[0:1]={1,2}', NULL),
  (4, true, 12, 5, 2.5, 3.25, 42.42, 'Some words', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-02-28', '08:00:00', '2026-02-28 08:00:00', '2026-02-28 08:00:00+00', '15 minutes',
   '\\x00ff', '{"a": [], "b": {"c": true}}', '{5,6}', '{x}');
`;

const RELATIONSHIPS: readonly string[] = [
  'order_customer: { from: order.customer_id, to: customer.id, kind: many_to_one }',
  'event_customer: { from: event.customer_id, to: customer.id, kind: many_to_one }',
  'subscription_customer: { from: subscription.customer_id, to: customer.id, kind: many_to_one }',
  'payment_order: { from: payment.order_id, to: order.id, kind: many_to_one }',
  'product_category: { from: product.category_id, to: category.id, kind: many_to_one }',
  'category_parent: { from: category.parent_id, to: category.id, kind: many_to_one }',
  'employee_manager: { from: employee.manager_id, to: employee.id, kind: many_to_one }',
];

type Columns = Readonly<Record<string, string>>;

const LABELS: Readonly<Record<string, string>> = {
  email: ', pii: true',
  tax_no: ', sensitivity: secret',
};

function declared(table: string, columns: Columns): string {
  const lines = Object.entries(columns).map(
    ([name, type]) =>
      `          ${name}: { type: "${type.replace('!', '')}"${type.endsWith('!') ? ', nullable: false' : ''}${LABELS[name] ?? ''} }`,
  );
  return `      shop.${table}:\n        columns:\n${lines.join('\n')}`;
}

const MANIFEST = `
version: 1
tenant: test
features: { joins: any }
connectors:
  db:
    kind: pglite
    tables:
${[...TABLES.map((t) => declared(t.table, t.columns)), declared('lines', LINE)].join('\n')}
entities:
${TABLES.map((t) => `  ${t.name}: { source: db.shop.${t.table}, primary_key: [id], entity_key_columns: [${t.keys.join(', ')}], columns: [${Object.keys(t.columns).join(', ')}] }`).join('\n')}
bridges:
  line:
    source: db.shop.lines
    left: { entity: order, columns: [order_id] }
    right: { entity: product, columns: [product_id] }
    columns: [${Object.keys(LINE).join(', ')}]
relationships:
${RELATIONSHIPS.map((r) => `  ${r}`).join('\n')}
`;

const POLICY = policyText(
  'test',
  {
    'user:clerk': 'clerk',
  },
  `roles:
  clerk:
    grants:
${TABLES.map((t) =>
  t.name === 'customer'
    ? `      - { on: customer, columns: [id, name, email, born, region, signed_up], rows: "region <> 'ap'" }`
    : `      - { on: ${t.name}, columns: "*"${t.permitted === undefined ? '' : `, rows: "region <> 'ap'"`} }`,
).join('\n')}
      - { on: line, columns: "*" }
masks: { pii: redact }
limits: { query: 100000, catalog: 100000 }
`,
);

function created(table: string, columns: Columns, key: string): string {
  const list = Object.entries(columns).map(([n, type]) => `${n} ${type.replace('!', ' NOT NULL')}`);
  return `CREATE TABLE shop.${table} (${list.join(', ')}, PRIMARY KEY (${key}));`;
}

const SCRIPT = `CREATE SCHEMA shop;
${TABLES.map((t) => created(t.table, t.columns, 'id')).join('\n')}
${created('lines', LINE, 'order_id, product_id')}
${FILL}`;

/** The caller's session on the gateway, and one on a Postgres that has what the caller may see and nothing else. */
export interface MeasuredWorld {
  readonly gateway: pg.Client;
  readonly postgres: pg.Client;
  /** Of a superuser, to the copy. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * The shop stands in a database of `server`, the copy of what is permitted in another, which has the name that the
 * gateway's has.
 */
export async function openMeasuredWorld(server: NativePostgres): Promise<MeasuredWorld> {
  const own = await databaseOf(server.url);
  const shop = await useServer(server.url);
  const test = await startTestService({ manifest: MANIFEST, policy: POLICY, script: SCRIPT, postgres: shop });
  const catalogs = new Catalogs({ dir: IMAGE_DIR });
  await catalogs.warm();
  const frontend = createPgFrontend(test.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  const password = await mintToken(
    { tenant: 'test', chain: ['user:clerk'], aclRoles: ['clerk'], roles: [] },
    { algorithm: 'HS256', secret: test.open.keys.signing },
  );
  const gateway = await connectPg({ port, user: 'user:clerk', password });
  const postgres = await referenceClient(own, test.service);
  await copyPermitted(own);
  return {
    gateway,
    postgres,
    url: own,
    async close() {
      await postgres.end();
      await gateway.end();
      await frontend.stop();
      await catalogs.close();
      await test.close();
      await shop.stop();
    },
  };
}

async function databaseOf(serverUrl: string): Promise<string> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query('CREATE DATABASE osl');
  await admin.end();
  const url = new URL(serverUrl);
  url.pathname = '/osl';
  return url.href;
}

async function copyPermitted(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(SCRIPT);
  // The rows of a hidden region go, and with them what foreign keys refer to.
  await admin.query('SET session_replication_role = replica');
  for (const { name, table, permitted, columns } of TABLES) {
    const names = Object.keys(columns).filter((c) => c !== 'tax_no');
    await admin.query(
      `INSERT INTO entities."${name}" (${names.join(', ')}) SELECT ${names.join(', ')} FROM (${permitted ?? `select * from shop.${table}`}) permitted`,
    );
  }
  await admin.query('INSERT INTO entities.line SELECT * FROM shop.lines');
  await admin.query('DROP SCHEMA shop CASCADE');
  await admin.query('ANALYZE');
  await admin.end();
}
