import t, { type Test } from 'tap';
import { hasVector, NO_CITUS, startCitus } from '../../support/citus.js';
import { facetText } from '../../support/model-text.js';
import { osl } from '../../tools/cli/support.js';
import { files } from '../operations/store.js';
import { fileArgs, served } from '../operations/support.js';
import { connected } from './served.js';

/**
 * RETRIEVE over distributed tables of Citus gives the answers of plain tables while its store is on the coordinator,
 * where `osl index` creates it; a store that is distributed serves callers with a row filter.
 */

const COLUMNS = 'columns: { id: { type: int4 }, tenant: { type: int4 }, name: { type: text } }';
const NOTE_COLUMNS = 'columns: { id: { type: text }, account: { type: int4 }, body: { type: text } }';
const entity = (name: string, schema: string): string =>
  `  ${name}: { source: db.${schema}.account, primary_key: [id], columns: [id, tenant, name] }`;
const MANIFEST = `version: 1
features: { joins: any }
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables:
      parts.account: { ${COLUMNS} }
      parts.note: { ${NOTE_COLUMNS} }
      one.account: { ${COLUMNS} }
      one.note: { ${NOTE_COLUMNS} }
entities:
${entity('account', 'parts')}
${entity('account_one', 'one')}
facets:
${facetText('note', 'parts.note', 'account', 'account')}
    versions: { raw: {} }
    retrieval: { max_top_k: 50 }
${facetText('note_one', 'one.note', 'account_one', 'account')}
    versions: { raw: {} }
    retrieval: { max_top_k: 50 }
`;
const grants = (rows: string): string =>
  ['', '_one']
    .flatMap((suffix) => [
      `{ on: account${suffix}, columns: "*"${rows} }`,
      `{ on: note${suffix}, columns: "*" }`,
    ])
    .join(', ');
const POLICY = `version: 1
tenant: demo
subjects:
  user:all: { ceiling: [all] }
  user:own: { ceiling: [own], attributes: { tenant: 1 } }
roles:
  all: { grants: [${grants('')}] }
  own: { grants: [${grants(`, rows: "tenant = attribute('tenant')"`)}] }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;

/** Questions with `{}` for the suffix of the names. */
const QUESTIONS = [
  "select r.text from RETRIEVE(facet => 'note{}', query => 'windmill', top_k => 50) r order by r.text",
  "select r.text from RETRIEVE(facet => 'note{}', query => 'a harbour in the north', top_k => 5) r order by r.score desc, r.text",
  `select a.name, r.text from account{} a join RETRIEVE(facet => 'note{}', query => 'windmill', top_k => 20) r
   on a.id = r.account order by r.text`,
];

const FILL = `
  create schema parts; create schema one;
  create table one.account (id int primary key, tenant int not null, name text not null);
  create table one.note (id text, account int not null, body text not null, primary key (account, id));
  insert into one.account select n, n % 2, 'account ' || n from generate_series(1, 20) n;
  insert into one.note select 'note ' || n, n, case n % 3 when 0 then 'a windmill by the sea, number '
    when 1 then 'a harbour in the north, number ' else 'minutes of meeting ' end || n from generate_series(1, 20) n;
  create table parts.account (like one.account including all); create table parts.note (like one.note including all)`;

const NO_VECTOR = 'the servers with Citus have no pgvector';

t.setTimeout(240_000);
const cluster = hasVector() ? await startCitus(2, ['citus.shard_count=4']) : null;
t.teardown(() => cluster?.stop());
const skip = cluster === null ? (hasVector() ? NO_CITUS : NO_VECTOR) : false;
t.test('RETRIEVE over Citus', { skip }, async (t: Test) => {
  if (cluster === null) throw new Error('it is skipped then');
  const { coordinator, readerUrl } = cluster;
  await coordinator.query(FILL);
  await coordinator.query("select create_distributed_table('parts.account', 'id')");
  await coordinator.query(
    "select create_distributed_table('parts.note', 'account', colocate_with => 'parts.account')",
  );
  await coordinator.query(
    `insert into parts.account select * from one.account; insert into parts.note select * from one.note;
     grant usage on schema parts, one to osl_reader; grant select on all tables in schema parts, one to osl_reader`,
  );
  const where = files(MANIFEST, POLICY);
  const env = { STORE_URL: readerUrl, STORE_URL_SYSTEM: coordinator.url };
  t.match(await osl(['index', ...fileArgs(where)], { env }), { code: 0 });
  const server = await served(t, where, env);
  const callers = ['all', 'own'] as const;
  const ask = new Map<string, Awaited<ReturnType<typeof connected>>>();
  for (const role of callers) ask.set(role, await connected(t, server, where, [`user:${role}`], role));
  const answer = (role: string, text: string, suffix: string) =>
    ask.get(role)?.(text.replaceAll('{}', suffix)) ?? Promise.reject(new Error(`there is no caller ${role}`));

  await t.test('with the store on the coordinator', async (t) => {
    for (const role of callers)
      for (const text of QUESTIONS) {
        const got = await answer(role, text, '');
        t.match(got, { code: null }, text);
        t.strictSame(got, await answer(role, text, '_one'), `${role}: ${text}`);
        t.not(got.rows.length, 0, `${role}: ${text} has rows`);
      }
  });

  await t.test('with the store distributed', async (t) => {
    const stores = await coordinator.query(
      `select c.oid::regclass::text as name from pg_class c join pg_attribute a on a.attrelid = c.oid
        where a.attname = 'chunk_id' and c.relkind = 'r' and c.relname like '%note%' and c.relname not like '%note_one%'`,
    );
    t.not(stores.length, 0);
    for (const { name } of stores)
      await coordinator.query(`select create_distributed_table('${String(name)}', 'chunk_id')`);
    const [text = ''] = QUESTIONS;
    t.strictSame(await answer('own', text, ''), await answer('own', text, '_one'));
    t.match(await answer('all', text, ''), { code: '0A000', message: /Citus/ });
  });
});
