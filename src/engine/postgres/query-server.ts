import type { AnswerMemory } from '../answer-memory.js';
import type { ConnectionStatus } from '../connection-status.js';
import { Lanes, SHARED_TIMEOUT_MS } from '../lanes.js';
import { type EnginePool, Pool } from '../pool.js';
import type { QueryServer } from '../servers.js';
import { governedSettings, type Timeouts } from '../settings.js';
import type { PlanMode } from '../statement.js';
import { UpstreamSession } from '../upstream-session.js';
import { connectTransport, type SetupQuery } from './connect.js';
import { PARTITIONWISE } from './foreign-servers.js';
import { inspectRole, type RoleReport } from './role.js';

/** Sizes and limits of the sessions with one server. */
export interface ServerSizes {
  readonly poolSize: number;
  readonly poolReserve: number;
  /** Number of shared sessions for each plan mode; 0 for none. */
  readonly sharedSessions: number;
  /** Maximum wait for a session in ms. */
  readonly waitMs: number;
  readonly statementMs: number;
}

const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_MS = 30_000;
/** Maximum number of requests that wait for a session, in each pool. */
export const MAX_WAITING = 10_000;

/** Opens a session in its governed state, and returns it with the report on its role. */
export type ConnectGoverned = (
  limits: Timeouts,
  mode?: PlanMode,
) => Promise<readonly [UpstreamSession, RoleReport]>;

export function timeoutsOf(statementMs: number): Timeouts {
  return { statementMs, lockMs: LOCK_TIMEOUT_MS, idleInTransactionMs: IDLE_IN_TRANSACTION_MS };
}

/**
 * Creates the pool and the shared sessions for queries on one server. Sessions are opened when they are first needed.
 *
 * @param standby name of the standby; null for the primary
 */
export function queryServer(
  connect: ConnectGoverned,
  reach: ConnectionStatus,
  { poolSize, poolReserve, sharedSessions, waitMs, statementMs }: ServerSizes,
  standby: string | null = null,
): QueryServer {
  const pool = new Pool({
    size: poolSize,
    reserve: poolReserve,
    waitMs,
    maxWaiting: MAX_WAITING,
    reach,
    connect: async () => (await connect(timeoutsOf(statementMs)))[0],
  });
  const connectShared = (mode: PlanMode): Promise<UpstreamSession> =>
    reach.attempt(async () => (await connect(timeoutsOf(SHARED_TIMEOUT_MS), mode))[0]);
  return { pool, lanes: sharedSessions > 0 ? new Lanes(sharedSessions, connectShared) : null, standby };
}

export function poolsOf({ pool, lanes, standby }: QueryServer): readonly EnginePool[] {
  return [
    pool.metrics('questions', standby),
    ...(lanes === null ? [] : [lanes.metrics(pool.reach, standby)]),
  ];
}

/**
 * Opens a governed session. INVARIANT: the role is inspected on every connection, since it may have gained rights.
 *
 * @param check runs before anything else on the connection, and rejects if the connection must not be used
 */
export async function connectGoverned(
  url: string,
  memory: AnswerMemory,
  limits: Timeouts,
  mode?: PlanMode,
  check?: (query: SetupQuery) => Promise<void>,
): Promise<[UpstreamSession, RoleReport]> {
  const reports: RoleReport[] = [];
  const transport = await connectTransport(url, 'osl-gateway', async (query) => {
    await check?.(query);
    const inspected = await inspectRole(query);
    reports.push(inspected);
    await query(`${governedSettings(limits, mode)}${inspected.foreign.partitions ? PARTITIONWISE : ''}`);
  });
  const [report] = reports;
  if (report === undefined) throw new Error('the governed role was not inspected');
  return [new UpstreamSession(transport, memory), report];
}
