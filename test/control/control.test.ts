import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'tap';
import {
  activatePolicy,
  type ControlFault,
  controlUrl,
  listenForChanges,
  MIGRATIONS,
  migrate,
  openControl,
  pushPolicy,
  requireSchema,
} from '../../src/base/control/index.js';
import { generatedSql, sql } from '../../src/base/sql.js';
import { Control } from '../../src/service/control.js';
import { followPolicy } from '../../src/service/follow-control.js';
import { settingsFrom } from '../../src/service/settings.js';
import { osl } from '../tools/cli/support.js';
import { controlHouse, migrated, opened, placeOf, SKIP, until } from './support.js';

const VERSION = `insert into osl_control.policy_version (tenant, number, digest, text, author)
  values ('acme', $1, repeat('0', 64), 'text', 'me')`;

test('migrations run once, whoever begins them, and gateways that may not run them say who does', {
  skip: SKIP,
}, async (t) => {
  const house = await controlHouse(t);
  await t.rejects(requireSchema(opened(t, house.gateway)), {
    name: 'ControlFault',
    message: /run `osl control migrate` as its owner/,
  });
  const several = await Promise.all(
    [1, 2, 3].map(() => migrate(opened(t, house.owner), { gateway: [], author: [] })),
  );
  t.equal(several.flatMap(({ ran }) => ran).length, MIGRATIONS.length, 'each once');
  const again = await osl(
    ['control', 'migrate', '--gateway', house.roles.gateway, '--author', house.roles.author],
    { env: { OSL_CONTROL_URL: house.owner } },
  );
  t.match(again, { code: 0, stdout: new RegExp(`${house.roles.gateway} may serve`) });
  await requireSchema(opened(t, house.gateway));
  const wrong = await osl(['control', 'migrate', '--gateway', 'nobody_"there'], {
    env: { OSL_CONTROL_URL: house.owner },
  });
  t.match(wrong, { code: 2, stderr: /nobody_"there" does not exist/ });
});

test('who waits beside others for a server that says nothing hears so, and the process goes on', async (t) => {
  const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await once(silent, 'listening');
  const address = silent.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  // A promise that nobody holds and that rejects would end the process, and fails the test.
  const database = opened(t, `postgres://gateway@127.0.0.1:${address.port}/control`);
  const asked = await Promise.allSettled([1, 2, 3].map(() => database.query(sql`select 1`)));
  for (const outcome of asked) t.match(outcome, { status: 'rejected', reason: { name: 'ControlFault' } });
  await t.rejects(database.query(sql`select 1`), { name: 'ControlFault' }, 'by a pool of its own');
});

test('tools have a copy of the policy once the data directory exists', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const dir = mkdtempSync(join(tmpdir(), 'osl-control-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const manifestFile = join(dir, 'manifest.yaml');
  writeFileSync(manifestFile, 'version: 1\ntenant: acme\n');
  const author = opened(t, house.author);
  const { number } = await pushPolicy(author, 'acme', 'the policy', { author: 'me', comment: null });
  const by = { version: number, action: 'activate', author: 'me', comment: null } as const;
  await activatePolicy(author, 'acme', by, { activation: 0, published: 0 });
  const env = { OSL_CONTROL_URL: house.gateway, OSL_POLICY_SOURCE: 'control', OSL_MANIFEST: manifestFile };
  const settings = settingsFrom(env, dir);
  const nothing = (): void => undefined;
  // At a first start there is no data directory yet.
  const control = await Control.open(settings, { info: nothing, warn: nothing, error: nothing });
  t.teardown(() => control?.close());
  t.equal(await control?.read(settings.policyFile), 'the policy');
  t.notOk(existsSync(settings.policyFile));
  mkdirSync(settings.dataDir);
  await control?.poll();
  t.equal(readFileSync(settings.policyFile, 'utf8'), 'the policy');
});

test('a change during which the database seems silent is applied again', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const dir = mkdtempSync(join(tmpdir(), 'osl-control-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const manifestFile = join(dir, 'manifest.yaml');
  writeFileSync(manifestFile, 'version: 1\ntenant: acme\n');
  const silence = { OSL_CONTROL_SILENCE_SECONDS: '2' };
  const settings = settingsFrom(
    { OSL_CONTROL_URL: house.gateway, OSL_POLICY_SOURCE: 'control', OSL_MANIFEST: manifestFile, ...silence },
    dir,
  );
  const nothing = (): void => undefined;
  const log = { info: nothing, warn: nothing, error: nothing };
  const control = await Control.open(settings, log);
  const told: string[] = [];
  const follower = {
    onChange: async () => {
      told.push('change');
      if (told.length === 1) await until(() => told.includes('silent'));
    },
    onRevocations: async () => undefined,
    onSilence: async () => void told.push('silent'),
    onClockChange: nothing,
    onPolicyFile: async () => undefined,
  };
  const close = followPolicy(settings, control, follower, log);
  t.teardown(async () => {
    await close();
    await control?.close();
  });
  const author = opened(t, house.author);
  const { number } = await pushPolicy(author, 'acme', 'the policy', { author: 'me', comment: null });
  const by = { version: number, action: 'activate', author: 'me', comment: null } as const;
  await activatePolicy(author, 'acme', by, { activation: 0, published: 0 });
  await until(() => told.includes('silent'));
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  t.same(told, ['change', 'silent', 'change'], 'the policy that was dropped meanwhile is in force again');
});

test('the owner of an empty schema migrates it without further privileges', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  const database = new URL(house.postgres.url).pathname.slice(1);
  const { username: owner } = new URL(house.owner);
  await house.admin(`revoke create on database ${database} from ${owner}`);
  await house.admin(`create schema osl_control authorization ${owner}`);
  await requireSchema(opened(t, house.owner));
  await migrate(opened(t, house.owner), { gateway: [house.roles.gateway], author: [house.roles.author] });
  await requireSchema(opened(t, house.gateway));
});

test('a database of its own is made ready by the first gateway', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  const database = opened(t, house.owner);
  await requireSchema(database);
  await requireSchema(database);
  t.strictSame(await database.query(sql`select count(*)::int as n from osl_control.migration`), [
    { n: MIGRATIONS.length },
  ]);
});

test('what is written stays: by privilege for gateways and authors, by trigger for the owner too', {
  skip: SKIP,
}, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const [owner, gateway, author] = [house.owner, house.gateway, house.author].map((url) => opened(t, url));
  if (owner === undefined || gateway === undefined || author === undefined) throw new Error('three roles');
  await author.query(generatedSql(VERSION), [1]);
  const [row] = await gateway.query(
    sql`select login, at > now() - interval '1 hour' as now from osl_control.policy_version`,
  );
  t.strictSame(row, { login: house.roles.author, now: true });
  for (const sql of [
    "update osl_control.policy_version set text = 'other'",
    'delete from osl_control.policy_version',
    'truncate osl_control.policy_version cascade',
  ])
    for (const database of [owner, gateway, author])
      await t.rejects(database.query(generatedSql(sql)), { name: 'ControlFault', code: '42501' }, sql);
  await t.rejects(gateway.query(generatedSql(VERSION), [2]), { code: '42501' }, 'a gateway writes no policy');
  await t.rejects(
    author.query(sql`insert into osl_control.policy_version (tenant, number, digest, text, author, login)
      values ('acme', 2, repeat('0', 64), 'text', 'me', 'somebody')`),
    { code: '42501' },
    'who logged in, the database says',
  );
  await t.rejects(
    author.query(sql`insert into osl_control.published_version (tenant, number, id, bytes, gateway)
      values ('acme', 1, repeat('0', 64), '', '')`),
    { code: '42501' },
    'an author publishes nothing',
  );
  const twice = author.query(generatedSql(VERSION), [1]).catch((fault: ControlFault) => fault.isConflict);
  t.equal(await twice, true);
});

test('transactions of one name come one after the other; one that fails leaves nothing', {
  skip: SKIP,
}, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const add = (): Promise<void> =>
    openControlFor(house.author, (database) =>
      database.transaction('numbers', async (tx) => {
        const [top] = await tx.query(
          sql`select coalesce(max(number), 0) + 1 as next from osl_control.policy_version`,
        );
        await tx.query(generatedSql(VERSION), [top?.['next']]);
      }),
    );
  await Promise.all([add(), add(), add(), add()]);
  const database = opened(t, house.author);
  await t.rejects(
    database.transaction('numbers', async (tx) => {
      await tx.query(generatedSql(VERSION), [9]);
      throw new Error('no');
    }),
    { message: /no/ },
  );
  t.strictSame(await database.query(sql`select number::int from osl_control.policy_version order by 1`), [
    { number: 1 },
    { number: 2 },
    { number: 3 },
    { number: 4 },
  ]);
});

test('a listener hears of changes, and of them again after its connection was cut', {
  skip: SKIP,
}, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const heard: string[] = [];
  let lost = 0;
  const listening = listenForChanges(placeOf(house.gateway), {
    heard: (about) => heard.push(about),
    lost: () => {
      lost += 1;
    },
  });
  t.teardown(() => listening.close());
  await until(() => heard.length === 1);
  t.strictSame(heard, [''], 'whatever happened before it listened');
  const author = opened(t, house.author);
  await author.query(generatedSql(VERSION), [1]);
  const activate = (number: number) =>
    author.query(
      sql`insert into osl_control.policy_activation (tenant, number, version, action, author, published)
       values ('acme', $1, 1, 'activate', 'me', 0)`,
      [number],
    );
  await activate(1);
  await until(() => heard.includes('policy_activation'));
  await house.admin(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl control signals'
     and usename = '${house.roles.gateway}'`,
  );
  await until(() => lost === 1 && heard.at(-1) === '');
  await activate(2);
  await until(() => heard.filter((about) => about === 'policy_activation').length === 2);
  t.pass('heard after the connection came back');
});

test('a URL to another machine says how the connection is protected; a file is read when it is needed', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'osl-control-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  for (const url of [
    'postgres://osl@db.example/osl',
    'postgres://osl@127.0.0.1/osl?host=db.example',
    'postgres://osl@10.0.0.7/osl',
    'mysql://osl@127.0.0.1/osl',
    'postgres://osl@%zz/osl',
    'osl',
  ])
    t.throws(() => controlUrl({ url }), { name: 'StartProblem' }, url);
  for (const url of [
    'postgres://osl@db.example/osl?sslmode=verify-full',
    'postgres://osl@127.0.0.1/osl',
    'postgres://osl@localhost/osl',
    'postgres://osl@[::1]/osl',
    'postgres:///osl?host=/var/run/postgresql',
    'postgres://osl@%2Fvar%2Frun%2Fpostgresql/osl',
  ])
    t.equal(controlUrl({ url }), url);
  const file = join(dir, 'url');
  t.throws(() => controlUrl({ file }), { message: /cannot be read \(ENOENT\)/ });
  writeFileSync(file, 'postgres://osl@127.0.0.1/one\n');
  t.equal(controlUrl({ file }), 'postgres://osl@127.0.0.1/one');
  t.end();
});

async function openControlFor<T>(
  url: string,
  work: (database: ReturnType<typeof openControl>) => Promise<T>,
): Promise<T> {
  const database = openControl(placeOf(url));
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
