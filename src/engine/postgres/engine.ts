import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresClient, upstreamOf } from '../../base/postgres/index.js';
import { StartProblem } from '../../base/start-problem.js';
import { type AnswerMemory, unboundedMemory } from '../answer-memory.js';
import { ConnectionStatus } from '../connection-status.js';
import { ForeignNodes } from '../data-nodes.js';
import type { EngineContext, EngineEvents, OpenedEngine, RenewedLogins, ServingOptions } from '../engine.js';
import { SnapshotPlaces } from '../fair-share.js';
import { GovernedEngine } from '../governed.js';
import { OutOfService, type OutOfServiceCause } from '../out-of-service.js';
import { Pool } from '../pool.js';
import { Runner, type RunnerOptions } from '../runner.js';
import { QueryServers } from '../servers.js';
import { PinnedSnapshot } from '../snapshot.js';
import { EngineStatus } from '../status.js';
import { closeIfSilent, SystemEngine, withSessionFrom } from '../system.js';
import { connectionLost } from '../upstream-error.js';
import { type ErrorSource, NoSystemCredentials } from '../upstream-report.js';
import { UpstreamSession } from '../upstream-session.js';
import { connectTransport } from './connect.js';
import type { ForeignTables } from './foreign-servers.js';
import { type ConnectorLogins, CurrentLogins } from './logins.js';
import {
  type ConnectGoverned,
  connectGoverned,
  MAX_WAITING,
  poolsOf,
  queryServer,
  type ServerSizes,
  timeoutsOf,
} from './query-server.js';
import { examineRole, type RoleReport } from './role.js';
import { lackingFor, refusalOf } from './server-kind.js';
import { type StandbyConfigs, StandbySet } from './standby/standby-set.js';

export interface PostgresConfig {
  readonly kind: 'postgres';
  /** URL of the governed role; null if `logins` provides it. */
  readonly url: string | null;
  /** URL for the gateway's own statements; null if the connector has no system credentials or `logins` provides it. */
  readonly systemUrl: string | null;
  /** True if the connector has system credentials, even if `systemUrl` is null. Default: true if `systemUrl` is set. */
  readonly hasSystem?: boolean;
  /** Rereads both URLs if a URL is not known or a server refuses a login, since a password may have changed. */
  readonly logins?: () => Promise<ConnectorLogins>;
  /** Standbys that may answer queries; none by default. */
  readonly standbys?: StandbyConfigs;
  /** Number of sessions that run one statement at a time. */
  readonly poolSize: number;
  /** Number of sessions of the system engine; default 2. */
  readonly systemPoolSize?: number;
  /** Fraction of the pool, from 0 to 1, that a subject must leave free once it holds half of the pool; default 0.25. */
  readonly poolReserve?: number;
  /**
   * Number of sessions per plan mode (custom or generic plans) in which the short statements of many callers run; 0
   * disables sharing. Default: 2.
   */
  readonly sharedSessions?: number;
  /** Maximum wait for a session in ms; default 5,000. */
  readonly waitMs?: number;
  /** `statement_timeout` of sessions in ms, a backstop to the timeout of each execution; default 300,000. */
  readonly statementTimeoutMs?: number;
}

/** Fraction of the pool that a subject must leave free once it holds half of the pool. */
const DEFAULT_RESERVE = 0.25;
const SYSTEM_SESSIONS = 2;
const SYSTEM_WAIT_MS = 60_000;

/**
 * Opens an engine on a Postgres server that is not embedded. Throws an Error if a URL is invalid. If the server is
 * unreachable or its role unfit, throws an Error unless serving; when serving, StartProblem if the server is not
 * admitted.
 */
export async function openPostgres(
  config: PostgresConfig,
  context: EngineContext,
): Promise<{ readonly engine: OpenedEngine; readonly runner: Runner }> {
  for (const url of [config.url, ...(config.standbys?.servers ?? []).map((s) => s.url)])
    if (url !== null) checkUrl(url);
  const { onUpstreamError, onReach, onStandby, spool, memory, serving } = context;
  const statementMs = config.statementTimeoutMs ?? 300_000;
  const sizes: ServerSizes = {
    poolSize: config.poolSize,
    poolReserve: config.poolReserve ?? DEFAULT_RESERVE,
    sharedSessions: config.sharedSessions ?? 2,
    waitMs: config.waitMs ?? 5_000,
    statementMs,
  };
  const logins = new CurrentLogins(config);
  let foreign: ForeignTables | null = null;
  const reach = new ConnectionStatus(onReach);
  const connect: ConnectGoverned = async (limits, mode) => {
    const connected = await logins.connect('url', (url) => connectGoverned(url, memory, limits, mode));
    foreign = connected[1].foreign;
    return connected;
  };
  const first = new FirstSession(async () => {
    const [session, report] = await connect(timeoutsOf(statementMs));
    session.destroy();
    return report;
  }, reach);
  await first.begin(serving);
  const primary = queryServer(connect, reach, sizes);
  const standbys =
    config.standbys === undefined
      ? null
      : new StandbySet(config.standbys, { primary: logins, sizes, memory, onStandby });
  const system = systemPool(config, logins, onReach, memory);
  const servers = new QueryServers(primary, standbys);
  const errors: ErrorSource = {
    backstopSeconds: statementMs / 1000,
    refusalOf: (error) => refusalOf(first.report?.kind ?? 'postgres', error),
  };
  const runnerOptions: RunnerOptions = {
    servers,
    limitRows: false,
    settingForm: 'function',
    errors,
    onUpstreamError,
    spool,
    memory,
    mayRunAgain: true,
    govern: () => null,
  };
  const runner = new Runner(runnerOptions);
  const places = new SnapshotPlaces(Math.floor(config.poolSize / 2));
  const outOfService = new OutOfService();
  const requireReport = (): RoleReport => {
    if (first.report === null) throw connectionLost();
    return first.report;
  };
  const status = new EngineStatus({
    kind: 'postgres',
    runner,
    outOfService,
    nodes: new ForeignNodes(() => foreign?.servers ?? [], runnerOptions),
    server: () => first.report,
    whenReached: first.whenReached,
    standbys: () => standbys?.views() ?? [],
    pools: () => [
      ...poolsOf(primary),
      ...(standbys?.pools() ?? []),
      ...(system === null ? [] : [system.metrics('system')]),
    ],
  });
  const governed = new GovernedEngine({
    status,
    runner,
    outOfService,
    snapshot: (level, subject, standby) =>
      new PinnedSnapshot({ servers, places, rules: runnerOptions, level, subject, standby }),
    missingForm: (sql) => lackingFor(requireReport().kind, sql),
  });
  const withSession =
    system === null ? refuseSystem : withSessionFrom(system, undefined, serving?.systemSilenceMs);
  const engine: OpenedEngine = Object.freeze({
    governed,
    system: new SystemEngine(withSession, () => requireReport().role),
    takeOutOfService: (relations: ReadonlyMap<string, OutOfServiceCause>) => outOfService.replace(relations),
    requireCurrent: () => standbys?.requireCurrent(),
    renew: (next: RenewedLogins) => {
      logins.renew(next);
      standbys?.renew(next.standbys);
    },
    async close() {
      first.close();
      standbys?.close();
      primary.pool.close();
      primary.lanes?.close();
      system?.close();
    },
  });
  return { engine, runner };
}

/** Checks that `pg` can parse the URL, for each of its hosts, and read the files that it names. @throws Error if not */
function checkUrl(url: string): void {
  for (const host of upstreamOf(url).urls) new PostgresClient({ connectionString: host });
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

/** Minimum pause between two attempts to connect, in ms. */
const RETRY_MS = 500;
/** Time in ms that startup waits for a silent server; after that, the gateway starts and keeps trying to connect. */
const STARTUP_WAIT_MS = 3_000;

/**
 * The first session with a server, in which its role is inspected.
 *
 * INVARIANT: nothing runs on the server before this session is opened and admitted, at startup or when the server
 * comes back.
 */
class FirstSession {
  readonly whenReached: Promise<void>;
  readonly #inspect: () => Promise<RoleReport>;
  readonly #reach: ConnectionStatus;
  #report: RoleReport | null = null;
  #reached: () => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** @param inspect connects and inspects the role */
  constructor(inspect: () => Promise<RoleReport>, reach: ConnectionStatus) {
    this.#inspect = inspect;
    this.#reach = reach;
    this.whenReached = new Promise((resolve) => {
      this.#reached = resolve;
    });
  }

  /** Result of the role inspection; null before the first session. */
  get report(): RoleReport | null {
    return this.#report;
  }

  /**
   * Tries to connect: once, or when serving, until it succeeds. When serving, resolves after `STARTUP_WAIT_MS` at the
   * latest and keeps trying in the background.
   *
   * @throws StartProblem; the errors of `inspect`, unless serving
   */
  async begin(serving: ServingOptions | null): Promise<void> {
    let isStarting = true;
    const attempt = this.#attempt(serving).catch((error: unknown) => {
      if (serving === null || (isStarting && error instanceof StartProblem)) throw error;
      this.#retryLater(serving);
    });
    if (serving === null) return attempt;
    await Promise.race([attempt, sleep(STARTUP_WAIT_MS, undefined, { ref: false })]);
    isStarting = false;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #attempt(serving: ServingOptions | null): Promise<void> {
    const report = serving === null ? await this.#inspect() : await this.#reach.attempt(this.#inspect);
    await serving?.admit();
    this.#report = report;
    this.#reached();
  }

  #retryLater(serving: ServingOptions): void {
    if (this.#closed) return;
    const retry = (): void => void this.#attempt(serving).catch(() => this.#retryLater(serving));
    this.#timer = setTimeout(retry, Math.max(RETRY_MS, this.#reach.pauseMs)).unref();
  }
}

/** A connection for setup and diagnosis. The server and the role need not meet the requirements for serving. */
export interface Survey {
  /** Runs with all rights of the role in the URL; `reader` is that role. */
  readonly system: SystemEngine;
  readonly report: RoleReport;
  close(): void;
}

/** Time in ms without an answer after which the survey's session is closed. */
const SILENCE_MS = 60_000;

/** Connects as the role in the URL without checking its rights. Throws the error of `pg` if that fails. */
export async function surveyPostgres(url: string): Promise<Survey> {
  const reports: RoleReport[] = [];
  const transport = await connectTransport(url, 'osl-gateway setup', async (query) => {
    reports.push(await examineRole(query));
  });
  const [report] = reports;
  if (report === undefined) throw new Error('the role was not looked at');
  const session = new UpstreamSession(transport, unboundedMemory());
  const system = new SystemEngine(
    (work) => work(session),
    () => report.role,
  );
  const unwatch = closeIfSilent(SILENCE_MS, session);
  const close = (): void => {
    unwatch();
    session.destroy();
  };
  return { system, report, close };
}
