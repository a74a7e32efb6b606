import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { mintToken } from '../../policy/index.js';
import { tenantKeys } from '../../src/service/keys.js';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Child, startChild } from './child.js';

/** A gateway in a separate process. */
export interface Gateway {
  readonly child: Child;
  readonly pgPort: number;
  readonly httpPort: number;
  /**
   * Creates a token valid for 300 s, by default for `user:bench`, with one data role. @param admin administrator roles
   */
  token(subject?: string, role?: string, admin?: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export const TENANT = 'bench';
export const SUBJECT = 'user:bench';
/** The role that `user:bench` has in every policy of the benches. */
export const ROLE = 'bench';

export interface GatewayOptions {
  readonly manifestFile: string;
  readonly policyFile: string;
  readonly postgres: NativePostgres;
  /** Command to run instead of `osl serve --json`; must print the same line. */
  readonly command?: readonly [string, ...string[]];
  /** Called before the start with the folder of its keys. */
  readonly prepare?: (dataDir: string) => Promise<void>;
  /** Additional environment variables. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts the product as a user does: `osl serve` with these files, connected to this Postgres. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const dataDir = mkdtempSync(join(tmpdir(), 'osl-bench-'));
  const env = {
    ...process.env,
    OSL_MANIFEST: resolve(options.manifestFile),
    OSL_POLICY: resolve(options.policyFile),
    OSL_DATA_DIR: dataDir,
    OSL_HTTP_PORT: '0',
    OSL_PG_PORT: '0',
    OSL_MAX_ROWS: '2000000',
    OSL_SUBJECT_SESSIONS: '20000', // all clients of a bench are one subject, from one address
    OSL_ADDRESS_SESSIONS: '20000',
    BENCH_DATABASE_URL: options.postgres.readerUrl,
    BENCH_DATABASE_URL_SYSTEM: options.postgres.url,
    ...options.environment,
  };
  const command = options.command ?? [process.execPath, resolve('bin/osl.js'), 'serve', '--json'];
  const forget = (): void => rmSync(dataDir, { recursive: true, force: true });
  await options.prepare?.(dataDir);
  const child = await startChild(command, { env }, (line) => line.includes('"listening"')).catch((error) => {
    forget();
    throw error;
  });
  const ports: unknown = JSON.parse(child.ready);
  return {
    child,
    pgPort: portOf(ports, 'pgPort'),
    httpPort: portOf(ports, 'httpPort'),
    token: (subject = SUBJECT, role = ROLE, roles = []) =>
      mintToken(
        { tenant: TENANT, chain: [subject], aclRoles: [role], ...(roles.length === 0 ? {} : { roles }) },
        { algorithm: 'HS256', secret: tenantKeys(dataDir).signing },
      ),
    stop: async () => {
      await child.stop();
      forget();
    },
  };
}

function portOf(line: unknown, name: 'pgPort' | 'httpPort'): number {
  const fields: Readonly<Record<string, unknown>> =
    typeof line === 'object' && line !== null ? { ...line } : {};
  const port = fields[name];
  if (typeof port !== 'number') throw new Error(`the gateway did not say its ${name}`);
  return port;
}
