import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { until } from '../../control/support.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { Server, temporary } from '../../tools/cli/support.js';
import { files, TABLES } from './store.js';
import { asked, logged, type Place, run, tokenFor } from './support.js';

/** What a server outlives of the machine that it runs on, and what it says where it does not. */

t.setTimeout(300_000);

const native = await startNativePostgres();
const skip = native === null ? NO_NATIVE : run('prlimit', '--version') === null ? 'no prlimit here' : false;
t.teardown(() => native?.stop());

/** Has the next signal throw where nothing catches it. */
const THROWS = `process.on('SIGUSR2', () => setImmediate(() => { throw new RangeError('thrown on purpose'); }));`;

function serve(where: Place, env: Readonly<Record<string, string>>, within: readonly string[] = []): Server {
  const args = ['serve', '--json', '--manifest', where.manifest, '--policy', where.policy];
  const server = new Server(
    args,
    where.dataDir,
    { STORE_URL: native?.readerUrl ?? '', ...env },
    undefined,
    within,
  );
  t.teardown(() => server.signal('SIGKILL'));
  return server;
}

async function asks(server: Server, where: Place): Promise<number> {
  const authorization = `Bearer ${await tokenFor(where.dataDir)}`;
  const body = { osql: 'select id from osl.entities.account' };
  return (await asked(server, '/osl/query', body, { authorization, connection: 'close' })).status;
}

/** Sets the soft limit of a process: no file gets this number or a higher one. */
function limitFiles(pid: number, limit: number): void {
  execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${limit}:`]);
}

/** The number that the next file of a process gets: they need not follow one another. */
function nextFile(pid: number): number {
  const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let number = 0;
  while (open.has(number)) number += 1;
  return number;
}

t.test('a full disk behind its output, and no more files to open', { skip }, async (t) => {
  const admin = new pg.Client(native?.url ?? '');
  await admin.connect();
  await admin.query(TABLES);
  await admin.end();
  const where = files();
  const server = serve(where, {}, ['sh', '-c', 'exec "$@" >/dev/full 2>/dev/full', 'sh']);
  await until(() => existsSync(join(where.dataDir, 'server.json')));
  t.equal(await asks(server, where), 200, 'it serves though it could not say where it listens');
  const { pid, httpPort, pgPort } = server.record();
  const refused = { authorization: 'Bearer x' };
  for (let n = 0; n < 3; n += 1) t.equal((await asked(server, '/osl/query', {}, refused)).status, 401);
  limitFiles(Number(pid), nextFile(Number(pid)) + 10);
  for (const port of [httpPort, pgPort]) {
    const sockets = Array.from({ length: 60 }, (): Socket => {
      const socket = connect(Number(port), '127.0.0.1');
      return socket.on('error', () => undefined);
    });
    await sleep(300);
    for (const socket of sockets) socket.destroy();
  }
  await until(async () => (await asks(server, where).catch(() => 0)) === 200);
  t.ok(server.alive, 'connections that could not be taken ended nothing');
  t.equal((await server.signal('SIGTERM')).code, 0);
});

t.test('workers whose log nobody reads any more', { skip }, async (t) => {
  const where = files();
  // The reader ends after the first byte; each worker then warns of a setting of the database.
  const unread = ['bash', '-c', 'exec "$@" 2> >(head -c 1 >/dev/null)', 'bash'];
  const server = serve(where, { OSL_WORKERS: '2', OSL_LOG_FORMAT: 'text' }, unread);
  await until(() => !server.alive || existsSync(join(where.dataDir, 'server.json')));
  t.ok(server.alive, 'they begin');
  const workers = run('pgrep', '-P', String(server.record()['pid']));
  for (let i = 0; i < 4; i++) t.equal(await asks(server, where), 200);
  t.equal(run('pgrep', '-P', String(server.record()['pid'])), workers, 'and none of them ends');
  t.equal((await server.signal('SIGTERM')).code, 0);
});

t.test('a worker that cannot be begun, and errors that nobody handles', { skip }, async (t) => {
  const where = files();
  const module = join(temporary(), 'throws.mjs');
  writeFileSync(module, THROWS);
  const server = serve(where, { OSL_WORKERS: '2', NODE_OPTIONS: `--import=${module}` });
  await server.said('"event":"listening"');
  const supervisor = Number(server.record()['pid']);
  const workers = (): readonly number[] =>
    (run('pgrep', '-P', `${supervisor}`) ?? '').trim().split('\n').map(Number);
  const replaced = (): number => logged(server).filter(({ msg }) => msg === 'a worker was replaced').length;

  const [first = 0] = workers();
  limitFiles(supervisor, 3);
  process.kill(first, 'SIGKILL');
  const notBegun = (): boolean => logged(server).some(({ worker, why }) => worker && /EMFILE/.test(`${why}`));
  await until(notBegun);
  limitFiles(supervisor, nextFile(supervisor) + 3); // a connection can be taken, a process not begun
  t.equal(await asks(server, where), 200, 'the other one answers');
  limitFiles(supervisor, 4_096);
  await until(() => replaced() === 1);

  const [second = 0] = workers();
  process.kill(second, 'SIGUSR2');
  await until(() => replaced() === 2);
  t.match(
    logged(server).filter(({ msg }) => msg === 'an error that nothing handled ends the process'),
    [
      {
        level: 50,
        origin: 'uncaughtException',
        stack: /RangeError: thrown on purpose\n {4}at .*throws\.mjs/,
      },
    ],
    'with what it was, and where',
  );
  t.equal(await asks(server, where), 200);

  process.kill(supervisor, 'SIGUSR2');
  const { code, stderr } = await server.ended;
  t.equal(code, 1, 'for a supervisor of its own to start it again');
  t.match(stderr, /RangeError: thrown on purpose/g);
  t.notOk(existsSync(join(where.dataDir, 'server.json')));
});
