import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BenchCaller,
  type EndpointKind,
  type EndpointSession,
  WORLDS,
  type WorldName,
} from '../endpoint.js';
import { CLERK_COLUMNS, rowsOf, run } from '../world.js';
import { openPostgres, withRole } from './postgres.js';
import { freePort, newDirectory, ready, type StartedProcess, start } from './process.js';

const ROLE = 'leakbench_pool';
/** Region that the application sets for each caller. */
const REGIONS: Readonly<Record<BenchCaller, string>> = { clerk: 'north', peer: 'south', admin: 'west' };

/** Row security by a setting of the session: the pool logs in as one user for all callers. */
const SCRIPT = Object.entries(CLERK_COLUMNS)
  .map(
    ([table, columns]) => `
alter table ${table} enable row level security;
create policy by_region on ${table} for select to ${ROLE}
  using (${rowsOf(table, "current_setting('app.region', true)")});
grant select (${columns.join(', ')}) on ${table} to ${ROLE};`,
  )
  .join('');

/** Starts PgBouncer, by the command in `LEAKBENCH_PGBOUNCER`; root runs it as `postgres`. */
async function startPgBouncer(
  owner: Readonly<Record<WorldName, string>>,
  port: number,
): Promise<StartedProcess> {
  const dir = newDirectory('pgbouncer');
  chmodSync(dir, 0o755);
  const databases = WORLDS.map((world) => {
    const { hostname, port: at, pathname } = new URL(owner[world]);
    return `${world} = host=${hostname} port=${at || '5432'} dbname=${pathname.slice(1)} user=${ROLE} password=clerk`;
  });
  const settings = `[databases]\n${databases.join('\n')}
[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =
auth_type = plain\nauth_file = users\npool_mode = transaction\ndefault_pool_size = 1\nquery_wait_timeout = 2
ignore_startup_parameters = options,extra_float_digits\n`;
  writeFileSync(join(dir, 'pgbouncer.ini'), settings);
  writeFileSync(
    join(dir, 'users'),
    Object.keys(REGIONS)
      .map((name) => `"${name}" "${name}"\n`)
      .join(''),
  );
  const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  return start(dir, process.env['LEAKBENCH_PGBOUNCER'] ?? 'pgbouncer', [...user, 'pgbouncer.ini']);
}

export const PGBOUNCER: EndpointKind = {
  name: 'PgBouncer, row security',
  data: 'everything',
  start: async ({ owner }) => {
    for (const world of WORLDS) await run(owner[world], withRole(ROLE, SCRIPT));
    const port = await freePort();
    const bouncer = await startPgBouncer(owner, port);
    const url = (world: WorldName, caller: BenchCaller) =>
      `postgres://${caller}:${caller}@127.0.0.1:${port}/${world}`;
    const ask = async (at: string, text: string): Promise<boolean> => {
      const session = await openPostgres(at);
      const { error } = await session.ask(text);
      await session.close();
      return error === null;
    };
    await ready(bouncer, () => ask(url('a', 'clerk'), 'select 1'));
    const open = new Map<WorldName, number>();
    return {
      what: 'PgBouncer with pooled transactions, and row security by a setting of the session',
      others: ['peer', 'admin'],
      open: async (world, login, caller = 'clerk'): Promise<EndpointSession> => {
        open.set(world, (open.get(world) ?? 0) + 1);
        const session = await openPostgres(url(world, caller), login);
        await session.ask(`set app.region = '${REGIONS[caller]}'`);
        const close = async (): Promise<void> => {
          await session.close();
          const left = (open.get(world) ?? 1) - 1;
          open.set(world, left);
          // The last one clears the connection, so that an attack does not meet traces of others.
          if (left === 0) await ask(url(world, 'clerk'), 'discard all');
        };
        return { ask: session.ask, close };
      },
      close: bouncer.stop,
    };
  },
};
