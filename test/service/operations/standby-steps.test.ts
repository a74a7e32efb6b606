import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { bridgeText, facetText } from '../../support/model-text.js';
import { NO_BINARIES } from '../../support/native-postgres.js';
import { type Pair, startPair } from '../../support/replicated-postgres.js';
import { osl } from '../../tools/cli/support.js';
import { files, tables } from './store.js';
import { asked, fileArgs, type Place, served, tokenFor } from './support.js';

/** Queries with several statements, TRAVERSE and RETRIEVE, on a streaming standby. */

const MANIFEST = `version: 1
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    standbys: { url_envs: [STANDBY], max_lag_ms: 600000 }
    tables:
      shop.account: { columns: { id: { type: int4 }, name: { type: text } } }
      shop.link: { columns: { a: { type: int4 }, b: { type: int4 } } }
      shop.note: { columns: { id: { type: text }, account: { type: int4 }, body: { type: text } } }
entities:
  account: { source: db.shop.account, primary_key: [id], columns: { id: { column: id }, name: { column: name } } }
bridges:
${bridgeText('link', 'shop.link', ['account', 'a'], ['account', 'b'])}
`;
const FACETS = `facets:
${facetText('note', 'shop.note', 'account', 'account')}
    versions: { raw: {} }
    retrieval: { max_top_k: 50 }
`;
const policy = (...more: readonly string[]): string => `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst] } }
roles:
  analyst:
    grants: [${['account', 'link', ...more].map((on) => `{ on: ${on}, columns: "*" }`).join(', ')}]
masks: {}
limits: { query: 100000, catalog: 100000 }
`;
const REACHED =
  "select id from TRAVERSE(anchor => 'account', target => 'account', keys => (1), direction => 'out', max_hops => 4) order by id";
const FOUND =
  "select r.text from RETRIEVE(facet => 'note', query => 'windmill', top_k => 9) r order by r.text";
const NO_VECTOR = 'a server of its own needs pgvector for the index of a facet';

const pair = await startPair();
const hasVector =
  pair !== null &&
  (await pair.primary.query("select 1 from pg_available_extensions where name = 'vector'")).length > 0;
t.teardown(() => pair?.stop());
await pair?.primary.query(
  tables(
    'select n, n::text from generate_series(1, 4) n',
    `create table shop.link (a int, b int, primary key (a, b));
     insert into shop.link values (1, 2);
     create table shop.note (id text primary key, account int, body text);
     insert into shop.note values ('first', 1, 'a windmill by the sea');`,
  ),
);

interface Answer {
  readonly id: string;
  readonly rows: readonly (readonly unknown[])[];
  readonly from: 'live' | 'standby';
  readonly asOf: string | null;
}

function envOf({ primary, standby }: Pair): Readonly<Record<string, string>> {
  const urlOf = (port: number): string => `postgres://osl_reader:osl@127.0.0.1:${port}/postgres`;
  return { STORE_URL: urlOf(primary.port), STORE_URL_SYSTEM: primary.url, STANDBY: urlOf(standby.port) };
}

/** Asks a gateway over the pair, whose standby is in use. */
async function opened(t: Test, pair: Pair, where: Place) {
  const { primary, standby } = pair;
  const server = await served(t, where, envOf(pair));
  const token = await tokenFor(where.dataDir);
  const ask = async (osql: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const more = { authorization: `Bearer ${token}`, ...headers };
    const { status, body } = await asked(server, '/osl/query', { osql }, more);
    if (status !== 200) throw new Error(`${status} ${body}`);
    const { request_id, rows, freshness } = JSON.parse(body);
    return {
      id: request_id,
      rows: rows.map((row: object) => Object.values(row)),
      from: freshness?.from ?? 'live',
      asOf: freshness?.as_of ?? null,
    };
  };
  const untilCaughtUp = async (): Promise<void> => {
    const [row] = await primary.query('select pg_current_wal_flush_lsn()::text as at');
    const sql = `select pg_last_wal_replay_lsn() >= '${String(row?.['at'])}' as y`;
    while ((await standby.query(sql))[0]?.['y'] !== true) await sleep(20);
    while ((await ask('select id from osl.entities.account where id = 1')).from !== 'standby')
      await sleep(50);
  };
  await untilCaughtUp();
  return { ask, untilCaughtUp };
}

async function outcomeOf({ dataDir }: Place, id: string): Promise<AuditRecord> {
  for (;;) {
    for await (const record of readRecords(join(dataDir, 'audit')))
      if (record.request_id === id && record.kind === 'outcome') return record;
    await sleep(20);
  }
}

t.test('all hops of TRAVERSE run on one standby', { skip: pair === null && NO_BINARIES }, async (t) => {
  if (pair === null) throw new Error('it is skipped then');
  const { primary, standby } = pair;
  const where = files(MANIFEST, policy());
  const { ask, untilCaughtUp } = await opened(t, pair, where);
  await standby.query('select pg_wal_replay_pause()');
  await primary.query('insert into shop.link values (2, 3)');
  const old = await ask(REACHED);
  t.match(old, { rows: [[2]], from: 'standby' }, 'the first hop and the second, as of then');
  t.match((await outcomeOf(where, old.id)).standby, { name: 'STANDBY', as_of: old.asOf });
  t.match(await ask(REACHED, { 'cache-control': 'no-cache' }), { rows: [[2], [3]], from: 'live' });
  await standby.query('select pg_wal_replay_resume()');
  await untilCaughtUp();
  while ((await ask(REACHED)).rows.length < 2) await sleep(20);
  t.match(await ask(REACHED), { rows: [[2], [3]], from: 'standby' });
});

const skip = (pair === null && NO_BINARIES) || (!hasVector && NO_VECTOR);
t.test('RETRIEVE runs on a standby that has the index as it was checked', { skip }, async (t) => {
  if (pair === null) throw new Error('it is skipped then');
  const { primary, standby } = pair;
  const where = files(`${MANIFEST}${FACETS}`, policy('note'));
  const index = async (): Promise<void> => {
    const run = await osl(['index', ...fileArgs(where)], { env: envOf(pair) });
    if (run.code !== 0) throw new Error(run.stderr);
  };
  await index();
  const { ask, untilCaughtUp } = await opened(t, pair, where);
  const first = ['a windmill by the sea'];
  const both = [first, ['another windmill']];
  t.match(await ask(FOUND), { rows: [first] });
  await untilCaughtUp();
  await sleep(1_000); // the standby is known to have the index as it was checked
  t.match(await ask(FOUND), { rows: [first], from: 'standby' });
  await standby.query('select pg_wal_replay_pause()');
  await primary.query("insert into shop.note values ('second', 2, 'another windmill')");
  await index();
  await sleep(5_100); // the index is checked again
  t.match(await ask(FOUND), { rows: both, from: 'live' }, 'the standby has not the index of now');
  await standby.query('select pg_wal_replay_resume()');
  while ((await ask(FOUND)).from !== 'standby') await sleep(50);
  t.match(await ask(FOUND), { rows: both, from: 'standby' });
});
