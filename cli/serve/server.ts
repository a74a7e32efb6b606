import { join } from 'node:path';
import { InternalError } from 'osl-compiler';
import { DEFAULT_ISSUER } from '../../policy/index.js';
import { ProcessHistory } from '../../src/ask/operating/history/history.js';
import type { Jobs } from '../../src/ask/operating/insight.js';
import type { ServerOperations } from '../../src/ask/operating/process-status.js';
import type { ShadowCommands } from '../../src/ask/operating/shadow.js';
import type { ServiceLog } from '../../src/base/log.js';
import { PACKAGE_ROOT, version } from '../../src/base/package-root.js';
import { StartProblem } from '../../src/base/start-problem.js';
import { type OpenService, openService } from '../../src/service/open.js';
import { openMetricExport } from '../../src/service/otlp/observing.js';
import { DrainFile, type ProcessFiles, singleProcessFiles } from '../../src/service/process-files.js';
import type { ModelChange } from '../../src/service/reload/changes.js';
import type { PreparedChange, ReloadResult } from '../../src/service/reload/reload.js';
import type { Service } from '../../src/service/service.js';
import type { CertificateFiles, ServerTls } from '../../src/service/settings/groups.js';
import type { Settings } from '../../src/service/settings.js';
import { type CatalogOptions, type CatalogProvider, Catalogs } from '../../src/surfaces/catalog/index.js';
import { type ConsoleOptions, consoleFiles, type DemoSignIn } from '../../src/surfaces/console/route.js';
import { createHttpServer, type HttpServer } from '../../src/surfaces/http/server.js';
import type { MetricsJson } from '../../src/surfaces/http/telemetry.js';
import { createPgFrontend, type OwnSessions, type SessionCounts } from '../../src/surfaces/pg/index.js';
import type { CancelDirectory, WireServer } from '../../wire/index.js';
import { systemFault } from '../exit.js';
import { logLevelPart } from '../log.js';
import type { Progress } from '../output.js';
import { removeServerFile, type ServerRecord, writeServerFile } from '../server-file.js';
import {
  adminListener,
  adminRoutes,
  type OperatorParts,
  type ProcessControl,
  processControl,
  serverInsight,
  singleProcessOperations,
} from './admin.js';
import {
  type CertificateMaterial,
  checkedCertificate,
  SurfaceCertificate,
  watchCertificates,
} from './certificates.js';
import { type InspectedService, inspect, inspectDrift } from './inspect.js';
import { checkDataDir, checkPorts, spaceLeft } from './ports.js';

export interface RunningServer {
  readonly open: OpenService;
  readonly settings: Settings;
  readonly record: ServerRecord;
  /**
   * Reloads everything that can change at run time.
   *
   * @throws errors known to `toFailure`; in that case nothing has changed
   */
  reload(): Promise<ReloadResult>;
  /** Stops accepting requests, gives running ones `deadlineMs` to finish, and closes everything. */
  stop(deadlineMs: number): Promise<void>;
}

/** A server that is not listening yet: the operations that the supervisor's messages call. */
export interface AssembledServer {
  prepare(change: ModelChange): Promise<PreparedChange>;
  losePolicy(why: string, since: number): Promise<void>;
  renewDraft(id: string): Promise<void>;
  lookAtRevoked(): Promise<void>;
  /** Handles a cancel request received by another process. Returns false if the key belongs to no session here. */
  cancel(processId: number, key: Buffer): boolean;
  readonly register: OwnSessions;
  readonly own: ProcessControl;
  figures(): Promise<MetricsJson>;
}

export interface SharedAcrossProcesses extends ShadowCommands {
  readonly cancels: CancelDirectory;
  readonly sessions: SessionCounts;
  readonly own: OwnSessions;
  readonly name: string;
  readonly catalogs: CatalogProvider;
  readonly operated: ServerOperations;
  readonly jobs: Jobs;
  gather(): Promise<readonly MetricsJson[]>;
}

/** Additions of the demo to a server; null for `osl serve`. */
export interface Demo {
  load(open: OpenService, settings: Settings, progress: Progress): Promise<void>;
  /** Sign-in without a password; null if that would be unsafe. */
  signIn(settings: Settings): DemoSignIn | null;
}

export interface ServerOptions {
  readonly settings: Settings;
  /** Additions of the demo; null on every other server. */
  readonly demo: Demo | null;
  readonly log: ServiceLog;
  readonly progress: Progress;
  /** Parts shared between processes; set only if the server has several. */
  readonly common?: SharedAcrossProcesses;
  /** Resolves when requests may be accepted; a worker first catches up with the others. */
  readonly admitted?: (open: AssembledServer) => Promise<void>;
}

/**
 * Starts a server. Files and ports are checked before anything is written to disk; on failure, everything that was
 * opened is closed.
 *
 * @throws Failure, StartProblem, ManifestProblems and other errors known to `toFailure`
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings } = options;
  await checkPorts(settings);
  checkDataDir(settings.dataDir);
  const server = await openServer(options, singleProcessFiles(settings.dataDir));
  const stop = async (deadlineMs: number): Promise<void> => {
    removeServerFile(settings.dataDir, process.pid);
    await server.stop(deadlineMs);
  };
  try {
    const record = writeServerFile(settings.dataDir, recordOf(options, server));
    return { ...server, record, stop };
  } catch (error) {
    await stop(0);
    throw error;
  }
}

export interface ListeningServer extends Omit<RunningServer, 'record'> {
  readonly httpPort: number;
  readonly pgPort: number;
  readonly adminPort: number | null;
  readonly adminPgPort: number | null;
}

/** Opens the service and its ports. Throws the same errors as `startServer`. */
export async function openServer(options: ServerOptions, seat: ProcessFiles): Promise<ListeningServer> {
  const { settings, log, progress } = options;
  const closing: ((deadlineMs: number) => Promise<void>)[] = [];
  const stop = async (deadlineMs: number): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end(deadlineMs);
  };
  try {
    progress.step('starting');
    const open = await asStartProblem(openService(settings, log, seat), settings);
    closing.push(() => open.close());
    await options.demo?.load(open, settings, progress);
    await inspect(open, settings);
    for (const engine of open.service.engines.values())
      if (!engine.reached) void engine.whenReached.then(() => inspect(open, settings));
    const late: { operator: OperatorParts | null } = { operator: null };
    const operator = (): OperatorParts => {
      if (late.operator === null) throw new InternalError('the server has not begun');
      return late.operator;
    };
    const fronts = await frontends(options, open.service, operator, closing);
    const { cancel, register, figures, own } = fronts;
    const reload = async (): Promise<ReloadResult> => {
      const told = await open.reload(more);
      await inspect(open, settings);
      return told;
    };
    const kept = new DrainFile(settings.dataDir);
    const operated = options.common?.operated ?? singleProcessOperations(own, kept, reload);
    const insight = serverInsight(open, settings, options.common, figures, closing);
    const shadows = options.common ?? { shadow: async (command) => [await own.shadow(command)] };
    late.operator = { operated, insight, shadows };
    const admin = await adminListener(settings, open.service, late.operator, closing);
    const certificates = [...fronts.certificates, ...admin.certificates];
    const more = [...certificates, ...logLevelPart()];
    const prepare = async (change: ModelChange): Promise<PreparedChange> => {
      const prepared = await open.prepare(change, more);
      const take = async (): Promise<ReloadResult> => {
        const told = await prepared.apply();
        void inspect(open, settings);
        return told;
      };
      return { apply: take, abandon: () => prepared.abandon() };
    };
    await options.admitted?.({
      prepare,
      cancel,
      register,
      figures,
      own,
      losePolicy: (why, since) => open.losePolicy(why, since),
      renewDraft: (id) => open.renewDraft(id),
      lookAtRevoked: () => open.service.revocations.refresh(),
    });
    // After `admitted`, a worker is notified of changes, so no change of the drain state is missed between the two.
    if (kept.since() !== null) own.drain(true);
    if (seat.ownsDirectory) kept.report(log);
    const unwatchDrift = watchDrift(open, settings.driftMs);
    closing.push(async () => unwatchDrift());
    closing.push(openMetricExport(settings, log, figures));
    const ports = { ...(await fronts.listen()), ...(await admin.listen()) };
    const unwatch = watchCertificates(certificates, settings.tls.watchMs, log, (now) => {
      log.warn('other certificates are shown from now on', { now });
      void open.record('service.reload', { reloaded: true, now, kept: [] });
    });
    closing.push(async () => unwatch());
    return { open, settings, ...ports, reload, stop };
  } catch (error) {
    await stop(0);
    throw error;
  } finally {
    progress.end();
  }
}

/** Creates both frontends, which do not listen yet. They stop in parallel, before the service does. */
async function frontends(
  { settings, common, demo }: ServerOptions,
  service: Service,
  operator: () => OperatorParts,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Promise<{
  readonly certificates: readonly SurfaceCertificate[];
  readonly cancel: AssembledServer['cancel'];
  readonly register: OwnSessions;
  readonly figures: AssembledServer['figures'];
  readonly own: ProcessControl;
  listen(): Promise<{ readonly httpPort: number; readonly pgPort: number }>;
}> {
  const { wire, http } = certificatesIn(settings.tls);
  const catalogs = common?.catalogs ?? ownCatalogs(settings, service, closing);
  const pg = createPgFrontend(service, {
    ...(wire !== null && { tls: wire }),
    catalogs,
    acceptsSessions: () => !service.draining(),
    maxSubjectSessions: settings.subjectSessions,
    maxAddressSessions: settings.load.addressSessions,
    ...(common !== undefined && {
      cancels: common.cancels,
      sessions: common.sessions,
      callerSessions: common.own,
    }),
  });
  let wirePort = settings.pgPort;
  const rest = await createHttpServer(service, {
    console: consoleOf(settings, service, demo?.signIn(settings) ?? null, () => wirePort),
    additionalRoutes: await adminRoutes(settings, () => ({ ...service, ...operator() })),
    wire: pg,
    ...(http !== null && { tls: http }),
    ...(common !== undefined && { collectMetrics: () => common.gather() }),
    metricsFrom: settings.metricsFrom,
    corsOrigins: settings.corsOrigins,
    mcp: { ...settings.mcp, version: version() },
  });
  closing.push(async (deadlineMs) => {
    await Promise.all([rest.close(deadlineMs), pg.stop(deadlineMs)]);
  });
  const listen = async () => {
    const { port: httpPort } = await rest.listen(settings.httpPort, settings.host);
    const { port: pgPort } = await pg.listen(settings.pgPort, settings.host);
    wirePort = pgPort;
    return { httpPort, pgPort };
  };
  const cancel = (processId: number, key: Buffer): boolean => pg.cancel(processId, key);
  const figures = (): Promise<MetricsJson> => rest.figures();
  const { register } = pg;
  const { inflight } = rest;
  const history = new ProcessHistory({
    observing: service.observing,
    engines: service.engines,
    audit: service.audit,
    wireSessions: () => pg.connections,
  });
  history.start();
  closing.push(async () => history.stop());
  const own = processControl(service, { name: common?.name ?? 'server', pg, inflight, history });
  return {
    listen,
    cancel,
    register,
    figures,
    certificates: shownCertificates(settings.tls, pg, rest),
    own,
  };
}

function certificatesIn({ wire, http, clients }: ServerTls) {
  const asks = clients === null ? {} : ({ clients: clients.demanded ? 'demanded' : 'asked' } as const);
  const read = (files: CertificateFiles | null) => {
    if (files === null) return null;
    const { until: _until, ...certificate } = checkedCertificate({ ...files, clients });
    return { ...certificate, ...asks };
  };
  return { wire: read(wire), http: read(http) };
}

function shownCertificates(
  { wire, http, clients }: ServerTls,
  pg: Pick<WireServer, 'secure'>,
  rest: Pick<HttpServer, 'secure'>,
): readonly SurfaceCertificate[] {
  const asks = clients === null ? {} : ({ clients: clients.demanded ? 'demanded' : 'asked' } as const);
  const shown = (files: CertificateFiles | null, secure: (tls: CertificateMaterial & typeof asks) => void) =>
    files === null
      ? []
      : [new SurfaceCertificate({ ...files, clients }, (next) => secure({ ...next, ...asks }))];
  return [...shown(wire, (next) => pg.secure(next)), ...shown(http, (next) => rest.secure(next))];
}

function ownCatalogs(
  settings: Settings,
  { log }: Service,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Catalogs {
  const catalogs = new Catalogs(catalogOptions(settings, log));
  closing.push(() => catalogs.close());
  // Built in advance so that the first client need not wait for the base image; if this fails, that client gets the
  // error.
  catalogs.warm().catch((error: unknown) => log.warn('the catalog is not warm', { error: String(error) }));
  return catalogs;
}

export function catalogOptions(
  { dataDir, catalogEngines, catalogTimeoutMs }: Settings,
  log: ServiceLog,
): CatalogOptions {
  return {
    dir: join(dataDir, 'catalog'),
    maxEngines: catalogEngines,
    statementMs: catalogTimeoutMs,
    log,
  };
}

export function recordOf(
  { settings, demo }: Pick<ServerOptions, 'settings' | 'demo'>,
  ports: Pick<ListeningServer, 'httpPort' | 'pgPort' | 'adminPort' | 'adminPgPort'>,
) {
  const { host, tls, manifestFile, policyFile, localTokens, issuers, audiences } = settings;
  const startedAt = new Date().toISOString();
  return {
    host,
    httpPort: ports.httpPort,
    pgPort: ports.pgPort,
    adminHost: settings.admin.host,
    adminPort: ports.adminPort,
    adminPgPort: ports.adminPgPort,
    tls: tls.wire !== null,
    httpCertFile: tls.http?.certFile ?? '',
    localTokens,
    hasIssuers: settings.publicKeyFiles.length > 0 || settings.issuersFile !== null,
    issuer: issuers[0] ?? DEFAULT_ISSUER,
    audience: audiences[0] ?? '',
    manifestFile,
    policyFile,
    demo: demo !== null,
    version: version(),
    startedAt,
  };
}

/**
 * Converts plain engine errors to StartProblem, with a remark if the disk is nearly full; other errors pass through
 * unchanged.
 */
export async function asStartProblem<T>(work: Promise<T>, { dataDir }: Settings): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const plain = error instanceof Error && (error.name === 'Error' || error.name === 'UpstreamFailure');
    if (!plain || systemFault(error) !== null) throw error;
    throw new StartProblem(`${error.message}${spaceLeft(dataDir)}`);
  }
}

const POLL_MS = 250;
const REST_MS = 1_000;

const DRIFT_CODES = ['E0525', 'E0526'] as const;

/**
 * Checks databases for drift every `everyMs`, and soon after a query failed because of drift, so that objects go out of
 * service and come back without a reload. If `everyMs` is 0, drift is checked only at start and reload. Returns a
 * function that stops the checks.
 */
function watchDrift(open: InspectedService, everyMs: number): () => void {
  const { service } = open;
  if (everyMs === 0) return () => undefined;
  let lookedAt = performance.now();
  let met = driftErrors(service);
  let looking = false;
  const look = async (): Promise<void> => {
    const rested = performance.now() - lookedAt;
    const now = driftErrors(service);
    if (looking || (rested < everyMs && (now === met || rested < REST_MS))) return;
    looking = true;
    met = now;
    try {
      await inspectDrift(open);
    } finally {
      lookedAt = performance.now();
      looking = false;
    }
  };
  const timer = setInterval(
    () => void look().catch((error: unknown) => service.log.error('drift', { error: String(error) })),
    Math.min(POLL_MS, everyMs),
  ).unref();
  return () => clearInterval(timer);
}

function driftErrors({ observing: { meters } }: Service): number {
  return DRIFT_CODES.reduce((sum, code) => sum + (meters.codes.get(code) ?? 0), 0);
}

const FOLDER = join(PACKAGE_ROOT, 'dist', 'console');

function consoleOf(
  settings: Settings,
  service: Pick<Service, 'logins'>,
  demo: DemoSignIn | null,
  wirePort: () => number,
): ConsoleOptions | null {
  if (settings.console === 'off') return null;
  const files = consoleFiles(FOLDER);
  if (!files.has('index.html'))
    throw new StartProblem(
      'the console is not built, which takes Node 20.19 or newer: run `npm run build`, or start with --console off',
    );
  return {
    files,
    admin: settings.console === 'admin',
    version: version(),
    demo,
    localTokens: settings.localTokens,
    wire: () => ({ port: wirePort(), tls: settings.tls.wire !== null }),
    logins: service.logins,
  };
}
