import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ended, freePort, postgresUser, rowsAt, untilReady } from './native-postgres.js';

/** Reason why a test that needs Citus is skipped. */
export const NO_CITUS =
  'no Citus: OSL_TEST_CITUS_ROOT names no folder with a PostgreSQL 15 and the Citus archive unpacked into it';

/** One server of a Citus cluster. */
interface CitusNode {
  readonly port: number;
  /** URL of the superuser. */
  readonly url: string;
  query(sql: string): Promise<Record<string, unknown>[]>;
}

/** A Citus coordinator with its workers; all accept every role from loopback without a password. */
export interface Citus {
  readonly coordinator: CitusNode;
  readonly workers: readonly CitusNode[];
  /** URL of `osl_reader` at the coordinator. */
  readonly readerUrl: string;
  stop(): Promise<void>;
}

const ROOT = join(process.env['OSL_TEST_CITUS_ROOT'] ?? '/', 'usr');

/** True if the servers of a cluster have pgvector. */
export function hasVector(): boolean {
  return existsSync(join(ROOT, 'share', 'postgresql', '15', 'extension', 'vector.control'));
}

/** Folder of the server's binaries; null if there is no Citus. */
export function binariesWithCitus(): string | null {
  const version = join(ROOT, 'lib', 'postgresql', '15');
  return existsSync(join(version, 'lib', 'citus.so')) ? join(version, 'bin') : null;
}

/**
 * Starts a coordinator and `workerCount` workers; null if there is no Citus.
 *
 * @param settings of every server, such as `citus.shard_count=8`
 */
export async function startCitus(
  workerCount: number,
  settings: readonly string[] = [],
): Promise<Citus | null> {
  const bin = binariesWithCitus();
  if (bin === null) return null;
  const owner = process.getuid?.() === 0 ? postgresUser() : {};
  const root = mkdtempSync(join(tmpdir(), 'osl-citus-'));
  if ('uid' in owner) chownSync(root, owner.uid, owner.gid);
  const options = { ...owner, cwd: root, stdio: 'ignore' } as const;
  const template = join(root, 'template');
  const initdb = ['-D', template, '-U', 'postgres', '-A', 'trust', '-N', '-E', 'UTF8', '--locale=C.UTF-8'];
  execFileSync(join(bin, 'initdb'), initdb, options);
  const servers: ChildProcess[] = [];
  const onExit = (): void => {
    for (const server of servers) server.kill('SIGQUIT');
    rmSync(root, { recursive: true, force: true });
  };
  process.once('exit', onExit);
  const start = async (name: string, port: number): Promise<CitusNode> => {
    const data = join(root, name);
    execFileSync('cp', ['-a', template, data], options);
    const args = ['-D', data, '-p', `${port}`, '-k', root];
    const server = spawn(
      join(bin, 'postgres'),
      [...args, ...[...SETTINGS, ...settings].flatMap((one) => ['-c', one])],
      options,
    );
    servers.push(server);
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    await untilReady(url, server);
    await rowsAt(url, 'create extension citus');
    return { port, url, query: (sql) => rowsAt(url, sql) };
  };
  const names = ['coordinator', ...Array.from({ length: workerCount }, (_, i) => `worker-${i + 1}`)];
  const port = await freePort();
  // Ports between are left to the other servers of this process.
  const [coordinator, ...workers] = await Promise.all(names.map((name, i) => start(name, port + i * 100)));
  if (coordinator === undefined) throw new Error('there is no coordinator');
  await coordinator.query(
    [
      `select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`,
      ...workers.map((worker) => `select citus_add_node('127.0.0.1', ${worker.port})`),
      'create role osl_reader login',
    ].join('; '),
  );
  return {
    coordinator,
    workers,
    readerUrl: `postgres://osl_reader@127.0.0.1:${coordinator.port}/postgres`,
    async stop() {
      process.off('exit', onExit);
      await Promise.all(servers.map((server) => ended(server, 'SIGQUIT')));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

const SETTINGS = [
  'shared_preload_libraries=citus',
  'listen_addresses=127.0.0.1',
  'fsync=off',
  'autovacuum=off',
  'shared_buffers=32MB',
  'dynamic_shared_memory_type=mmap',
  // Each question may open `citus.max_adaptive_executor_pool_size` sessions on every worker.
  'max_connections=200',
  'citus.node_conninfo=sslmode=disable',
  'citus.enable_statistics_collection=off',
];
