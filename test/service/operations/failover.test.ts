import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { verifyAuditLog } from '../../../audit/index.js';
import { NO_BINARIES } from '../../support/native-postgres.js';
import { startPair } from '../../support/replicated-postgres.js';
import { ACCOUNTS, ACCOUNTS_MANIFEST, files } from './store.js';
import { asked, served, tokenFor } from './support.js';

/** A primary that is killed, a standby that is promoted, servers that restart: seen from outside `osl serve`. */

const POLICY = `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst] } }
roles: { analyst: { grants: [{ on: account, columns: [id, name] }] } }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;
const NAMES = 'select name from osl.entities.account order by id';

const pair = await startPair();
if (pair === null) {
  t.test('failover', { skip: NO_BINARIES }, async () => undefined);
} else {
  t.teardown(() => pair.stop());
  const { primary, standby } = pair;
  await primary.query(ACCOUNTS);
  while ((await standby.query("select to_regclass('shop.account') as t"))[0]?.['t'] === null) await sleep(20);

  const url = (attrs: string): string =>
    `postgres://osl_reader:osl@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres${attrs}`;

  const opened = async (t: Test, storeUrl: string) => {
    const where = files(ACCOUNTS_MANIFEST, POLICY);
    const server = await served(t, where, { STORE_URL: storeUrl, OSL_POOL_SIZE: '4' });
    const token = await tokenFor(where.dataDir);
    const authorization = `Bearer ${token}`;
    const rest = async (): Promise<string> => {
      const { status, body } = await asked(server, '/osl/query', { osql: NAMES }, { authorization });
      return status === 200 && /ann.*bob/.test(body) ? 'ok' : `${status} ${body}`;
    };
    const wire = async (): Promise<pg.Client> => {
      const at = { host: '127.0.0.1', port: Number(server.record().pgPort), database: 'osl' };
      const client = new pg.Client({ ...at, user: 'user:analyst', password: token });
      client.on('error', () => undefined);
      await client.connect();
      t.teardown(() => client.end());
      return client;
    };
    return { where, server, rest, wire };
  };
  const rows = (client: pg.Client): Promise<unknown> => client.query(NAMES).then(({ rows }) => rows);
  const EXPECTED = [{ name: 'ann' }, { name: 'bob' }];
  /** With which server the sessions of the gateway are. */
  const sessionsAt = async (member: typeof primary): Promise<boolean> => {
    const sql = "select count(*)::int as n from pg_stat_activity where application_name = 'osl-gateway'";
    return Number((await member.query(sql))[0]?.['n']) > 0;
  };

  await t.test('a standby where one is wanted, and a word that libpq does not know', async (t) => {
    const { rest } = await opened(t, url('?target_session_attrs=standby'));
    t.equal(await rest(), 'ok');
    t.same([await sessionsAt(primary), await sessionsAt(standby)], [false, true]);
    const { rest: preferring } = await opened(t, url('?target_session_attrs=prefer-standby'));
    t.equal(await preferring(), 'ok');
    t.equal(await sessionsAt(primary), false, 'while there is a standby');
    await t.rejects(opened(t, url('?target_session_attrs=leader')), 'no start');
  });

  await t.test('sessions that the server ended while they rested are no matter of a caller', async (t) => {
    const { rest, wire } = await opened(t, url('?target_session_attrs=primary'));
    const clients = await Promise.all([wire(), wire(), wire()]);
    for (let i = 0; i < 6; i++) await Promise.all(clients.map(rows)); // shared sessions too
    const ended =
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl-gateway'";
    for (let i = 0; i < 5; i++) {
      await primary.query(ended);
      const answers = await Promise.all([...clients.map(rows), rest()]);
      t.same(answers, [EXPECTED, EXPECTED, EXPECTED, 'ok']);
    }
  });

  await t.test('a transaction block hears that its session is gone', async (t) => {
    const { wire } = await opened(t, url(''));
    const client = await wire();
    await client.query('begin isolation level repeatable read');
    t.same(await rows(client), EXPECTED);
    await primary.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl-gateway'",
    );
    await t.rejects(rows(client), { code: '08006' }, 'what it has read it cannot read again');
    await client.query('rollback');
    t.same(await rows(client), EXPECTED);
  });

  await t.test('a statement that an operator ends is not begun again', async (t) => {
    const { wire } = await opened(t, url('?target_session_attrs=primary'));
    const client = await wire();
    const locker = new pg.Client(primary.url);
    await locker.connect();
    t.teardown(() => locker.end());
    await locker.query('begin; lock table shop.account');
    const failed = rows(client).catch((error: unknown) => error);
    const waiting = `from pg_stat_activity where application_name = 'osl-gateway' and wait_event_type = 'Lock'
      and clock_timestamp() - query_start > interval '1.1 s'`;
    while ((await primary.query(`select pg_terminate_backend(pid) ${waiting}`)).length === 0) await sleep(20);
    t.match(await failed, { code: '08006' });
    await locker.query('rollback');
    t.same(await rows(client), EXPECTED);
  });

  await t.test('a primary that is killed and starts again, under load', async (t) => {
    const { where, rest, wire } = await opened(t, url('?target_session_attrs=read-write'));
    const clients = await Promise.all([wire(), wire()]);
    const wrong: unknown[] = [];
    let asking = true;
    t.teardown(() => {
      asking = false;
    });
    let answered = 0;
    const load = [...clients.map((client) => () => rows(client).then((r) => JSON.stringify(r))), rest].map(
      async (ask, i) => {
        while (asking) {
          const answer = await ask().catch((error: unknown) => String(error));
          answered += 1;
          if (answer === 'ok' || answer === JSON.stringify(EXPECTED)) continue;
          wrong.push([i, answer]);
          await sleep(20); // a client whose connection is gone fails at once, and would let nothing else run
        }
      },
    );
    while (answered < 200) await sleep(10);
    for (let i = 0; i < 2; i++) {
      await primary.kill();
      await primary.up();
      const before = answered;
      while (answered < before + 200) await sleep(10);
    }
    asking = false;
    await Promise.all(load);
    t.same(wrong.slice(0, 5), [], 'nobody heard of it');
    t.match(await verifyAuditLog(`${where.dataDir}/audit`), {
      integrity: 'intact',
      completeness: 'complete',
    });
  });

  await t.test(
    'a primary that is killed for good: the standby takes its place once it is promoted',
    async (t) => {
      const { rest, wire } = await opened(t, url('?target_session_attrs=primary'));
      const client = await wire();
      t.same(await rows(client), EXPECTED);
      await primary.kill();
      const asked = [rows(client), rest()];
      await standby.promote();
      t.same(await Promise.all(asked), [EXPECTED, 'ok'], 'asked while there was no primary');
      t.equal(await sessionsAt(standby), true);
      const { rest: preferring } = await opened(t, url('?target_session_attrs=prefer-standby'));
      t.equal(await preferring(), 'ok', 'where there is no standby any server does');
      await standby.query("update shop.account set name = 'Ann' where id = 1");
      t.same(await rows(client), [{ name: 'Ann' }, { name: 'bob' }], 'what is written there is read there');
    },
  );
}
