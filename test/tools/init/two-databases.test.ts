import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import t, { test } from 'tap';
import { parse, stringify } from 'yaml';
import { policyText } from '../../support/model-text.js';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, Server, temporary } from '../cli/support.js';

t.setTimeout(600_000);

const databases = [await startNativePostgres(), await startNativePostgres()];
t.teardown(() => Promise.all(databases.map((d) => d?.stop())));
const skip = databases.includes(null) && NO_NATIVE;

/** Tables of one name in both. */
const SCRIPTS = [
  `CREATE SCHEMA shop; CREATE TABLE shop.people (id int PRIMARY KEY, email text, country text);
   INSERT INTO shop.people VALUES (1, 'ada@example.org', 'de'), (2, 'bo@example.org', 'fr'), (3, 'cy@example.org', 'de');`,
  `CREATE SCHEMA shop; CREATE TABLE shop.people (id int PRIMARY KEY, payer int, amount numeric, email text);
   INSERT INTO shop.people VALUES (10, 1, 5, 'books@example.org'), (11, 2, 7, NULL), (12, 1, 9, 'more@example.org');`,
];
const READABLE = `GRANT USAGE ON SCHEMA shop TO osl_reader; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO osl_reader`;

const POLICY = policyText(
  'both',
  {
    'user:both': 'both',
    'user:one': 'one',
  },
  `roles:
  both:
    grants:
      - { on: customer, columns: "*", rows: country = 'de' }
      - { on: payment, columns: [id, payer, amount, email] }
  one:
    grants: [{ on: customer, columns: [id] }]
masks: { pii: redact }
`,
);

async function onDatabase(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows ?? [];
  } finally {
    await client.end();
  }
}

/** What `osl init` makes of one database, with names of its own: there are two of them. */
async function adopted(native: NativePostgres, connector: string, entity: string, variable: string) {
  const dir = temporary();
  const made = await osl(['init', dir, '--yes', '--json', '--subject', 'user:x', '--url-env', variable], {
    env: { [variable]: native.readerUrl },
  });
  if (made.code !== 0) throw new Error(made.stderr);
  const { connectors, entities, metrics } = parse(readFileSync(join(dir, 'manifest.yaml'), 'utf8'));
  const own = Object.values<{ entity: string }>(metrics).map((m, i) => [`${entity}_${i}`, { ...m, entity }]);
  return {
    connectors: { [connector]: connectors.db },
    entities: { [entity]: { ...entities.people, source: `${connector}.shop.people` } },
    metrics: Object.fromEntries(own),
  };
}

test('two databases in one manifest: each is asked by itself, under one policy, and a question over both is refused by name', {
  skip,
}, async (t) => {
  const [crm = null, books = null] = databases;
  if (crm === null || books === null) throw new Error('it is skipped then');
  for (const [i, { url }] of [crm, books].entries()) await onDatabase(url, `${SCRIPTS[i]}${READABLE}`);
  const first = await adopted(crm, 'crm', 'customer', 'CRM_URL');
  const second = await adopted(books, 'books', 'payment', 'BOOKS_URL');
  const manifest = {
    version: 1,
    tenant: 'both',
    connectors: { ...first.connectors, ...second.connectors },
    entities: {
      ...first.entities,
      payment: { ...second.entities['payment'], entity_key_columns: ['id', 'payer'] },
    },
    metrics: { ...first.metrics, ...second.metrics },
    relationships: { payer: { from: 'payment.payer', to: 'customer.id', kind: 'many_to_one' } },
  };
  t.same(Object.keys(manifest.entities), ['customer', 'payment']);
  const dir = temporary();
  const [file, policy] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(file, stringify(manifest));
  writeFileSync(policy, POLICY);
  const env = { CRM_URL: crm.readerUrl, BOOKS_URL: books.readerUrl };
  const server = new Server(
    ['serve', '--json', '--manifest', file, '--policy', policy],
    join(dir, '.osl'),
    env,
  );
  t.teardown(() => server.signal('SIGTERM'));
  await server.said('"listening"');
  const { httpPort, pgPort } = server.record();
  const tokenOf = async (subject: string): Promise<string> =>
    (
      await osl(['token', '--data-dir', server.dataDir, '--policy', policy, '--subject', subject])
    ).stdout.trim();
  const tokens = new Map([
    ['user:both', await tokenOf('user:both')],
    ['user:one', await tokenOf('user:one')],
  ]);
  const ask = async (
    body: unknown,
    who = 'user:both',
    path = '/osl/query',
  ): Promise<Record<string, unknown>> => {
    const reply = await fetch(`http://127.0.0.1:${String(httpPort)}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.get(who)}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: reply.status, ...((await reply.json()) as Record<string, unknown>) };
  };
  const wire = (sql: string, who = 'user:both') =>
    onDatabase(
      `postgres://${encodeURIComponent(who)}:${tokens.get(who)}@127.0.0.1:${String(pgPort)}/osl`,
      sql,
    );

  const customers = [
    { id: 1, email: '[redacted]', country: 'de' },
    { id: 3, email: '[redacted]', country: 'de' },
  ];
  const payments = [
    { id: 10, payer: 1, amount: '5', email: '[redacted]' },
    { id: 11, payer: 2, amount: '7', email: '[redacted]' },
    { id: 12, payer: 1, amount: '9', email: '[redacted]' },
  ];
  t.match(await ask({ osql: 'select * from osl.entities.customer order by id' }), { rows: customers });
  t.match(await ask({ osql: 'select * from osl.entities.payment order by id' }), { rows: payments });
  t.same(await wire('select * from customer order by id'), customers);
  t.same(await wire('select * from payment order by id'), payments);
  t.match(await ask({ kind: 'table', name: 'payment', limit: 1 }, 'user:both', '/osl/sample'), {
    rows: payments.slice(0, 1),
  });

  const ACROSS = { status: 400, code: 'E0511', hint: /lies in another database: ask in two queries/ };
  for (const osql of [
    'select c.id from osl.entities.customer c join osl.entities.payment p on c.id = p.payer',
    'select id from osl.entities.customer union all select id from osl.entities.payment',
    'select id from osl.entities.customer where id in (select id from osl.entities.payment)',
    'with c as (select id from osl.entities.customer), p as (select id from osl.entities.payment) select * from c join p on c.id = p.id',
    'select (select count(*) from osl.entities.payment) as n, id from osl.entities.customer',
  ]) {
    t.match(await ask({ osql }), ACROSS, osql);
    await t.rejects(wire(osql.replaceAll('osl.entities.', '')), { code: '0A000' }, osql);
  }
  t.match(
    await ask({
      osql: 'select c.id from osl.entities.customer c join osl.entities.payment p on c.id = p.amount',
    }),
    { status: 400, code: 'E0514' },
  );
  t.match(await ask({ metrics: ['payment_0'], group_by: ['customer__country'] }), ACROSS);
  const walk = `select id from TRAVERSE(anchor => 'payment', target => 'customer', keys => ('10'))`;
  t.match(await ask({ osql: walk }), ACROSS, walk);
  t.match(await ask({ metrics: ['customer_0', 'payment_0'] }), { status: 400, code: 'E0511' });

  const listed = `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'entities' and c.relkind = 'r' order by 1`;
  t.same(await wire(listed), [{ relname: 'customer' }, { relname: 'payment' }]);
  t.same(await wire(listed, 'user:one'), [{ relname: 'customer' }]);
  t.same(
    await wire("select conname from pg_constraint where contype = 'f'"),
    [],
    'no tool is told to join along it',
  );
  const schema = await fetch(`http://127.0.0.1:${String(httpPort)}/osl/schema?governed=true`, {
    headers: { authorization: `Bearer ${tokens.get('user:both')}` },
  });
  const told = (await schema.json()) as { readonly relationships: unknown; readonly forms: unknown };
  t.match(told.relationships, [{ name: 'payer', examples: [] }]);
  t.notMatch(
    JSON.stringify(told.forms),
    /join osl.entities.customer|anchor => 'payment'/,
    'nor shown an example',
  );
  t.match(await ask({ osql: 'select id from osl.entities.payment' }, 'user:one'), { code: 'E0512' });
  t.match(
    await ask(
      { osql: 'select c.id from osl.entities.customer c join osl.entities.payment p on c.id = p.id' },
      'user:one',
    ),
    { code: 'E0512' },
    'that there is another database is not told to who may not see it',
  );
});
