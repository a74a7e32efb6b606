import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresClient } from '../../base/postgres/index.js';
import { StartProblem } from '../../base/start-problem.js';
import type { AnswerMemory } from '../answer-memory.js';
import { ConnectionStatus } from '../connection-status.js';
import { ForeignNodes } from '../data-nodes.js';
import type { EngineEvents, EngineSurroundings, OpenedEngine, ServingOptions } from '../engine.js';
import type { ErrorSource } from '../error-source.js';
import { GovernedEngine } from '../governed.js';
import { Lanes, SHARED_TIMEOUT_MS } from '../lanes.js';
import { OutOfService, type OutOfServiceCause } from '../out-of-service.js';
import { Pool } from '../pool.js';
import { Runner, type RunnerOptions } from '../runner.js';
import { governedSettings, type Timeouts } from '../settings.js';
import { PinnedSnapshot, SnapshotPlaces } from '../snapshot.js';
import type { PlanMode } from '../statement.js';
import { EngineStatus } from '../status.js';
import { lendFrom, SystemEngine } from '../system.js';
import { connectionLost, NoSystemCredentials } from '../upstream-error.js';
import { UpstreamSession } from '../upstream-session.js';
import { connectTransport } from './connect.js';
import { type ForeignTables, PARTITIONWISE } from './foreign-servers.js';
import { upstreamOf } from './hosts.js';
import { type ConnectorLogins, CurrentLogins } from './logins.js';
import { inspectRole, type RoleReport } from './role.js';
import { lackingFor, refusalOf } from './server-kind.js';

export interface PostgresConfig {
  readonly kind: 'postgres';
  /** URL of the governed role; null if `logins` provides it. */
  readonly url: string | null;
  /** URL of the system engine; null if this connector has none. */
  readonly systemUrl: string | null;
  /** True if `logins` provides `systemUrl`. Default: true if `systemUrl` is set. */
  readonly hasSystem?: boolean;
  /** Rereads both URLs when a server refuses a login, since a password may have changed. */
  readonly logins?: () => Promise<ConnectorLogins>;
  /** Number of sessions that run one statement at a time. */
  readonly poolSize: number;
  /** Number of sessions of the system engine; default 2. */
  readonly systemPoolSize?: number;
  /** Fraction of the pool, from 0 to 1, that one subject leaves free for others; default 0.25. */
  readonly poolReserve?: number;
  /**
   * Number of sessions shared by short statements of many callers. The same number again is used for statements that
   * are planned by value. 0 for none; default 2.
   */
  readonly sharedSessions?: number;
  /** Maximum wait for a session in ms; default 5,000. */
  readonly waitMs?: number;
  /** `statement_timeout` of sessions in ms, a backstop to the timeout of each execution; default 300,000. */
  readonly statementTimeoutMs?: number;
}

const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_MS = 30_000;
const MAX_WAITING = 10_000;
/** Fraction of the pool that a subject holding half of it leaves free. */
const RESERVE = 0.25;
const SYSTEM_SESSIONS = 2;
const SYSTEM_WAIT_MS = 60_000;

/**
 * Opens an engine on a native server. Throws an Error if the URL is invalid; in a process that does not serve, also if
 * the server cannot be reached or the governed role is unfit.
 */
export async function openPostgres(
  config: PostgresConfig,
  { onUpstreamError, onReach, spool, memory, serving }: EngineSurroundings,
): Promise<{ readonly engine: OpenedEngine; readonly runner: Runner }> {
  if (config.url !== null) checkUrl(config.url);
  const statementMs = config.statementTimeoutMs ?? 300_000;
  const logins = new CurrentLogins(config);
  let foreign: ForeignTables | null = null;
  const connect = async (ms: number, mode?: PlanMode): Promise<[UpstreamSession, RoleReport]> => {
    const connected = await logins.connect('url', (url) => connectGoverned(url, memory, timeouts(ms), mode));
    foreign = connected[1].foreign;
    return connected;
  };
  const reach = new ConnectionStatus(onReach);
  const first = new FirstSession(async () => {
    const [session, report] = await connect(statementMs);
    session.destroy();
    return report;
  }, reach);
  await first.begin(serving);
  const shared = config.sharedSessions ?? 2;
  const pool = new Pool({
    size: config.poolSize,
    reserve: config.poolReserve ?? RESERVE,
    waitMs: config.waitMs ?? 5_000,
    maxWaiting: MAX_WAITING,
    reach,
    connect: async () => (await connect(statementMs))[0],
  });
  const short = (mode: PlanMode): Promise<UpstreamSession> =>
    reach.attempt(async () => (await connect(SHARED_TIMEOUT_MS, mode))[0]);
  const lanes = shared > 0 ? new Lanes(shared, short) : null;
  const system = systemPool(config, logins, onReach, memory);
  const errors: ErrorSource = {
    backstopSeconds: statementMs / 1000,
    refusalOf: (error) => refusalOf(first.report?.kind ?? 'postgres', error),
  };
  const running: RunnerOptions = {
    pool,
    lanes,
    limitRows: false,
    settingForm: 'function',
    errors,
    onUpstreamError,
    spool,
    memory,
    runsAgain: true,
    govern: () => null,
  };
  const runner = new Runner(running);
  const places = new SnapshotPlaces(Math.floor(config.poolSize / 2));
  const shape = { pool, places, errors, onUpstreamError, memory };
  const outOfService = new OutOfService();
  const reported = (): RoleReport => {
    if (first.report === null) throw connectionLost();
    return first.report;
  };
  const status = new EngineStatus({
    kind: 'postgres',
    runner,
    outOfService,
    nodes: new ForeignNodes(() => foreign?.servers ?? [], running),
    server: () => first.report,
    whenReached: first.whenReached,
    pools: () => [
      pool.seen('questions'),
      ...(lanes === null ? [] : [lanes.seen(reach.state)]),
      ...(system === null ? [] : [system.seen('system')]),
    ],
  });
  const governed = new GovernedEngine({
    status,
    runner,
    outOfService,
    snapshot: (level, subject) => new PinnedSnapshot({ ...shape, level, subject }),
    lacking: (sql) => lackingFor(reported().kind, sql),
  });
  const lend = system === null ? refuseSystem : lendFrom(system, undefined, serving?.systemSilenceMs);
  const engine: OpenedEngine = Object.freeze({
    governed,
    system: new SystemEngine(lend, () => reported().role),
    takeOutOfService: (relations: ReadonlyMap<string, OutOfServiceCause>) => outOfService.replace(relations),
    renew: (next: ConnectorLogins) => logins.renew(next),
    async close() {
      first.close();
      pool.close();
      lanes?.close();
      system?.close();
    },
  });
  return { engine, runner };
}

/**
 * Refuses URLs that no server could accept. Parses each host as `pg` does, including the files it names. @throws Error
 */
function checkUrl(url: string): void {
  for (const host of upstreamOf(url).urls) new PostgresClient({ connectionString: host });
}

function timeouts(statementMs: number): Timeouts {
  return { statementMs, lockMs: LOCK_TIMEOUT_MS, idleInTransactionMs: IDLE_IN_TRANSACTION_MS };
}

/** INVARIANT: the role is inspected on every connection, since its rights may have grown. */
async function connectGoverned(
  url: string,
  memory: AnswerMemory,
  limits: Timeouts,
  mode?: PlanMode,
): Promise<[UpstreamSession, RoleReport]> {
  const reports: RoleReport[] = [];
  const transport = await connectTransport(url, 'osl-gateway', async (query) => {
    const found = await inspectRole(query);
    reports.push(found);
    await query(`${governedSettings(limits, mode)}${found.foreign.partitions ? PARTITIONWISE : ''}`);
  });
  const [report] = reports;
  if (report === undefined) throw new Error('the governed role was not inspected');
  return [new UpstreamSession(transport, memory), report];
}

/** Creates the pool of the system engine; null if the connector has no system credentials. */
function systemPool(
  { systemUrl, hasSystem = systemUrl !== null, systemPoolSize: size = SYSTEM_SESSIONS }: PostgresConfig,
  logins: CurrentLogins,
  onReach: EngineEvents['onReach'],
  memory: AnswerMemory,
): Pool | null {
  if (!hasSystem) return null;
  return new Pool({
    size,
    reserve: 0,
    reach: new ConnectionStatus(onReach),
    waitMs: SYSTEM_WAIT_MS,
    maxWaiting: MAX_WAITING,
    connect: () =>
      logins.connect('systemUrl', async (url) => {
        const setup = async (): Promise<void> => undefined;
        return new UpstreamSession(await connectTransport(url, 'osl-gateway system', setup), memory);
      }),
  });
}

function refuseSystem(): Promise<never> {
  return Promise.reject(new NoSystemCredentials());
}

/** Minimum pause between two attempts in ms. */
const AGAIN_MS = 500;
/** Time in ms that startup waits for a silent server; after that, the gateway starts and keeps trying to connect. */
const START_MS = 3_000;

/**
 * The first session with a server, in which its role is inspected.
 *
 * INVARIANT: nothing runs on the server before this session is opened and admitted, at startup or when the server
 * comes back.
 */
class FirstSession {
  readonly whenReached: Promise<void>;
  readonly #look: () => Promise<RoleReport>;
  readonly #reach: ConnectionStatus;
  #report: RoleReport | null = null;
  #reached: () => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** @param look connects and inspects the role */
  constructor(look: () => Promise<RoleReport>, reach: ConnectionStatus) {
    this.#look = look;
    this.#reach = reach;
    this.whenReached = new Promise((resolve) => {
      this.#reached = resolve;
    });
  }

  /** Result of the role inspection; null before the first session. */
  get report(): RoleReport | null {
    return this.#report;
  }

  /** Tries once or, in a serving process, until it succeeds. @throws StartProblem; errors of `look`, unless serving */
  async begin(serving: ServingOptions | null): Promise<void> {
    let starts = true;
    const had = this.#try(serving).catch((error: unknown) => {
      if (serving === null || (starts && error instanceof StartProblem)) throw error;
      this.#later(serving);
    });
    if (serving === null) return had;
    await Promise.race([had, sleep(START_MS, undefined, { ref: false })]);
    starts = false;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #try(serving: ServingOptions | null): Promise<void> {
    const report = serving === null ? await this.#look() : await this.#reach.attempt(this.#look);
    await serving?.admit();
    this.#report = report;
    this.#reached();
  }

  #later(serving: ServingOptions): void {
    if (this.#closed) return;
    const again = (): void => void this.#try(serving).catch(() => this.#later(serving));
    this.#timer = setTimeout(again, Math.max(AGAIN_MS, this.#reach.restMs)).unref();
  }
}
