import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { startTestService } from '../../support/service.js';

/** A gateway over the shop, on the wire with its catalog, as a client of any language meets it. */
export interface Gateway {
  readonly port: number;
  /** The libpq variables of `user`, and OSL_USER, OSL_TOKEN, OSL_PORT for clients that know none. */
  environment(user: string): Promise<NodeJS.ProcessEnv>;
  close(): Promise<void>;
}

/** Orders that are there beside the shop's forty, so that a result is large and a join is long. */
export const MANY = 60_000;
export const FILL = `INSERT INTO shop.orders
  SELECT n, 1 + n % 4, 'eu', 1, 1.5, timestamptz '2026-02-01 00:00:00+00', NULL FROM generate_series(1001, ${1000 + MANY}) AS n`;

/** A join of this takes far longer than any test waits. */
export const ENDLESS = 'select count(*) from "order" a join "order" b on a.customer_id = b.customer_id';

/** On a native server where there is one: the embedded engine serves one statement at a time. */
export async function startGateway(): Promise<Gateway> {
  const postgres = await startNativePostgres();
  const shop = await startTestService(postgres === null ? {} : { postgres });
  await shop.engine.system.script(generatedSql(FILL));
  const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
  await catalogs.warm();
  const frontend = createPgFrontend(shop.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  return {
    port,
    async environment(user) {
      const token = await shop.token(user);
      const osl = {
        OSL_USER: user,
        OSL_TOKEN: token,
        OSL_PORT: String(port),
        OSL_MANY: String(MANY),
        OSL_ENDLESS: ENDLESS,
      };
      const libpq = {
        PGHOST: '127.0.0.1',
        PGPORT: String(port),
        PGUSER: user,
        PGPASSWORD: token,
        PGDATABASE: 'osl',
      };
      return { ...process.env, ...osl, ...libpq, LC_ALL: 'C.UTF-8', TERM: 'dumb', HOME: tmpdir() };
    },
    async close() {
      await frontend.stop();
      await catalogs.close();
      await shop.close();
      await postgres?.stop();
    },
  };
}

/** Why a client cannot be tried here, or false. `probe` fails where it is not installed. */
export function missing(client: string, probe: readonly [string, ...string[]]): string | false {
  const [command, ...args] = probe;
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return false;
  } catch {
    return `${client} is not installed here`;
  }
}

export const PYTHON = '/usr/bin/python3';

export interface Ran {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

export function run(
  env: NodeJS.ProcessEnv,
  command: string,
  args: readonly string[],
  input: string | null = null,
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { env, timeout: 120_000, maxBuffer: 1 << 26 }, (error, out, err) =>
      resolve({ out, err, code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1 }),
    );
    child.stdin?.on('error', () => undefined); // it may have ended without reading
    child.stdin?.end(input ?? '');
  });
}

/** Runs a program that prints one JSON object per line, `{"step": …, "value": …}`, and gives them by step. */
export async function steps(
  t: Test,
  env: NodeJS.ProcessEnv,
  program: {
    readonly file: string;
    readonly text: string;
    readonly command: (file: string) => readonly [string, ...string[]];
  },
): Promise<ReadonlyMap<string, unknown>> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-client-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, program.file);
  writeFileSync(file, program.text);
  const [command, ...args] = program.command(file);
  const { out, err, code } = await run(env, command, args);
  t.equal(code, 0, `it runs to its end: ${err}`);
  const lines = out.split('\n').filter((line) => line.startsWith('{'));
  return new Map(
    lines.map((line) => JSON.parse(line) as { step: string; value: unknown }).map((l) => [l.step, l.value]),
  );
}

/** Rows that every client must find. */
export const TABLES = ['customer', 'line', 'order', 'product', 'sample'];
export const CUSTOMER_COLUMNS = ['id', 'name', 'email', 'tax_no', 'born', 'region'];
