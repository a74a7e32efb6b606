import { join } from 'node:path';
import { InternalError } from 'osl-compiler';
import { DEFAULT_ISSUER } from '../../policy/index.js';
import type { Jobs } from '../../src/ask/operating/insight.js';
import type { ServerOperations } from '../../src/ask/operating/views.js';
import type { ServiceLog } from '../../src/base/log.js';
import { PACKAGE_ROOT, version } from '../../src/base/package-root.js';
import { StartProblem } from '../../src/base/start-problem.js';
import { openMetricExport } from '../../src/service/observing.js';
import { type OpenService, openService } from '../../src/service/open.js';
import type { ModelChange } from '../../src/service/reload/changes.js';
import type { PreparedChange, ReloadResult } from '../../src/service/reload/reload.js';
import { aloneIn, type ProcessFiles } from '../../src/service/seat.js';
import type { Service } from '../../src/service/service.js';
import type { CertificateFiles, ServerTls } from '../../src/service/settings/tls.js';
import type { Settings } from '../../src/service/settings.js';
import { type CatalogDoor, type CatalogOptions, Catalogs } from '../../src/surfaces/catalog/index.js';
import { type ConsoleOptions, consoleFiles, type DemoSignIn } from '../../src/surfaces/console/index.js';
import { createHttpServer, type HttpServer } from '../../src/surfaces/http/server.js';
import type { MetricsJson } from '../../src/surfaces/http/telemetry.js';
import { createPgFrontend, type OwnSessions, type SessionCounts } from '../../src/surfaces/pg/index.js';
import type { CancelDirectory, WireServer } from '../../wire/index.js';
import { systemFault } from '../exit.js';
import { logLevelPart } from '../log.js';
import type { Progress } from '../progress.js';
import { removeServerFile, type ServerRecord, writeServerFile } from '../server-file.js';
import {
  adminListener,
  adminRoutes,
  type OperatorParts,
  type OwnPart,
  operatedAlone,
  ownPart,
} from './admin.js';
import {
  type CertificateMaterial,
  checkedCertificate,
  SurfaceCertificate,
  watchCertificates,
} from './certificates.js';
import { serverInsight } from './insight.js';
import { type InspectedService, inspect, inspectDrift } from './inspect.js';
import { checkDataDir, checkPorts, spaceLeft } from './ports.js';

export interface RunningServer {
  readonly open: OpenService;
  readonly settings: Settings;
  /** With the ports that it really has. */
  readonly record: ServerRecord;
  /** Reads everything anew that can change while it runs. @throws what `failureOf` knows; nothing has changed then */
  reload(): Promise<ReloadResult>;
  /** Takes nothing more, lets what runs end for `deadlineMs`, and closes everything. */
  stop(deadlineMs: number): Promise<void>;
}

/** A server that is open and does not listen yet, as the supervisor asks it. */
export interface OpenServer {
  prepare(change: ModelChange): Promise<PreparedChange>;
  losePolicy(why: string, since: number): Promise<void>;
  renewDraft(id: string): Promise<void>;
  /** Takes up what other processes have revoked. */
  lookAtRevoked(): Promise<void>;
  /** A cancel request that another process was sent. False if the key is not a session's of this one. */
  cancel(processId: number, key: Buffer): boolean;
  /** The sessions of the wire that are open in this process. */
  readonly register: OwnSessions;
  /** What this process has to tell who runs the server, and does for them. */
  readonly own: OwnPart;
  /** What this process counts. */
  figures(): Promise<MetricsJson>;
}

/** What the frontends of several processes have in common. */
export interface SharedAcrossProcesses {
  readonly cancels: CancelDirectory;
  readonly sessions: SessionCounts;
  readonly own: OwnSessions;
  /** Of this process, to who runs the server. */
  readonly name: string;
  readonly catalogs: CatalogDoor;
  readonly operated: ServerOperations;
  /** Done once for all. */
  readonly jobs: Jobs;
  gather(): Promise<readonly MetricsJson[]>;
}

/** Additions of the demo to a server. `osl demo` alone has a value of this type. */
export interface Demo {
  /** Loads its data. */
  load(open: OpenService, settings: Settings, progress: Progress): Promise<void>;
  /** Sign-in without a password; null where that is not safe. */
  signIn(settings: Settings): DemoSignIn | null;
}

export interface ServerOptions {
  readonly settings: Settings;
  /** Null on every server but the demo's. */
  readonly demo: Demo | null;
  readonly log: ServiceLog;
  readonly progress: Progress;
  /** What the frontends of several processes have in common; one process has it all. */
  readonly common?: SharedAcrossProcesses;
  /** Resolves when the service, which is open, may be asked: a worker first takes up what the others serve. */
  readonly admitted?: (open: OpenServer) => Promise<void>;
}

/**
 * Starts a server: both files are read and both ports looked at before anything is written to the disk. What was
 * opened is closed again where a later step fails.
 *
 * @throws Failure, StartProblem, ManifestProblems and what else `failureOf` knows
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings } = options;
  await checkPorts(settings);
  checkDataDir(settings.dataDir);
  const server = await openServer(options, aloneIn(settings.dataDir));
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

/** A server that listens, and has told nobody where yet. */
export interface ListeningServer extends Omit<RunningServer, 'record'> {
  readonly httpPort: number;
  readonly pgPort: number;
  /** Of the admin listener; null where it is not opened. */
  readonly adminPort: number | null;
  readonly adminPgPort: number | null;
}

/** Opens the service of one seat and both its ports. Throws as `startServer`. */
export async function openServer(options: ServerOptions, seat: ProcessFiles): Promise<ListeningServer> {
  const { settings, log, progress } = options;
  const closing: ((deadlineMs: number) => Promise<void>)[] = [];
  const stop = async (deadlineMs: number): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end(deadlineMs);
  };
  try {
    progress.step('starting');
    const open = await operatorsWords(openService(settings, log, seat), settings);
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
    const operated = options.common?.operated ?? operatedAlone(own, reload);
    const insight = serverInsight(open.service, settings, options.common, figures, closing);
    late.operator = { operated, insight };
    const admin = await adminListener(settings, open.service, late.operator, closing);
    const certificates = [...fronts.certificates, ...admin.certificates];
    const more = [...certificates, ...logLevelPart()];
    const prepare = async (change: ModelChange): Promise<PreparedChange> => {
      const prepared = await open.prepare(change, more);
      const take = async (): Promise<ReloadResult> => {
        const told = await prepared.take();
        void inspect(open, settings);
        return told;
      };
      return { take, drop: () => prepared.drop() };
    };
    await options.admitted?.({
      prepare,
      cancel,
      register,
      figures,
      own,
      losePolicy: (why, since) => open.losePolicy(why, since),
      renewDraft: (id) => open.renewDraft(id),
      lookAtRevoked: () => open.service.revocations.look(),
    });
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

/** Both frontends, which do not listen yet; they stop side by side, and before what they stand on. */
async function frontends(
  { settings, common, demo }: ServerOptions,
  service: Service,
  operator: () => OperatorParts,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Promise<{
  readonly certificates: readonly SurfaceCertificate[];
  readonly cancel: OpenServer['cancel'];
  readonly register: OwnSessions;
  readonly figures: OpenServer['figures'];
  readonly own: OwnPart;
  listen(): Promise<{ readonly httpPort: number; readonly pgPort: number }>;
}> {
  const { wire, http } = certificatesIn(settings.tls);
  const catalogs = common?.catalogs ?? ownCatalogs(settings, service, closing);
  const pg = createPgFrontend(service, {
    ...(wire !== null && { tls: wire }),
    catalogs,
    admits: () => !service.draining(),
    maxSubjectSessions: settings.subjectSessions,
    maxAddressSessions: settings.load.addressSessions,
    ...(common !== undefined && { cancels: common.cancels, sessions: common.sessions, own: common.own }),
  });
  let wirePort = settings.pgPort;
  const rest = await createHttpServer(service, {
    console: consoleOf(settings, service, demo?.signIn(settings) ?? null, () => wirePort),
    more: await adminRoutes(settings, () => ({ ...service, ...operator() })),
    wire: pg,
    ...(http !== null && { tls: http }),
    ...(common !== undefined && { gather: () => common.gather() }),
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
  const own = ownPart(service, { name: common?.name ?? 'server', pg, inflight });
  return {
    listen,
    cancel,
    register,
    figures,
    certificates: shownCertificates(settings.tls, pg, rest),
    own,
  };
}

/** What both surfaces show at first. @throws Failure */
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

/** Engines in this process, for all that ask it. */
function ownCatalogs(
  settings: Settings,
  { log }: Service,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Catalogs {
  const catalogs = new Catalogs(catalogOptions(settings, log));
  closing.push(() => catalogs.close());
  // The first client need not wait for the base image; if it cannot be made, that client hears why.
  catalogs.warm().catch((error: unknown) => log.warn('the catalog is not warm', { error: String(error) }));
  return catalogs;
}

/** Where the base image of the engines is kept, how many there may be, and how long a statement may run. */
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

/** What `server.json` says of a server. */
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

/** An engine says in a plain Error what the operator must mend; anything more special is left as it is. */
export async function operatorsWords<T>(work: Promise<T>, { dataDir }: Settings): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const plain = error instanceof Error && (error.name === 'Error' || error.name === 'UpstreamFailure');
    if (!plain || systemFault(error) !== null) throw error;
    throw new StartProblem(`${error.message}${spaceLeft(dataDir)}`);
  }
}

/** How often it is seen whether a question met a table or column that is gone or another. */
const HEAR_MS = 250;
/** Between two looks, however many questions meet one. */
const REST_MS = 1_000;

/** What a question meets that asks for what the database no longer has, or has otherwise. */
const MET = ['E0525', 'E0526'] as const;

/**
 * Looks each `everyMs`, and soon after a question met something, whether the databases have what the manifest declares:
 * objects go out of service, and come back, without a reload. 0: only a start and a reload look. Gives what ends it.
 */
function watchDrift(open: InspectedService, everyMs: number): () => void {
  const { service } = open;
  if (everyMs === 0) return () => undefined;
  let lookedAt = performance.now();
  let met = metBy(service);
  let looking = false;
  const look = async (): Promise<void> => {
    const rested = performance.now() - lookedAt;
    const now = metBy(service);
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
    Math.min(HEAR_MS, everyMs),
  ).unref();
  return () => clearInterval(timer);
}

function metBy({ observing: { meters } }: Service): number {
  return MET.reduce((sum, code) => sum + (meters.codes.get(code) ?? 0), 0);
}

/** The built `console/`. */
const FOLDER = join(PACKAGE_ROOT, 'dist', 'console');

/** Options of this server's console; null if it is off. @throws StartProblem if it is not built */
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
