import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import type { Server } from '../../tools/cli/support.js';
import { adminAsks } from './admin-listener.js';
import { adminToken, files, openStore } from './store.js';
import { asked, logged, type Place, run, served, tokenFor } from './support.js';

/** A drain outlives what ends its processes, and ends when an operator says so. */

const SAID = 'the server is drained, as before its restart: it is not ready and takes no new sessions';

async function asAdmin(server: Server, place: Place, path: string): Promise<void> {
  const { status, body } = await adminAsks(server, 'POST', path, await adminToken(place));
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
}

/** Status of `/ready`, result of a new Postgres session, and status of a REST query. */
async function seen(server: Server, { dataDir }: Place): Promise<readonly [number, string, number]> {
  const token = await tokenFor(dataDir);
  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(server.record()['pgPort']),
    user: 'user:analyst',
    database: 'osl',
    password: token,
  });
  const session = await client.connect().then(
    () => 'open',
    (error: unknown) => (error instanceof pg.DatabaseError ? String(error.code) : String(error)),
  );
  if (session === 'open') await client.end();
  const headers = { authorization: `Bearer ${token}`, connection: 'close' };
  const { status } = await asked(server, '/osl/query', { osql: 'select 1 as a' }, headers);
  return [(await asked(server, '/ready', null, { connection: 'close' })).status, session, status];
}

const DRAINED = [503, '57P03', 200];
const SERVING = [200, 'open', 200];

const store = await openStore(t, 'a drain');
if (store !== null)
  for (const [workers, signal] of [
    [1, 'SIGTERM'],
    [2, 'SIGKILL'],
  ] as const)
    t.test(`a drain of ${workers} process(es) and ${signal}`, async (t) => {
      const place = files();
      const env = { STORE_URL: store.postgres.readerUrl, OSL_WORKERS: `${workers}`, OSL_ADMIN_PORT: '0' };
      const first = await served(t, place, env);
      /** Each connection may reach another worker. */
      const all = async (server: Server): Promise<readonly unknown[]> => {
        const found = [];
        for (let i = 0; i < workers; i++) found.push(await seen(server, place));
        return found;
      };
      const each = (state: readonly unknown[]) => Array.from({ length: workers }, () => state);
      t.same(await all(first), each(SERVING));
      await asAdmin(first, place, '/admin/drain');
      t.same(await all(first), each(DRAINED));

      if (workers > 1) {
        const [worker = 0] = (run('pgrep', '-P', String(first.record()['pid'])) ?? '')
          .split('\n')
          .map(Number);
        process.kill(worker, 'SIGKILL');
        while (!logged(first).some(({ msg }) => msg === 'a worker was replaced')) await sleep(20);
        t.same(await all(first), each(DRAINED), 'and of a worker that takes the place of another');
      }

      await first.signal(signal);
      const second = await served(t, place, env);
      t.same(await all(second), each(DRAINED), `after ${signal}`);
      t.match(
        logged(second).filter(({ msg }) => msg === SAID),
        [{ level: 40, since: /^20.*Z$/, ends: /RESUME.*drained/ }],
        'and the log says so, once',
      );
      await asAdmin(second, place, '/admin/resume');
      t.same(await all(second), each(SERVING));
      await second.signal(signal);
      const third = await served(t, place, env);
      t.same(await all(third), each(SERVING), 'the end of a drain outlives a restart too');
      t.notOk(logged(third).some(({ msg }) => msg === SAID));
    });
