import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ended, freePort, newestBinaries, postgresUser, rowsAt, untilReady } from './native-postgres.js';

const PASSWORD = 'osl';

/** One server of several. */
interface ClusterMember {
  readonly port: number;
  /** Of a superuser. */
  readonly url: string;
  up(): Promise<void>;
  /** In order, and at once for its clients. */
  down(): Promise<void>;
  /** It takes connections, and answers none of them; those that it has are ended. */
  freeze(): Promise<void>;
  thaw(): void;
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Statements that it was sent since the last call, one a line. */
  asked(): readonly string[];
}

/** A coordinator whose tables have their partitions on other servers, by `postgres_fdw`. */
export interface Distributed {
  readonly coordinator: ClusterMember;
  readonly nodes: readonly ClusterMember[];
  /** Of `osl_reader`, at the coordinator. */
  readonly readerUrl: string;
  /**
   * Makes a table in `schema` of the coordinator, by hash of `key`, with a partition on each node, in the schema `part`.
   *
   * @param columns as CREATE TABLE writes them
   */
  table(schema: string, name: string, columns: string, key: string): Promise<void>;
  stop(): Promise<void>;
}

/** Options of each foreign server, as an operator would set them. */
const SERVER_OPTIONS = `connect_timeout '2', use_remote_estimate 'true', fetch_size '1000', async_capable 'true'`;

/** Null where there are no server binaries. @param config settings of every server, such as `shared_buffers=16MB` */
export async function startDistributed(
  count: number,
  config: readonly string[] = [],
): Promise<Distributed | null> {
  const bin = newestBinaries();
  if (bin === null) return null;
  const owner = process.getuid?.() === 0 ? postgresUser() : {};
  const root = mkdtempSync(join(tmpdir(), 'osl-distributed-'));
  const own = (path: string): void => {
    if ('uid' in owner) chownSync(path, owner.uid, owner.gid);
  };
  own(root);
  writeFileSync(join(root, 'password'), PASSWORD);
  own(join(root, 'password'));
  const running = new Set<ChildProcess>();
  const onExit = (): void => {
    for (const server of running) server.kill('SIGQUIT');
    rmSync(root, { recursive: true, force: true });
  };
  process.once('exit', onExit);

  const first = join(root, 'first');
  const how = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${join(root, 'password')}`];
  execFileSync(join(bin, 'initdb'), ['-D', first, ...how, '-N', '-E', 'UTF8', '--locale=C.UTF-8'], {
    ...owner,
    cwd: root,
    stdio: 'ignore',
  });
  const more = [
    'fsync=off',
    'listen_addresses=127.0.0.1',
    'max_connections=60',
    'log_statement=all',
    ...config,
  ];
  const members: ClusterMember[] = [];
  for (let i = 0; i <= count; i++) {
    const dir = join(root, `server-${i}`);
    // Servers made of one are strangers to each other all the same: nothing but a backup looks at their common number.
    execFileSync('cp', ['-a', first, dir], { ...owner, cwd: root });
    const started = { bin, dir, owner, root, running, more };
    members.push(await member(started, (await freePort()) + i * 100));
  }
  const [coordinator, ...nodes] = members;
  if (coordinator === undefined) throw new Error('there is no coordinator');
  await Promise.all(members.map((one) => one.query(`create role osl_reader login password '${PASSWORD}'`)));
  for (const node of nodes)
    await node.query(
      'create schema part; grant usage on schema part to osl_reader; alter default privileges in schema part grant select on tables to osl_reader',
    );
  await coordinator.query('create extension postgres_fdw');
  for (const [i, { port }] of nodes.entries())
    await coordinator.query(`
      create server node_${i + 1} foreign data wrapper postgres_fdw
        options (host '127.0.0.1', port '${port}', dbname 'postgres', ${SERVER_OPTIONS});
      create user mapping for osl_reader server node_${i + 1} options (user 'osl_reader', password '${PASSWORD}');
      create user mapping for postgres server node_${i + 1} options (user 'postgres', password '${PASSWORD}')`);
  return {
    coordinator,
    nodes,
    readerUrl: `postgres://osl_reader:${PASSWORD}@127.0.0.1:${coordinator.port}/postgres`,
    async table(schema, name, columns, key) {
      await Promise.all(nodes.map((node) => node.query(`create table part.${name} (${columns})`)));
      const parts = nodes.map(
        (_, i) => `create foreign table ${schema}.${name}_${i + 1} partition of ${schema}.${name}
          for values with (modulus ${nodes.length}, remainder ${i}) server node_${i + 1}
          options (schema_name 'part', table_name '${name}')`,
      );
      await coordinator.query(
        [`create table ${schema}.${name} (${columns}) partition by hash (${key})`, ...parts].join('; '),
      );
    },
    async stop() {
      process.off('exit', onExit);
      for (const one of members) one.thaw();
      await Promise.all([...running].map((server) => ended(server, 'SIGQUIT')));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

interface Started {
  readonly bin: string;
  readonly dir: string;
  readonly owner: { uid: number; gid: number } | Record<string, never>;
  readonly root: string;
  readonly running: Set<ChildProcess>;
  readonly more: readonly string[];
}

async function member(
  { bin, dir, owner, root, running, more }: Started,
  port: number,
): Promise<ClusterMember> {
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  const log = `${dir}.log`;
  let server: ChildProcess | null = null;
  let read = 0;
  const query = (sql: string): Promise<Record<string, unknown>[]> => rowsAt(url, sql);
  const up = async (): Promise<void> => {
    const out = openSync(log, 'a');
    const args = ['-D', dir, '-p', `${port}`, '-k', root, ...more.flatMap((one) => ['-c', one])];
    const child = spawn(join(bin, 'postgres'), args, {
      ...owner,
      cwd: root,
      stdio: ['ignore', 'ignore', out],
    });
    closeSync(out);
    running.add(child);
    server = child;
    await untilReady(url, child);
  };
  await up();
  return {
    port,
    url,
    up,
    async down() {
      if (server === null) return;
      await ended(server, 'SIGINT');
      running.delete(server);
    },
    async freeze() {
      await query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()');
      server?.kill('SIGSTOP');
    },
    thaw: () => void server?.kill('SIGCONT'),
    query,
    asked() {
      const text = readFileSync(log, 'utf8');
      // Further lines of a statement begin with a tab.
      const entries = text.slice(read).replaceAll('\n\t', ' ').split('\n');
      read = text.length;
      return entries.flatMap((line) => /LOG: {2}(?:statement|execute [^:]*): (.*)/.exec(line)?.[1] ?? []);
    },
  };
}
