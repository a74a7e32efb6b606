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

/** The soft limit of open files of a process: `unlimited`, or so many more than it has. */
function limitFiles(pid: number, more: number | 'unlimited'): void {
  const limit = more === 'unlimited' ? 4_096 : readdirSync(`/proc/${pid}/fd`).length + more;
  execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${limit}:`]);
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
  limitFiles(Number(pid), 10);
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
  limitFiles(supervisor, 0);
  process.kill(first, 'SIGKILL');
  await server.said('EMFILE');
  t.equal(await asks(server, where), 200, 'the other one answers');
  limitFiles(supervisor, 'unlimited');
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
