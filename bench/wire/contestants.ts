import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Gateway, SUBJECT, startGateway } from '../support/gateway.js';
import type { Target } from '../support/pgbench.js';
import { startPgBouncer } from '../support/pgbouncer.js';

/** One route to the same rows. */
export interface Contestant {
  readonly name: string;
  /** Process between client and Postgres; null for a direct connection. */
  readonly pid: number | null;
  /** Target of pgbench for `sql`, with the table name that this route uses. */
  target(sql: (table: string) => string): Target;
}

export interface Contestants {
  readonly direct: Contestant;
  /** PgBouncer as a contestant; null if it is not installed. */
  readonly pgbouncer: Contestant | null;
  readonly gateway: Contestant;
  readonly process: Gateway;
  stop(): Promise<void>;
}

/** PgBouncer's default. On two cores pools of 8 and 64 were equally fast within the noise, pools of 2 and 4 slower. */
const BOUNCER_POOL = 20;

export const MANIFEST = 'bench/wire/manifest.yaml';
export const POLICY = 'bench/wire/policy.yaml';

/** @param workers number of gateway workers */
export async function startContestants(postgres: NativePostgres, workers = 1): Promise<Contestants> {
  const bouncer = await startPgBouncer(postgres.readerUrl, BOUNCER_POOL);
  const starting = startGateway({
    manifestFile: MANIFEST,
    policyFile: POLICY,
    postgres,
    environment: { OSL_WORKERS: `${workers}` },
  });
  const process = await starting.catch(async (error) => {
    await bouncer?.stop();
    throw error;
  });
  if (bouncer === null) globalThis.process.stderr.write('pgbouncer: not run, since it is not installed\n');
  return {
    direct: directContestant(postgres),
    pgbouncer: bouncer && {
      name: `${bouncer.version}, transaction mode`,
      pid: bouncer.child.pid,
      target: (sql) => ({
        ...upstreamTarget(postgres, bouncer.version, sql),
        port: bouncer.port,
        database: 'bench',
      }),
    },
    gateway: gatewayContestant(process),
    process,
    stop: async () => {
      await process.stop();
      await bouncer?.stop();
    },
  };
}

function directContestant(postgres: NativePostgres): Contestant {
  return { name: 'direct', pid: null, target: (sql) => upstreamTarget(postgres, 'direct', sql) };
}

export function gatewayContestant(gateway: Gateway, name = 'gateway'): Contestant {
  return {
    name,
    pid: gateway.child.pid,
    target: (sql) => ({
      name,
      port: gateway.pgPort,
      user: SUBJECT,
      database: 'osl',
      password: () => gateway.token(),
      script: sql('osl.entities.account'),
    }),
  };
}

function upstreamTarget(postgres: NativePostgres, name: string, sql: (table: string) => string): Target {
  const url = new URL(postgres.readerUrl);
  return {
    name,
    port: Number(url.port),
    user: url.username,
    database: url.pathname.slice(1),
    password: async () => url.password,
    script: sql('bench.account'),
  };
}
