import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newestBinaries, onServer, postgresUser } from '../support/native-postgres.js';
import { signalled } from '../support/replicated-postgres.js';
import { freePorts } from './ports.js';

/** Three Postgres nodes under Patroni, with etcd, all on this machine. Needs the Debian packages named in `missing`. */

const PASSWORD = 'osl';

/**
 * Seconds. A leader that is killed with its Patroni keeps its key in etcd until `ttl` is over; the defaults of Patroni
 * are 30, 10 and 10.
 */
export const TIMES = Object.freeze({ ttl: 10, loop_wait: 2, retry_timeout: 3 });

const WHOLE_MS = 120_000;

export interface PatroniCluster {
  /** URL of a role that names all nodes and asks for the primary. */
  url(role: string, database: string): string;
  /** The node that is the leader now; null if there is none. */
  leader(): Promise<PatroniNode | null>;
  /** Resolves once there are a leader and two streaming replicas. */
  whole(): Promise<void>;
  /** Runs statements as superuser on the leader. */
  admin(database: string, sql: string): Promise<void>;
  stop(): Promise<void>;
}

/** The Debian package that lacks; null if the cluster can be started. */
export function missing(): string | null {
  for (const [program, name] of [
    ['/usr/bin/patroni', 'patroni, python3-etcd'],
    ['/usr/bin/etcd', 'etcd-server'],
  ] as const)
    if (!existsSync(program)) return name;
  return newestBinaries() === null ? 'postgresql' : null;
}

export async function startPatroni(count = 3): Promise<PatroniCluster> {
  const root = mkdtempSync(join(tmpdir(), 'osl-patroni-'));
  const owner = ownerOf();
  if (owner.uid !== undefined) chownSync(root, owner.uid, owner.gid);
  const ports = await freePorts(2 + 2 * count);
  const [client = 0, peer = 0, ...others] = ports;
  const etcd = run(root, 'etcd', '/usr/bin/etcd', etcdFlags(root, client, peer), {});
  const nodes = Array.from(
    { length: count },
    (_, i) => new PatroniNode(root, i + 1, others[2 * i] ?? 0, others[2 * i + 1] ?? 0, client),
  );
  const stop = async (): Promise<void> => {
    process.off('exit', kill);
    await Promise.all(nodes.map((node) => node.stop()));
    etcd.kill('SIGKILL');
    rmSync(root, { recursive: true, force: true });
  };
  const kill = (): void => {
    for (const node of nodes) node.killNow();
    etcd.kill('SIGKILL');
  };
  process.once('exit', kill);
  for (const node of nodes) node.start();
  const leader = async (): Promise<PatroniNode | null> => {
    const found = await Promise.all(nodes.map((node) => node.isLeader()));
    return nodes[found.indexOf(true)] ?? null;
  };
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const cluster: PatroniCluster = {
    url: (role, database) =>
      `postgres://${role}:${PASSWORD}@${hosts}/${database}?target_session_attrs=primary`,
    leader,
    whole: async () => {
      for (const until = performance.now() + WHOLE_MS; performance.now() < until; await sleep(200)) {
        const ended = nodes.find((node) => node.failed);
        if (ended !== undefined)
          throw new Error(`Patroni of ${ended.name} ended: see ${root}/${ended.name}.log`);
        const at = await leader();
        if (at !== null && (await at.streaming()) === count - 1) return;
      }
      throw new Error(`the cluster was not whole within ${WHOLE_MS / 1_000} s: see ${root}`);
    },
    admin: async (database, sql) => {
      const at = await leader();
      if (at === null) throw new Error('there is no leader');
      const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${at.port}/${database}`;
      await onServer(url, (session) => session.query(sql));
    },
    stop,
  };
  await cluster.whole();
  return cluster;
}

class PatroniNode {
  readonly name: string;
  readonly port: number;
  readonly #api: number;
  readonly #root: string;
  readonly #data: string;
  #patroni: ChildProcess | null = null;

  constructor(root: string, number: number, port: number, api: number, etcd: number) {
    this.name = `node${number}`;
    this.port = port;
    this.#api = api;
    this.#root = root;
    this.#data = join(root, this.name);
    mkdirSync(this.#data, { mode: 0o700 });
    const file = this.#file();
    writeFileSync(file, JSON.stringify(this.#settings(etcd))); // JSON is YAML
    const owner = ownerOf();
    if (owner.uid !== undefined) for (const path of [this.#data, file]) chownSync(path, owner.uid, owner.gid);
  }

  start(): void {
    this.#patroni = run(this.#root, this.name, '/usr/bin/patroni', [this.#file()], ownerOf());
  }

  /** True if Patroni ended by itself. */
  get failed(): boolean {
    return this.#patroni !== null && this.#patroni.exitCode !== null;
  }

  /** True if Patroni says so, which it checks in etcd. */
  async isLeader(): Promise<boolean> {
    const reply = await fetch(`http://127.0.0.1:${this.#api}/leader`, {
      signal: AbortSignal.timeout(1_000),
    }).catch(() => null);
    await reply?.body?.cancel();
    return reply?.status === 200;
  }

  /** Number of replicas that follow this leader; 0 if none of them is the synchronous one. */
  async streaming(): Promise<number> {
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${this.port}/postgres`;
    // A base backup streams too, under another name.
    const sql = `
      select case when bool_or(sync_state = 'sync') then count(*)::int else 0 end as n
        from pg_stat_replication where state = 'streaming' and application_name like 'node%'`;
    return onServer(url, async (session) => Number((await session.query(sql)).rows[0]?.n)).catch(() => 0);
  }

  /** As a machine that fails: Patroni, Postgres and all its backends at once. */
  killNow(): void {
    this.#patroni?.kill('SIGKILL');
    this.#patroni = null;
    const postmaster = this.#postmaster();
    if (postmaster === null || !signalled(postmaster, 'SIGSTOP')) return; // so that it starts no other backend
    const backends = childrenOf(postmaster);
    for (const pid of [postmaster, ...backends]) signalled(pid, 'SIGKILL');
  }

  async stop(): Promise<void> {
    const patroni = this.#patroni;
    if (patroni !== null && patroni.exitCode === null) {
      patroni.kill('SIGTERM');
      await Promise.race([once(patroni, 'exit'), sleep(10_000, undefined, { ref: false })]);
    }
    this.killNow();
  }

  #file(): string {
    return join(this.#root, `${this.name}.yml`);
  }

  #postmaster(): number | null {
    try {
      return Number(readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n')[0]);
    } catch {
      return null; // it is not running
    }
  }

  #settings(etcd: number): object {
    const login = (username: string) => ({ username, password: PASSWORD });
    return {
      scope: 'osl-drill',
      name: this.name,
      restapi: { listen: `127.0.0.1:${this.#api}`, connect_address: `127.0.0.1:${this.#api}` },
      etcd3: { host: `127.0.0.1:${etcd}` },
      bootstrap: {
        dcs: {
          ...TIMES,
          // A commit that was acknowledged is on the next leader too.
          synchronous_mode: true,
          postgresql: {
            use_pg_rewind: true,
            parameters: {
              max_connections: 100,
              shared_buffers: '32MB',
              wal_keep_size: '256MB',
              wal_log_hints: 'on',
            },
          },
        },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }],
        pg_hba: [
          'local all all trust',
          'host all all 127.0.0.1/32 md5',
          'host replication all 127.0.0.1/32 md5',
        ],
      },
      postgresql: {
        listen: `127.0.0.1:${this.port}`,
        connect_address: `127.0.0.1:${this.port}`,
        data_dir: this.#data,
        bin_dir: newestBinaries(),
        pgpass: join(this.#data, '..', `${this.name}.pgpass`),
        authentication: {
          superuser: login('postgres'),
          replication: login('replicator'),
          rewind: login('rewinder'),
        },
        parameters: { unix_socket_directories: '/tmp' },
      },
    };
  }
}

function etcdFlags(root: string, client: number, peer: number): readonly string[] {
  const at = (port: number): string => `http://127.0.0.1:${port}`;
  return [
    ...['--data-dir', join(root, 'etcd'), '--name', 'one'],
    ...['--listen-client-urls', at(client), '--advertise-client-urls', at(client)],
    ...['--listen-peer-urls', at(peer), '--initial-advertise-peer-urls', at(peer)],
    ...['--initial-cluster', `one=${at(peer)}`],
  ];
}

type Owner = { readonly uid: number; readonly gid: number } | { readonly uid?: undefined };

/** Postgres refuses to run as root. */
function ownerOf(): Owner {
  return process.getuid?.() === 0 ? (postgresUser() as Owner) : {};
}

/** Its output goes into a file beside its data. */
function run(
  root: string,
  name: string,
  program: string,
  args: readonly string[],
  owner: Owner,
): ChildProcess {
  const log = openSync(join(root, `${name}.log`), 'a');
  const child = spawn(program, args, { ...owner, cwd: root, stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' });
    return (text.match(/\d+/g) ?? []).map(Number);
  } catch {
    return []; // ps fails where there are none
  }
}
