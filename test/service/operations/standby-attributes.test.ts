import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { NO_BINARIES } from '../../support/native-postgres.js';
import { startPair } from '../../support/replicated-postgres.js';
import { files, tables } from './store.js';
import { asked, served, tokenFor } from './support.js';

/** Rights that are read from entities of the primary, and rows of a standby that is behind. */

const MANIFEST = `version: 1
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    standbys: { url_envs: [STANDBY], max_lag_ms: 600000 }
    tables:
      shop.account: { columns: { id: { type: int4 }, name: { type: text } } }
      shop.member: { columns: { who: { type: text }, team: { type: text } } }
entities:
  account: { source: db.shop.account, primary_key: [id], columns: { id: { column: id }, name: { column: name } } }
  member: { source: db.shop.member, primary_key: [who, team], columns: { who: { column: who }, team: { column: team } } }
`;
const MAX_AGE_S = 2;
const POLICY = `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst], attributes: { who: ann } } }
attributes: { teams: { on: member, column: team, rows: "who = attribute('who')", max_age: ${MAX_AGE_S} } }
roles: { analyst: { grants: [{ on: account, columns: [id], rows: "name = attribute('teams')" }] } }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;
const IDS = 'select id from osl.entities.account order by id';

const pair = await startPair();
t.teardown(() => pair?.stop());

t.test(
  'who is new in a team does not see what left it before',
  { skip: pair === null && NO_BINARIES },
  async (t) => {
    if (pair === null) return;
    const { primary, standby } = pair;
    const team =
      "create table shop.member (who text, team text); insert into shop.member values ('ann', 'red');";
    await primary.query(tables("select n, 'blue' from generate_series(1, 2) n", team));
    const where = files(MANIFEST, POLICY);
    const urlOf = (port: number): string => `postgres://osl_reader:osl@127.0.0.1:${port}/postgres`;
    const server = await served(t, where, { STORE_URL: urlOf(primary.port), STANDBY: urlOf(standby.port) });
    const token = await tokenFor(where.dataDir);
    const ask = async (): Promise<{ readonly ids: readonly unknown[]; readonly from: string }> => {
      const more = { authorization: `Bearer ${token}` };
      const { status, body } = await asked(server, '/osl/query', { osql: IDS }, more);
      if (status !== 200) throw new Error(`${status} ${body}`);
      const { rows, freshness } = JSON.parse(body);
      return { ids: rows.map(({ id }: { id: unknown }) => id), from: freshness?.from ?? 'live' };
    };
    const until = async (isSo: (answer: Awaited<ReturnType<typeof ask>>) => boolean): Promise<void> => {
      while (!isSo(await ask())) await sleep(20);
    };

    await until(({ from }) => from === 'standby');
    t.pass('a standby answers once it has what was committed before the rights were read');

    const at = { host: '127.0.0.1', port: Number(server.record().pgPort), database: 'osl' };
    const client = new pg.Client({ ...at, user: 'user:analyst', password: token });
    await client.connect();
    t.teardown(() => client.end());
    const inBlock = async (): Promise<readonly unknown[]> => {
      await client.query('begin isolation level repeatable read');
      const { rows } = await client.query(IDS);
      await client.query('commit');
      return rows.map(({ id }) => id);
    };

    await standby.query('select pg_wal_replay_pause()');
    await primary.query("update shop.account set name = 'green' where id = 1");
    await primary.query("update shop.member set team = 'blue'");
    await until(({ ids }) => ids.length > 0);
    for (let i = 0; i < 5; i += 1) {
      t.strictSame(await ask(), { ids: [2], from: 'live' }, 'account 1 was never for ann');
      t.strictSame(await inBlock(), [2], 'nor in a block');
    }
    await standby.query('select pg_wal_replay_resume()');
    await until(({ from }) => from === 'standby');
    t.strictSame((await ask()).ids, [2]);

    // What is read may have been committed after reading began.
    await sleep(1_000 * MAX_AGE_S);
    const writer = new pg.Client(primary.url);
    await writer.connect();
    await writer.query('begin');
    await writer.query('lock table shop.member');
    const slow = ask();
    await sleep(300);
    await primary.query('create table shop.other (id int)');
    await sleep(1_500); // the standby has what was committed when reading began
    await standby.query('select pg_wal_replay_pause()');
    await primary.query("update shop.account set name = 'blue' where id = 1");
    await primary.query("update shop.account set name = 'green' where id = 2");
    await writer.query("update shop.member set team = 'green'");
    await writer.query('commit');
    t.strictSame(await slow, { ids: [2], from: 'live' });
    await writer.end();
    await standby.query('select pg_wal_replay_resume()');
  },
);
