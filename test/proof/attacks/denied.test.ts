import t from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { at, startForms } from '../../language/forms/fixture.js';
import { WireClient } from '../../support/frontends.js';
import { bridgeText, facetText, grantsText, manifestText, policyText } from '../../support/model-text.js';
import { IMAGE_DIR } from '../../surfaces/catalog/support/world.js';
import { call, connected } from '../../surfaces/mcp/support.js';

/**
 * Objects that a deny rule takes away whole: who uses one is told that policy denies it, on every surface, in every form,
 * and no list, hint or document has its name. And what no grant names: no message of a walk has the name of such a
 * column or link.
 */

t.setTimeout(600_000);

/** Every name of what is denied holds this word, and nothing else does. */
const DENIED = 'ledger';
/** Every name of what no grant covers holds this one. */
const HIDDEN = 'secret';

const MANIFEST = manifestText(
  'books',
  {
    'b.account': 'id int4, name text not null, ledger_id int4',
    'b.ledger': 'id int4, title text not null, amount int4 not null',
    'b.entry': 'id int4, ledger_id int4, note text not null',
    'b.person': 'id int4, name text not null, secret_boss int4',
    'b.tie': 'account int4, person int4',
    'b.knows': 'account int4, person int4, secret_to int4',
    'b.note': 'id int4, ledger int4, body text not null',
    'b.memo': 'id int4, account int4, body text not null',
  },
  `entities:
  account:
    source: db.b.account
    primary_key: [id]
    entity_key_columns: [id, of]
    columns: { id: {}, name: {}, of: { column: ledger_id } }
    legs: [ledgermemos]
    derived:
      ledgermood: { facet: ledgermemos, operator: CLASSIFY, labels: [glad, sad], min_score: 0.01 }
  ledger:
    source: db.b.ledger
    primary_key: [id]
    columns: [id, title, amount]
    legs: [ledgernotes]
  entry:
    source: db.b.entry
    primary_key: [id]
    entity_key_columns: [id, of]
    columns: { id: {}, of: { column: ledger_id }, note: {} }
  person:
    source: db.b.person
    primary_key: [id]
    entity_key_columns: [id, secret_boss]
    columns: [id, name, secret_boss]
bridges:
${bridgeText('ledgertie', 'b.tie', ['account', 'account'], ['person', 'person'])}
  knows_secret:
    source: db.b.knows
    left: { entity: account, columns: [account] }
    right: { entity: person, columns: [secret_to] }
    columns: [account, person, secret_to]
relationships:
  account_ledger: { from: account.of, to: ledger.id, kind: many_to_one }
  entry_ledger: { from: entry.of, to: ledger.id, kind: many_to_one }
  secret_reports: { from: person.secret_boss, to: person.id, kind: many_to_one }
facets:
${facetText('ledgernotes', 'b.note', 'ledger', 'ledger')}
    scalar_indexed: [ledger]
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
${facetText('ledgermemos', 'b.memo', 'account', 'account')}
    scalar_indexed: [account]
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
metrics:
  ledger_total: { entity: ledger, expression: sum(amount) }
  ledger_count: { entity: ledger, expression: count(*) }
  ledger_share: { type: ratio, numerator: ledger_count, denominator: accounts }
  accounts: { entity: account, expression: count(*) }
raw_sql:
  allow: [db.b.account, db.b.ledger]
`,
);

const POLICY = policyText(
  'books',
  {
    'user:ann': 'reader, barred',
    'user:bo': 'outsider',
    'user:root': 'reader',
  },
  `roles:
  reader:
    grants:
${grantsText(['account', 'ledger', 'entry'])}
      - { on: person, columns: [id, name] }
      - { on: ledgertie, columns: "*" }
      - { on: knows_secret, columns: [account, person] }
${grantsText(['ledgernotes', 'ledgermemos'])}
  barred:
    grants: []
    deny: [{ on: ledger }, { on: ledgertie }, { on: ledgermemos }]
  outsider:
    grants: [{ on: account, columns: "*" }]
    deny: [{ on: ledger }, { on: ledgernotes }]
masks: {}
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA b;
CREATE TABLE b.account (id int4 PRIMARY KEY, name text NOT NULL, ledger_id int4);
CREATE TABLE b.ledger (id int4 PRIMARY KEY, title text NOT NULL, amount int4 NOT NULL);
CREATE TABLE b.entry (id int4 PRIMARY KEY, ledger_id int4, note text NOT NULL);
CREATE TABLE b.person (id int4 PRIMARY KEY, name text NOT NULL, secret_boss int4);
CREATE TABLE b.tie (account int4, person int4);
CREATE TABLE b.knows (account int4, person int4, secret_to int4);
CREATE TABLE b.note (id int4 PRIMARY KEY, ledger int4, body text NOT NULL);
CREATE TABLE b.memo (id int4 PRIMARY KEY, account int4, body text NOT NULL);
INSERT INTO b.ledger VALUES (1, 'one', 10), (2, 'two', 20);
INSERT INTO b.account VALUES (1, 'A', 1), (2, 'B', 2);
INSERT INTO b.entry VALUES (1, 1, 'x'), (2, 1, 'y');
INSERT INTO b.person VALUES (1, 'P', NULL), (2, 'Q', 1);
INSERT INTO b.tie VALUES (1, 1);
INSERT INTO b.knows VALUES (1, 2, 1);
INSERT INTO b.note VALUES (1, 1, 'a glad note');
INSERT INTO b.memo VALUES (1, 1, 'a glad memo');
`;

const forms = await startForms({ manifest: MANIFEST, policy: POLICY, script: SCRIPT, schema: 'b' });
t.teardown(() => forms.close());
const WIRE = await forms.wire('user:ann');

/** The wire as it is served, with catalogs. */
async function catalogClient(): Promise<WireClient> {
  const catalogs = new Catalogs({ dir: IMAGE_DIR });
  const frontend = createPgFrontend(forms.test.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  const client = await WireClient.login(port, 'user:ann', await forms.test.token('user:ann'));
  t.teardown(async () => {
    client.end();
    await frontend.stop(0);
    await catalogs.close();
  });
  return client;
}

const walk = (anchor: string, target: string, more = ''): string =>
  `TRAVERSE(anchor => '${anchor}', target => '${target}', keys => ('1')${more})`;
const notes = "RETRIEVE(facet => 'ledgernotes', query => 'glad', top_k => 2)";

/** Each names what is denied once, wherever a text can. */
const USES: readonly string[] = [
  'select count(*) from osl.entities.ledger',
  'select * from osl.entities.ledger',
  'select 1 from osl.entities.ledger',
  'select id from ledger',
  'select nothing_like_it from ledger',
  'select count(*) from ledger where false',
  'select id from account where id in (select id from ledger)',
  'select id from account a where exists (select 1 from ledger l where l.id = a.of)',
  'select (select count(*) from ledger) as n from account',
  'select a.id from account a join ledger l on l.id = a.of',
  'select a.id from account a, ledger l where l.id = a.of',
  'select a.id from account a left join ledger l on l.id = a.of',
  'with l as (select * from ledger) select count(*) from l',
  'select id from account union select id from ledger',
  'select a.id from account a join ledgertie t on t.account = a.id',
  'select measure(ledger_total) from ledger',
  'select measure(ledger_share) from account',
  `select id from ${walk('ledger', 'account')}`,
  `select id from ${walk('account', 'ledger')}`,
  `select id from ${walk('account', 'entry')}`,
  `select id from ${walk('account', 'entry', ", via => ('account_ledger', 'entry_ledger')")}`,
  `select id from ${walk('account', 'person')}`,
  `select id from ${walk('account', 'person', ", via => 'ledgertie'")}`,
  `select text from ${notes}`,
  `select l.id, r.text from ledger l join ${notes} r on l.id = r.ledger`,
  "select text from RETRIEVE(facet => 'ledgermemos', query => 'glad', top_k => 2)",
  'select id, evidence from ledger where id in (1)',
  'select id, evidence from account where id in (1)',
  'select id, ledgermood from account where id in (1)',
];

const DENIAL = /^policy denies the use of `(ledger\w*|account\.(evidence|ledgermood)|b\.ledger)`$/;

t.test(
  'whoever uses what is denied is told so, in every form, over REST and both protocols of the wire',
  async (t) => {
    for (const text of USES) {
      const rest = await forms.ask('user:ann', text);
      t.match(
        { code: rest.code, message: rest.message, status: rest.status },
        { code: 'E2101', message: DENIAL, status: 403 },
        text,
      );
      const explained = await forms.ask('user:ann', text, { explain: true });
      t.equal(explained.code, 'E2101', `explain ${text}`);
      t.match(
        (await forms.test.records(rest.requestId)).find((r) => r.kind === 'decision'),
        { decision: 'deny', code: 'E2101' },
      );
      for (const reply of [await WIRE.simple(text), await WIRE.extended(text)])
        t.match(
          reply.outcome,
          { kind: 'refused', code: 'E2101', sqlstate: '42501', message: DENIAL, hint: null },
          text,
        );
    }
  },
);

async function send(
  subject: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const ceiling = forms.test.service.model().snapshot?.subjects.get(subject)?.ceiling ?? new Set<string>();
  const token = await forms.fronts.token({ subject, aclRoles: [...ceiling] });
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const reply = await fetch(`http://127.0.0.1:${forms.fronts.httpPort}${path}`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...sent,
  });
  return { status: reply.status, text: await reply.text() };
}

t.test('raw SQL, metrics bodies and samples say the same', async (t) => {
  const bodies: readonly (readonly [string, unknown])[] = [
    ['/osl/query', { sql: 'select count(*) from b.ledger' }],
    ['/osl/query', { sql: 'select a.id from b.account a, b.ledger l' }],
    ['/osl/query', { metrics: ['ledger_total'] }],
    ['/osl/query', { metrics: ['ledger_count'] }],
    ['/osl/query', { metrics: ['LEDGER_SHARE'] }],
    ['/osl/query', { metrics: ['accounts'], group_by: ['ledger__title'] }],
    ['/osl/query', { metrics: ['accounts'], group_by: ['ledger'] }],
    ['/osl/query', { metrics: ['accounts'], where: ["{{ Dimension('ledger__title') }} = 'one'"] }],
    ['/osl/sample', { kind: 'table', name: 'ledger' }],
    ['/osl/sample', { kind: 'facet', name: 'ledgernotes' }],
    ['/osl/sample', { kind: 'facet', name: 'ledgermemos' }],
  ];
  for (const [path, body] of bodies) {
    const { status, text } = await send('user:ann', path, body);
    t.match(
      { status, code: at(JSON.parse(text), 'code') },
      { status: 403, code: 'E2101' },
      JSON.stringify(body),
    );
  }
  const client = await connected({ test: forms.test, port: forms.fronts.httpPort }, 'user:ann', 'auto');
  t.teardown(() => client.close());
  for (const tool of ['semantic_query', 'semantic_explain']) {
    const called = await call(client, tool, { osql: 'select count(*) from ledger' });
    t.ok(called.isError && JSON.stringify(called.content).includes('E2101'), tool);
  }
  const schema = await call(client, 'semantic_schema', {});
  t.notMatch(JSON.stringify(schema.content), DENIED);
});

t.test('it is in no list, document or hint', async (t) => {
  const documents = [
    '/osl/schema?governed=true',
    '/osl/domain-map?governed=true',
    ...['ledger', 'ledgers', 'ledger_total', 'notes', 'mood', 'title'].map(
      (w) => `/osl/schema/resolve?term=${w}`,
    ),
  ];
  for (const path of documents) {
    const { status, text } = await send('user:ann', path);
    t.equal(status, 200, path);
    const told = text.replace(/"term":"[^"]*"/, '');
    t.notMatch(told, DENIED, path);
  }
  t.match((await send('user:root', '/osl/schema?governed=true')).text, DENIED, 'who is not barred sees it');
  const client = await catalogClient();
  const listings = [
    "select c.relname, a.attname from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid where c.relnamespace in (select oid from pg_namespace where nspname not in ('pg_catalog', 'information_schema', 'pg_toast'))",
    "select table_name, column_name from information_schema.columns where table_schema not in ('pg_catalog', 'information_schema')",
    "select table_name from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')",
    'select description from pg_catalog.pg_description where objoid > 16383',
    "select conname, pg_get_constraintdef(oid) from pg_catalog.pg_constraint where contype = 'f'",
  ];
  for (const text of listings) {
    const { raw, outcome } = await client.simple(text);
    t.equal(outcome.kind, 'rows', `${text}: ${JSON.stringify(outcome)}`);
    t.notMatch(raw.toString('latin1'), DENIED, text);
  }
  const slips = [
    'select id from ledgr',
    'select id from osl.entities.ledgers',
    `select id from ${walk('ledgr', 'account')}`,
    `select id from ${walk('account', 'ledgr')}`,
    `select id from ${walk('account', 'person', ", via => 'edgertie'")}`,
    "select text from RETRIEVE(facet => 'edgernotes', query => 'x', top_k => 1)",
    'select edgermood from account',
    'select measure(edger_total) from account',
  ];
  for (const text of slips) {
    const { raw, message } = await forms.ask('user:ann', text);
    const echoed = raw.toString('utf8').replaceAll('osl.entities.ledgers', '');
    t.notMatch(echoed, DENIED, `${text}: ${message}`);
  }
  const metrics = await send('user:ann', '/osl/query', {
    metrics: ['edger_total'],
    group_by: ['edger__title'],
  });
  t.notMatch(metrics.text, DENIED);
});

t.test('what no grant covers does not exist, whatever a rule says of it', async (t) => {
  for (const text of ['select count(*) from ledger', `select id from ${walk('account', 'ledger')}`])
    t.equal((await forms.ask('user:bo', text)).code, 'E0512', text);
  t.match(await forms.ask('user:bo', `select text from ${notes}`), { status: 200, rows: [] });
});

t.test('no message of a walk names a column or a link that the caller may not see', async (t) => {
  const walks: readonly (readonly [string, string])[] = [
    [walk('person', 'person'), 'E2101'],
    [walk('person', 'person', ", direction => 'both'"), 'E2101'],
    [walk('person', 'person', ", via => 'ecret_reports'"), 'E0512'],
    [walk('person', 'person', ", via => 'reports'"), 'E0512'],
    [walk('account', 'person', ", via => 'knows_ecret'"), 'E0512'],
  ];
  for (const [call, code] of walks) {
    const { raw, ...told } = await forms.ask('user:ann', `select id from ${call}`);
    t.equal(told.code, code, `${call}: ${told.message}`);
    t.notMatch(raw.toString('utf8'), HIDDEN, call);
    const wire = await WIRE.simple(`select id from ${call}`);
    t.notMatch(wire.raw.toString('latin1'), HIDDEN, call);
  }
  const named = await forms.ask(
    'user:ann',
    `select id from ${walk('person', 'person', ", via => 'secret_reports'")}`,
  );
  const undeclared = await forms.ask(
    'user:ann',
    `select id from ${walk('person', 'person', ", via => 'public_reports'")}`,
  );
  t.equal(
    named.message.replace('secret', 'public'),
    undeclared.message,
    'a hidden link is as one that is not declared',
  );
});
