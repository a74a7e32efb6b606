import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ownProcess } from '../../src/base/process-identity.js';
import { sql } from '../../src/base/sql.js';
import { openEngine } from '../../src/engine/index.js';
import { lockDataDir } from '../../src/engine/pglite/data-directory.js';
import { ask, dataRow, errorOf, pgliteFixture, textRows } from './fixture.js';

const INT4 = 23;
const TEXT = 25;
const ENDLESS = 'select count(*) from generate_series(1, 2000000000)';

t.test('a restart, forced or orderly, keeps the data', async (t) => {
  const dataDir = join(t.testdir(), 'db');
  const first = await pgliteFixture(dataDir);
  await first.engine.system.script(sql`create schema s; create table s.t(a int4)`);
  await first.engine.system.copyIn({ schema: 's', table: 't', columns: ['a'] }, [['1'], ['2'], ['3']]);
  await first.engine.system.grantRead('s');
  const count = 'select count(*)::int4 from s.t';
  t.same((await ask(first, count, { oids: [INT4] })).bytes, dataRow(['3']), 'prepared before the restart');
  t.match(await errorOf(ask(first, ENDLESS, { oids: [20], timeoutMs: 200 })), { entry: 'timedOut' });
  t.same((await ask(first, count, { oids: [INT4] })).bytes, dataRow(['3']), 'and after it');
  await first.close();
  t.notOk(existsSync(`${dataDir}.lock`));
  const second = await pgliteFixture(dataDir);
  t.same((await ask(second, count, { oids: [INT4] })).bytes, dataRow(['3']));
  await second.close();
});

t.test('the data directory has one owner', async (t) => {
  const dataDir = join(t.testdir(), 'db');
  const open = (): Promise<unknown> => openEngine({ kind: 'pglite', dataDir });
  const unlock = lockDataDir(dataDir);
  t.match(await errorOf(open()), { message: new RegExp(`is in use by process ${process.pid} `) });
  unlock();

  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  writeFileSync(`${dataDir}.lock`, `${other.pid} \n`);
  t.throws(() => lockDataDir(dataDir), { message: new RegExp(`in use by process ${other.pid} `) });
  const gone = new Promise((done) => other.once('exit', done));
  other.kill('SIGKILL');
  await gone;
  const takenOver = lockDataDir(dataDir);
  t.match(
    readFileSync(`${dataDir}.lock`, 'utf8'),
    new RegExp(`^${process.pid} `),
    'after kill -9 it is taken over',
  );
  takenOver();

  const { ticks, boot } = ownProcess();
  for (const before of [`1 ${boot}`, `${ticks} another-boot`]) {
    writeFileSync(`${dataDir}.lock`, `${process.pid} ${before}\n`);
    lockDataDir(dataDir)();
    t.notOk(existsSync(`${dataDir}.lock`), 'a reused pid holds nothing');
  }
});

t.test('a killed process leaves data that the next one opens', async (t) => {
  const dataDir = join(t.testdir(), 'db');
  const index = new URL('../../src/engine/index.js', import.meta.url).href;
  const program = `
    const { openEngine, sql } = await import(${JSON.stringify(index)});
    const engine = await openEngine({ kind: 'pglite', dataDir: ${JSON.stringify(dataDir)} });
    await engine.system.script(sql\`create table public.k(a int4); insert into public.k values (42)\`);
    process.kill(process.pid, 'SIGKILL');`;
  const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
  t.equal(signal, 'SIGKILL');
  t.ok(existsSync(`${dataDir}.lock`), 'it could not give its lock back');
  const fixture = await pgliteFixture(dataDir);
  t.same(
    (await fixture.engine.system.query(sql`select a from public.k`)).map((row) => row['a']),
    [42],
  );
  await fixture.close();
});

t.test('a data directory of another major is refused', async (t) => {
  const dataDir = join(t.testdir(), 'db');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'PG_VERSION'), '17\n');
  t.match(await errorOf(openEngine({ kind: 'pglite', dataDir })), {
    message: /holds Postgres 17; .* runs Postgres 18/,
  });
  t.notOk(existsSync(`${dataDir}.lock`), 'and is not left locked');
});

t.test('a governed statement cannot leave its role', async (t) => {
  const fixture = await pgliteFixture();
  await fixture.engine.system.script(sql`create schema hidden; create table hidden.t(a int4)`);
  for (const attempt of [
    `select set_config('role', 'postgres', false)`,
    `select set_config('session_authorization', 'postgres', false)`,
    `select set_config('default_transaction_read_only', 'off', false)`,
  ]) {
    t.match(await errorOf(ask(fixture, attempt, { oids: [TEXT] })), { sqlstate: '42501' }, attempt);
  }
  t.match(await errorOf(ask(fixture, 'select a from hidden.t', { oids: [INT4] })), { sqlstate: '42501' });
  const who = 'select session_user::text, current_user::text';
  t.same(textRows((await ask(fixture, who, { oids: [TEXT, TEXT] })).bytes), [['osl_reader', 'osl_reader']]);
  await fixture.close();
});

t.test('pgvector is there', async (t) => {
  const fixture = await pgliteFixture();
  const sql = `select ('[1,2]'::public.vector operator(public.<->) '[4,6]'::public.vector)::float8`;
  t.same((await ask(fixture, sql, { oids: [701] })).bytes, dataRow(['5']));
  await fixture.close();
});
