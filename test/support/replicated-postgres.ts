import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../src/base/thrown.js';
import {
  ended,
  freePort,
  newestBinaries,
  onServer,
  postgresUser,
  rowsAt,
  untilReady,
} from './native-postgres.js';

const PASSWORD = 'osl';

/** A server that its caller may kill, start and promote. */
export interface Member {
  readonly port: number;
  /** Of a superuser. */
  readonly url: string;
  readonly up: () => Promise<void>;
  /** As a machine that goes down: at once, and without a word to clients. */
  kill(): Promise<void>;
  /** Shuts it down: its sessions are told, and end. */
  down(): Promise<void>;
  promote(): Promise<void>;
  /** Streams from `other` from now on. */
  follow(other: Member): Promise<void>;
  query(sql: string): Promise<Record<string, unknown>[]>;
}

/** A primary and a streaming standby of it. */
export interface Pair {
  readonly primary: Member;
  readonly standby: Member;
  stop(): Promise<void>;
}

/** Null where there are no server binaries. */
export async function startPair(): Promise<Pair | null> {
  const group = await startGroup(1);
  const [standby] = group?.standbys ?? [];
  return group === null || standby === undefined ? null : { ...group, standby };
}

/** A primary and streaming standbys of it. */
export interface Group {
  readonly primary: Member;
  readonly standbys: readonly Member[];
  stop(): Promise<void>;
}

/** Null where there are no server binaries. @param count number of standbys */
export async function startGroup(count: number): Promise<Group | null> {
  const bin = newestBinaries();
  if (bin === null) return null;
  const owner = process.getuid?.() === 0 ? postgresUser() : {};
  const root = mkdtempSync(join(tmpdir(), 'osl-replicated-'));
  writeFileSync(join(root, 'password'), PASSWORD);
  const own = (...paths: string[]): void => {
    if ('uid' in owner) for (const path of paths) chownSync(path, owner.uid, owner.gid);
  };
  own(root, join(root, 'password'));
  const run = (command: string, args: readonly string[]): void => {
    execFileSync(join(bin, command), args, {
      ...owner,
      cwd: root,
      stdio: 'ignore',
      env: { ...process.env, PGPASSWORD: PASSWORD },
    });
  };
  const running = new Set<ChildProcess>();
  const onExit = (): void => {
    for (const server of running) server.kill('SIGQUIT');
    rmSync(root, { recursive: true, force: true });
  };
  process.once('exit', onExit);

  const member = (dir: string, port: number): Member => {
    const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
    let server: ChildProcess | null = null;
    return {
      port,
      url,
      up: async () => {
        const more = ['fsync=off', 'listen_addresses=127.0.0.1', 'wal_level=replica', 'max_connections=50'];
        const args = ['-D', dir, '-p', `${port}`, '-k', root, ...more.flatMap((one) => ['-c', one])];
        server = spawn(join(bin, 'postgres'), args, { ...owner, cwd: root, stdio: 'ignore' });
        running.add(server);
        await untilReady(url, server);
      },
      kill: async () => {
        if (server === null) return;
        const postmaster = server;
        // Stopped first, so that it starts no child that is not listed. Its data directory is free when all of them are gone.
        postmaster.kill('SIGSTOP');
        const children = execFileSync('ps', ['-o', 'pid=', '--ppid', `${postmaster.pid}`], {
          encoding: 'utf8',
        });
        const gone = ended(postmaster, 'SIGKILL');
        running.delete(postmaster);
        const pids = (children.match(/\d+/g) ?? []).map(Number);
        while (pids.some((pid) => signalled(pid, 'SIGKILL'))) await sleep(5);
        await gone;
      },
      down: async () => {
        if (server === null) return;
        await ended(server, 'SIGINT');
        running.delete(server);
      },
      promote: async () => run('pg_ctl', ['promote', '-w', '-D', dir]),
      follow: async (other) => {
        const from = `host=127.0.0.1 port=${other.port} user=postgres password=${PASSWORD}`;
        await rowsAt(url, `alter system set primary_conninfo = '${from}'`);
        await rowsAt(url, 'select pg_reload_conf()');
      },
      query: (sql) => rowsAt(url, sql),
    };
  };

  const first = join(root, 'first');
  mkdirSync(first);
  own(first);
  const how = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${join(root, 'password')}`];
  run('initdb', ['-D', first, ...how, '-N', '-E', 'UTF8', '--locale=C.UTF-8']);
  const primary = member(first, await freePort());
  await primary.up();
  await onServer(primary.url, async (client) => {
    await client.query(`create role osl_reader login password '${PASSWORD}'`);
  });
  const from = ['-h', '127.0.0.1', '-p', `${primary.port}`, '-U', 'postgres'];
  const standbys: Member[] = [];
  for (let i = 1; i <= count; i += 1) {
    const dir = join(root, `standby-${i}`);
    run('pg_basebackup', ['-D', dir, ...from, '-R', '-X', 'stream', '--checkpoint=fast', '--no-sync']);
    appendFileSync(join(dir, 'postgresql.auto.conf'), 'hot_standby = on\n');
    const standby = member(dir, await freePort());
    await standby.up();
    standbys.push(standby);
  }
  return {
    primary,
    standbys,
    stop: async () => {
      process.off('exit', onExit);
      for (const server of running) await ended(server, 'SIGINT');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Sends a signal; false once there is no such process. */
export function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error;
    return false;
  }
}
