import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Test } from 'tap';

export interface NativePostgres {
  /** Of a superuser, to a database of this caller's own. */
  readonly url: string;
  /** Of `osl_reader`, who may log in and nothing else, to the same database. */
  readonly readerUrl: string;
  /** Ends it, and drops `roles`, which would outlive the database on a server that goes on. */
  stop(roles?: readonly string[]): Promise<void>;
}

/** Why a test that needs one does not run. */
export const NO_NATIVE = 'no native Postgres: set OSL_TEST_POSTGRES_URL or install the server binaries';

/** Why a test that kills one does not run. */
export const NO_BINARIES = 'no server binaries of Postgres, of which a cluster to kill could be made';

const PASSWORD = 'osl';
const READER = 'osl_reader';
/** Folders of server binaries by version; another one may hold extensions that the machine's has not. */
const BINARIES = process.env['OSL_TEST_POSTGRES_BINARIES'] ?? '/usr/lib/postgresql';

/**
 * A native Postgres to test against, or null where there is none.
 *
 * `OSL_TEST_POSTGRES_URL` names a server to use as superuser, in a database made for the occasion; otherwise
 * the newest installed binaries run a temporary cluster.
 */
export async function startNativePostgres(): Promise<NativePostgres | null> {
  const given = process.env['OSL_TEST_POSTGRES_URL'];
  return given !== undefined && given !== '' ? useServer(given) : startOwnPostgres();
}

/** A temporary cluster of the newest installed binaries, which its caller may kill; null where there are none. */
export async function startOwnPostgres(): Promise<(NativePostgres & Killable) | null> {
  const bin = newestBinaries();
  return bin === null ? null : startCluster(bin);
}

/** A server that nobody else uses. */
export interface Killable {
  /** Stops and starts the whole server at once, as a crash would. */
  crash(): Promise<void>;
  /** Stops the server in order; nothing listens until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
}

/** A database of its own on a server that runs, whose superuser `adminUrl` names. */
export async function useServer(adminUrl: string): Promise<NativePostgres> {
  const database = `osl_test_${randomBytes(6).toString('hex')}`;
  await onServer(adminUrl, async (client) => {
    await client.query(`CREATE DATABASE ${database}`);
    await createReader(client);
  });
  return {
    ...urls(adminUrl, database),
    stop: (roles = []) =>
      onServer(adminUrl, async (client) => {
        await client.query(`DROP DATABASE ${database} WITH (FORCE)`);
        for (const role of roles) await client.query(`DROP ROLE IF EXISTS ${role}`);
      }),
  };
}

async function startCluster(bin: string): Promise<NativePostgres & Killable> {
  const owner = process.getuid?.() === 0 ? postgresUser() : {};
  const root = mkdtempSync(join(tmpdir(), 'osl-postgres-'));
  const dataDir = join(root, 'data');
  const passwordFile = join(root, 'password');
  mkdirSync(dataDir);
  writeFileSync(passwordFile, PASSWORD);
  if (owner.uid !== undefined) for (const path of [root, dataDir]) chownSync(path, owner.uid, owner.gid);
  const initdb = ['-D', dataDir, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  execFileSync(join(bin, 'initdb'), [...initdb, '-N', '-E', 'UTF8', '--locale=C.UTF-8'], {
    ...owner,
    cwd: root,
    stdio: 'ignore',
  });
  const port = await freePort();
  const adminUrl = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  const args = ['-D', dataDir, '-p', `${port}`, '-k', root, '-c', 'listen_addresses=127.0.0.1'];
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(join(bin, 'postgres'), [...args, '-c', 'fsync=off', '-c', 'max_connections=200'], {
      ...owner,
      cwd: root,
      stdio: 'ignore',
    });
    await untilReady(adminUrl, child);
    return child;
  };
  let server = await start();
  const onExit = (): void => {
    server.kill('SIGQUIT');
    rmSync(root, { recursive: true, force: true });
  };
  process.once('exit', onExit);
  await onServer(adminUrl, createReader);
  return {
    ...urls(adminUrl, 'postgres'),
    async crash() {
      await ended(server, 'SIGQUIT');
      server = await start();
    },
    down: () => ended(server, 'SIGINT'),
    async up() {
      server = await start();
    },
    async stop() {
      process.off('exit', onExit);
      await ended(server, 'SIGINT');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function urls(adminUrl: string, database: string): { url: string; readerUrl: string } {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return { url: url.href, readerUrl: urlAs(url.href, READER, PASSWORD) };
}

/** Test files that start together on a new server each want to make it. */
async function createReader(client: Client): Promise<void> {
  await client.query(
    `DO $$ BEGIN CREATE ROLE ${READER} LOGIN PASSWORD '${PASSWORD}';
     EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`,
  );
}

export async function onServer<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The rows of one statement, on a connection of its own. */
export const rowsAt = (url: string, sql: string): Promise<Record<string, unknown>[]> =>
  onServer(url, async (client) => (await client.query<Record<string, unknown>>(sql)).rows);

/** A client of a server that nothing else in the test uses; both end with the test. */
export async function clientOf(t: Pick<Test, 'teardown'>, postgres: NativePostgres): Promise<Client> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  t.teardown(async () => {
    await client.end();
    await postgres.stop();
  });
  return client;
}

/** The same server and database as another user. */
export function urlAs(of: string, user: string, password: string): string {
  const url = new URL(of);
  url.username = user;
  url.password = password;
  return url.href;
}

export async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`postgres ended with code ${child.exitCode} while starting`);
    const ready = await onServer(url, async () => undefined).then(
      () => true,
      () => false,
    );
    if (ready) return;
    await new Promise((done) => setTimeout(done, 50));
  }
}

export function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once('exit', () => done());
    child.kill(signal);
  });
}

export function newestBinaries(): string | null {
  if (!existsSync(BINARIES)) return null;
  const versions = readdirSync(BINARIES)
    .map(Number)
    .filter((version) => existsSync(join(BINARIES, `${version}`, 'bin', 'initdb')))
    .sort((a, b) => b - a);
  return versions[0] === undefined ? null : join(BINARIES, `${versions[0]}`, 'bin');
}

/** Postgres refuses to run as root. */
export function postgresUser(): { uid: number; gid: number } | Record<string, never> {
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Ports below those that systems give to outgoing connections: none of them can take a server's while it is down. */
const FIRST_PORT = 10_000;
const PORTS = 22_000;

/** A port on which nobody listens now. Processes begin at different ones, so that two do not choose the same. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PORTS; tried += 1) {
    const port = FIRST_PORT + ((process.pid * 31 + tried) % PORTS);
    if (await isFree(port)) return port;
  }
  throw new Error('every port is taken');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
