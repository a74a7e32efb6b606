import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, freePort, startChild } from './child.js';

export interface PgBouncer {
  /** Version text such as `PgBouncer 1.18.0`. */
  readonly version: string;
  readonly child: Child;
  readonly port: number;
  stop(): Promise<void>;
}

const BINARY = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path));

/**
 * Starts PgBouncer for the database of `url`, named `bench` for clients; null if it is not installed. Clients need no
 * password; the server login uses the one in `url`. `more`: additional configuration lines.
 */
export async function startPgBouncer(
  url: string,
  poolSize: number,
  mode: 'transaction' | 'session' = 'transaction',
  more = '',
): Promise<PgBouncer | null> {
  if (BINARY === undefined) return null;
  const dir = mkdtempSync(join(tmpdir(), 'osl-pgbouncer-'));
  const port = await freePort();
  const { hostname, port: upstream, pathname, username, password } = new URL(url);
  const file = join(dir, 'pgbouncer.ini');
  writeFileSync(join(dir, 'users.txt'), `"${decodeURIComponent(username)}" "${password}"\n`);
  writeFileSync(
    file,
    `[databases]
bench = host=${hostname} port=${upstream} dbname=${pathname.slice(1)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(dir, 'users.txt')}
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 1000
log_connections = 0
log_disconnections = 0
${more}
`,
  );
  const child = await startChild([BINARY, file], owned(dir, file), null);
  await untilListening(port);
  const stop = async (): Promise<void> => {
    await child.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  const [version = 'PgBouncer'] = execFileSync(BINARY, ['--version'], { encoding: 'utf8' }).split('\n');
  return { version, child, port, stop };
}

/** If run by root, gives the files to `postgres` and returns its ids, because PgBouncer refuses to run as root. */
function owned(dir: string, file: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const owner = { uid: id('-u'), gid: id('-g') };
  for (const path of [dir, file, join(dir, 'users.txt')]) chownSync(path, owner.uid, owner.gid);
  return owner;
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (up) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('pgbouncer does not listen');
}
