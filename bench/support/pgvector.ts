import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { Client } from 'pg';
import { type NativePostgres, useServer } from '../../test/support/native-postgres.js';
import { freePort, startChild } from './child.js';

/** A server that has pgvector, with its description. */
export interface PgvectorServer {
  readonly postgres: NativePostgres;
  /** Version text such as `PostgreSQL 17.6, pgvector 0.8.0`. */
  readonly version: string;
}

const URL_ENV = 'OSL_BENCH_PGVECTOR_URL';
const ROOT_ENV = 'OSL_BENCH_PGVECTOR_ROOT';
const ROOT = '/var/tmp/trixie-pg';
const PASSWORD = 'osl';

/**
 * Creates a database on a native server with pgvector: the one at OSL_BENCH_PGVECTOR_URL (as superuser), or one started
 * for this run from OSL_BENCH_PGVECTOR_ROOT, a folder filled by `debootstrap`.
 *
 * @returns a sentence that names what is missing if there is no such server
 */
export async function startPgvector(): Promise<PgvectorServer | string> {
  const given = process.env[URL_ENV];
  if (given !== undefined && given !== '') return served(await useServer(given));
  const root = process.env[ROOT_ENV] ?? ROOT;
  const bin = binariesIn(root);
  if (bin === null || process.getuid?.() !== 0) {
    return (
      `no native Postgres with pgvector: set ${URL_ENV} to one, or, as root, run \`debootstrap --variant=minbase ` +
      `--include=postgresql-17,postgresql-17-pgvector trixie ${ROOT}\` (or name its folder in ${ROOT_ENV})`
    );
  }
  return startIn(root, bin);
}

async function startIn(root: string, bin: string): Promise<PgvectorServer> {
  const dir = mkdtempSync(join(root, 'var', 'lib', 'postgresql', 'osl-bench-'));
  const [uid, gid] = postgresUserIn(root);
  const inside = join('/var/lib/postgresql', basename(dir));
  writeFileSync(join(dir, 'password'), PASSWORD);
  for (const path of [dir, join(dir, 'password')]) chownSync(path, uid, gid);
  const chroot = ['--userspec', `${uid}:${gid}`, root] as const;
  const initdb = [
    '-D',
    `${inside}/data`,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    `--pwfile=${inside}/password`,
  ];
  const port = await freePort();
  const forget = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    execFileSync('chroot', [...chroot, `${bin}/initdb`, ...initdb, '-N', '-E', 'UTF8', '--locale=C.UTF-8'], {
      stdio: 'ignore',
    });
    const child = await startChild(
      ['chroot', ...chroot, `${bin}/postgres`, '-D', `${inside}/data`, '-p', `${port}`, ...settings(inside)],
      {},
      null,
    );
    const adminUrl = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
    await untilReady(adminUrl);
    const { postgres, version } = await served(await useServer(adminUrl));
    const stop = async (): Promise<void> => {
      await child.stop('SIGINT');
      forget();
    };
    return { postgres: { ...postgres, stop }, version };
  } catch (error) {
    forget();
    throw error;
  }
}

/** Settings without durability, because the server's content can be recreated. */
function settings(dir: string): readonly string[] {
  const pairs = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: dir,
    // The folder has no /dev/shm.
    dynamic_shared_memory_type: 'mmap',
    shared_buffers: '4GB',
    maintenance_work_mem: '4GB',
    max_parallel_maintenance_workers: '2',
    max_wal_size: '8GB',
    wal_level: 'minimal',
    max_wal_senders: '0',
    fsync: 'off',
    jit: 'off',
  };
  return Object.entries(pairs).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function served(postgres: NativePostgres): Promise<PgvectorServer> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    await client.query('create extension if not exists vector schema public');
    const { rows } = await client.query(
      `select current_setting('server_version') as server, extversion as vector from pg_extension where extname = 'vector'`,
    );
    const [{ server, vector } = { server: '', vector: '' }] = rows;
    return { postgres, version: `PostgreSQL ${String(server).split(' ')[0]}, pgvector ${vector}` };
  } finally {
    await client.end();
  }
}

async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const client = new Client({ connectionString: url });
    const reason = await client.connect().then(
      () => null,
      (error: unknown) => error,
    );
    await client.end().catch(() => undefined);
    if (reason === null) return;
    if (attempt === 200) throw reason;
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Path inside `root` of the newest server that has the extension. */
function binariesIn(root: string): string | null {
  const versions = join(root, 'usr', 'lib', 'postgresql');
  if (!existsSync(versions)) return null;
  const [newest] = readdirSync(versions)
    .map(Number)
    .filter((v) => existsSync(join(root, `usr/share/postgresql/${v}/extension/vector.control`)))
    .sort((a, b) => b - a);
  return newest === undefined ? null : `/usr/lib/postgresql/${newest}/bin`;
}

function postgresUserIn(root: string): readonly [uid: number, gid: number] {
  const line = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc', 'passwd'), 'utf8'));
  if (line === null) throw new Error(`there is no user postgres in ${root}`);
  return [Number(line[1]), Number(line[2])];
}
