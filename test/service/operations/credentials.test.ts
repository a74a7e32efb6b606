import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { NO_BINARIES, startOwnPostgres } from '../../support/native-postgres.js';
import { osl, temporary } from '../../tools/cli/support.js';
import { adminToken } from './store.js';
import { asked, place, served, tokenFor } from './support.js';

/** Logins of a connector that come from a file or a command, and passwords that change while the server runs. */

const MANIFEST = `version: 1
connectors:
  db:
    kind: postgres
    url_env: STORE_URL
    tables: { shop.account: { columns: { id: { type: int4 } } } }
entities:
  account: { source: db.shop.account, primary_key: [id], columns: { id: { column: id } } }
`;
const POLICY = `version: 1
tenant: demo
subjects: { user:analyst: { ceiling: [analyst] }, user:admin: { ceiling: [analyst], admin: [TENANT_ADMIN] } }
roles: { analyst: { grants: [{ on: account, columns: [id] }] } }
masks: {}
limits: { query: 100000, catalog: 100000 }
`;

const native = await startOwnPostgres(); // a password counts there
if (native === null) {
  t.test('credentials', { skip: NO_BINARIES }, async () => undefined);
} else {
  t.teardown(() => native.stop());
  const admin = new pg.Client(native.url);
  await admin.connect();
  t.teardown(() => admin.end());
  await admin.query(`create schema shop; create table shop.account (id int primary key);
    insert into shop.account values (1), (2);
    grant usage on schema shop to osl_reader; grant select on all tables in schema shop to osl_reader;`);

  const dir = temporary();
  const secret = join(dir, 'url');
  const calls = join(dir, 'calls');
  const withPassword = (password: string): string => {
    const url = new URL(native.readerUrl);
    url.password = password;
    return url.href;
  };
  const rotate = async (password: string): Promise<void> => {
    await admin.query(`alter role osl_reader password '${password}'`);
    writeFileSync(secret, `${withPassword(password)}\n`);
  };
  const end = (): Promise<unknown> =>
    admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl-gateway'",
    );
  const written = () => {
    const where = place();
    writeFileSync(where.manifest, MANIFEST);
    writeFileSync(where.policy, POLICY);
    return where;
  };
  const opened = async (t: Test, env: Readonly<Record<string, string>>) => {
    const where = written();
    const server = await served(t, where, { OSL_LOG_LEVEL: 'info', ...env });
    const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
    const ask = async (): Promise<string> => {
      const osql = 'select count(*) as n from osl.entities.account';
      const { status, body } = await asked(server, '/osl/query', { osql }, { authorization });
      return status === 200 && /"n":"?2/.test(body) ? 'ok' : `${status} ${body}`;
    };
    return { where, server, ask };
  };

  const COMMAND = `echo called >> ${calls}; cat ${secret}`;
  const called = (): number => readFileSync(calls, 'utf8').split('\n').length - 1;

  for (const [name, env] of [
    ['a file', { STORE_URL_FILE: secret }],
    ['a command', { STORE_URL_COMMAND: COMMAND }],
  ] as const)
    await t.test(`a password that is changed under ${name} needs nobody`, async (t) => {
      await rotate('first-secret');
      const { server, ask } = await opened(t, { ...env, OSL_POOL_SIZE: '2' });
      t.equal(await ask(), 'ok');
      await rotate('second-secret');
      t.equal(await ask(), 'ok', 'sessions that are open stay');
      await end();
      t.equal(await ask(), 'ok', 'a new session takes the new password, and nobody heard of the old');
      const before = name === 'a command' ? called() : 0;
      for (let i = 0; i < 10; i++) t.equal(await ask(), 'ok');
      if (name === 'a command') t.equal(called(), before, 'it is not asked for what is known');
      await rotate('third-secret');
      const said = server.stderr.length;
      server.hangUp();
      while (!/^(?:not )?reloaded: /m.test(server.stderr.slice(said))) await sleep(20);
      t.match(server.stderr, /connector db by its URL of now/);
      await end();
      t.equal(await ask(), 'ok', 'SIGHUP takes it up too');
      t.notMatch(server.stderr + server.stdout, /first-secret|second-secret|third-secret/);
    });

  await t.test('a source that names another database is not followed', async (t) => {
    await rotate('first-secret');
    const { ask } = await opened(t, { STORE_URL_FILE: secret });
    t.equal(await ask(), 'ok');
    await admin.query("alter role osl_reader password 'second-secret'");
    writeFileSync(secret, withPassword('second-secret').replace('/postgres', '/template1'));
    await end();
    t.match(await ask(), /E0523/, 'the login is refused, and the other database is not asked');
    await rotate('second-secret');
    while ((await ask()) !== 'ok') await sleep(100);
  });

  await t.test('a command that fails for now says how, and is asked again', async (t) => {
    for (const [command, said] of [
      ['echo secret-1; echo secret-2 >&2; exit 3', 'the command in STORE_URL_COMMAND ended with status 3'],
      ['sleep 30; echo late', 'was stopped: it took more than 10 s'],
    ] as const) {
      const { server, ask } = await opened(t, { STORE_URL_COMMAND: command });
      t.match(await ask(), /E0523/, command);
      await server.said(said);
      t.notMatch(server.stderr, /secret-/);
    }
    const later = join(dir, 'later');
    const { ask } = await opened(t, {
      STORE_URL_COMMAND: `cat ${later}`,
      STORE_URL_SYSTEM_COMMAND: `cat ${later}`,
    });
    await rotate('first-secret');
    writeFileSync(later, withPassword('first-secret'));
    while ((await ask()) !== 'ok') await sleep(100);
  });

  await t.test(
    'a command that can give no URL ends a start, and nothing of what it printed is told',
    async (t) => {
      for (const [command, said] of [
        ['no-such-command-secret-1', /the command in STORE_URL_COMMAND ended with status 127/],
        ['echo postgres://a:secret-1@b/c; echo more', /must print one URL and nothing else/],
        ['true', /must print one URL and nothing else/],
        ['head -c 100000 /dev/zero', /printed more than 65536 bytes/],
      ] as const) {
        const { dataDir, manifest, policy } = written();
        const args = ['serve', '--manifest', manifest, '--policy', policy, '--data-dir', dataDir];
        const env = { STORE_URL_COMMAND: command, OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' };
        const run = await osl(args, { env });
        t.match(run, { code: 2, stderr: said }, command);
        t.notMatch(run.stderr, /secret-/);
      }
    },
  );

  await t.test('pools of a connector and of a role', async (t) => {
    await rotate('first-secret');
    const { server, where } = await opened(t, {
      STORE_URL: withPassword('first-secret'),
      STORE_URL_SYSTEM: native.url,
      STORE_URL_POOL_SIZE: '5',
      OSL_POOL_SIZE: '7',
      OSL_SYSTEM_POOL_SIZE: '3',
      OSL_WORKERS: '2',
      OSL_ADMIN_PORT: '0',
    });
    const headers = { authorization: `Bearer ${await adminToken(where)}` };
    const reply = await fetch(`http://127.0.0.1:${server.record()['adminPort']}/admin/pools`, { headers });
    const body = (await reply.json()) as Readonly<Record<string, unknown>>; // as the schema of the answer has it
    const sizes = (purpose: string): readonly unknown[] =>
      (body['pools'] as readonly Record<string, unknown>[]) // as the schema of the answer has it
        .filter((pool) => pool['purpose'] === purpose)
        .map((pool) => pool['size'])
        .sort();
    t.same(sizes('questions'), [2, 3], "the connector's own number, shared out");
    t.same(sizes('system'), [3, 3]);
    const { dataDir, manifest, policy } = written();
    const args = ['serve', '--manifest', manifest, '--policy', policy, '--data-dir', dataDir];
    const ports = { STORE_URL: withPassword('first-secret'), OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' };
    t.match(await osl(args, { env: { ...ports, STORE_URL_POOL_SIZE: '0' } }), {
      code: 2,
      stderr: /STORE_URL_POOL_SIZE must be a whole number from 1 to 1000/,
    });
    t.match(await osl([...args, '--workers', '3'], { env: { ...ports, STORE_URL_POOL_SIZE: '2' } }), {
      code: 2,
      stderr: /each worker needs a database session/,
    });
  });
}
