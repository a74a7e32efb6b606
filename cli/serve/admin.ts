import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ProcessHistory, RingCopy, SpanName } from '../../src/ask/operating/history/history.js';
import type { Insight, InsightParts, JobName, Jobs } from '../../src/ask/operating/insight.js';
import type { OperatingParts } from '../../src/ask/operating/operate.js';
import type {
  ProcessStatement,
  ProcessView,
  ServerOperations,
  SessionCommand,
} from '../../src/ask/operating/process-status.js';
import { ownView } from '../../src/ask/operating/process-status.js';
import type { ShadowCommands, ShadowParts } from '../../src/ask/operating/shadow.js';
import type { ShadowCommand, ShadowReport } from '../../src/ask/shadow/shadows.js';
import type { ServiceLog } from '../../src/base/log.js';
import { version } from '../../src/base/package-root.js';
import { ThreadJob } from '../../src/base/threads/job.js';
import { verifyJob } from '../../src/service/auditing/reader.js';
import type { OpenService } from '../../src/service/open.js';
import type { DrainFile } from '../../src/service/process-files.js';
import type { ReloadResult } from '../../src/service/reload/reload.js';
import type { Service } from '../../src/service/service.js';
import { createInsight } from '../../src/service/service.js';
import { isLoopbackHost, type Settings } from '../../src/service/settings.js';
import type { ProcessConfiguration } from '../../src/surfaces/admin/wire.js';
import type { AdditionalRoutes, HttpServer } from '../../src/surfaces/http/server.js';
import { type MetricsJson, metricTotals } from '../../src/surfaces/http/telemetry.js';
import type { PgFrontend } from '../../src/surfaces/pg/index.js';
import { toFailure } from '../exit.js';
import { type CertificateMaterial, checkedCertificate, SurfaceCertificate } from './certificates.js';

export interface ProcessControl {
  view(): ProcessView;
  /** Applies a command to a session or request; returns false if it does not exist. */
  command(id: string, what: SessionCommand): boolean;
  drain(on: boolean): void;
  history(span: SpanName): RingCopy;
  slowest(from: number, until: number): readonly ProcessStatement[];
  shadow(command: ShadowCommand): Promise<ShadowReport | null>;
}

interface Fronts {
  readonly name: string;
  readonly pg: Pick<PgFrontend, 'register' | 'fastQuestions'>;
  readonly inflight: HttpServer['inflight'];
  readonly history: ProcessHistory;
}

export function processControl(service: Service, { name, pg, inflight, history }: Fronts): ProcessControl {
  return {
    view: () =>
      ownView(service, {
        process: name,
        draining: service.draining(),
        sessions: pg.register.operatorViews,
        executions: inflight.executions,
        fastQuestions: pg.fastQuestions,
      }),
    command: (id, what) =>
      /^\d+$/.test(id)
        ? pg.register.signalAny({ pid: Number(id), what: what === 'cancel' ? 'cancel' : 'terminate' })
        : inflight.cancel(id),
    drain: (on) => service.drain(on),
    history: (span) => history.read(span),
    slowest: (from, until) =>
      service.observing.slowest.between(from, until).map((statement) => ({ process: name, ...statement })),
    shadow: (command) => service.shadow.obey(command),
  };
}

export interface OperatorParts {
  readonly operated: ServerOperations;
  readonly insight: Insight;
  readonly shadows: ShadowCommands;
}

export function singleProcessOperations(
  own: ProcessControl,
  kept: DrainFile,
  reload: () => Promise<ReloadResult>,
): ServerOperations {
  return {
    views: async () => [own.view()],
    command: async (id, what) => own.command(id, what),
    drain: async (on) => {
      try {
        await kept.setDrained(on);
      } finally {
        own.drain(on);
      }
    },
    reload: async () => {
      try {
        return { reloaded: true, ...(await reload()) };
      } catch (error) {
        return { reloaded: false, why: toFailure(error).message };
      }
    },
    stop: () => void process.kill(process.pid, 'SIGTERM'),
    histories: async (span) => [own.history(span)],
    slowest: async (from, until) => own.slowest(from, until),
  };
}

export async function adminListener(
  settings: Settings,
  service: Service,
  own: OperatorParts,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Promise<{
  readonly certificates: readonly SurfaceCertificate[];
  listen(): Promise<{ readonly adminPort: number | null; readonly adminPgPort: number | null }>;
}> {
  const { host, httpPort, pgPort } = settings.admin;
  if (httpPort === null && pgPort === null)
    return { certificates: [], listen: async () => ({ adminPort: null, adminPgPort: null }) };
  const { createAdminHttp } = await import('../../src/surfaces/admin/http.js');
  const { createAdminWire } = await import('../../src/surfaces/admin/wire.js');
  const parts = { ...service, ...own };
  const { wire: certificate } = settings.tls;
  // Operators use tokens, so no client certificate is requested.
  const files = certificate === null ? null : { ...certificate, clients: null };
  const tls = files === null ? null : checkedCertificate(files);
  const shown = tls === null ? null : { cert: tls.cert, key: tls.key };
  // On loopback, tokens may be sent unencrypted.
  const secret = isLoopbackHost(host) ? null : shown;
  const http = httpPort === null ? null : await createAdminHttp(parts, version(), secret);
  const wire = pgPort === null ? null : createAdminWire(parts, configuredBy(settings), shown);
  closing.push(async (deadlineMs) => {
    await Promise.all([http?.close(deadlineMs), wire?.stop(deadlineMs)]);
  });
  const secure = (next: CertificateMaterial): void => {
    http?.secure(next);
    wire?.secure(next);
  };
  return {
    certificates: files === null || tls === null ? [] : [new SurfaceCertificate(files, secure)],
    listen: async () => ({
      adminPort: http === null ? null : (await http.listen(httpPort ?? 0, host)).port,
      adminPgPort: wire === null ? null : (await wire.listen(pgPort ?? 0, host)).port,
    }),
  };
}

/**
 * Returns the admin routes for the console on the REST port, loading them only if the console is set to `admin`; null
 * otherwise.
 */
export async function adminRoutes(
  { console }: Settings,
  parts: () => OperatingParts & InsightParts & ShadowParts,
): Promise<AdditionalRoutes | null> {
  if (console !== 'admin') return null;
  return (await import('../../src/surfaces/admin/http.js')).adminRoutesForRest(parts);
}

function configuredBy(settings: Settings): ProcessConfiguration {
  const { manifestFile, policyFile, dataDir, host, httpPort, pgPort, workers, caps, audit } = settings;
  const values: Readonly<Record<string, string | number | null>> = {
    manifest: manifestFile,
    policy: policyFile,
    data_dir: dataDir,
    host,
    http_port: httpPort,
    pg_port: pgPort,
    admin_host: settings.admin.host,
    workers,
    pool_size: settings.poolSize,
    pool_reserve_percent: 100 * settings.poolReserve,
    subject_sessions: settings.subjectSessions,
    plan_cache_bytes: settings.planCacheBytes,
    catalog_engines: settings.catalogEngines,
    catalog_timeout_ms: settings.catalogTimeoutMs,
    max_rows: caps.rows,
    max_result_bytes: caps.bytes,
    statement_timeout_ms: caps.timeoutMs,
    audit_failure: audit.whenFailed,
    audit_segment_bytes: audit.segmentBytes,
    policy_keep_seconds: settings.policyFailure.keepMs / 1_000,
    policy_kept_in_silence: settings.policyFailure.keepsUnknown ? 'yes' : 'no',
  };
  return {
    version: version(),
    settings: Object.entries(values).map(([name, value]) => [name, String(value)]),
  };
}

/** Name of the file, next to the policy, with the tests for `osl policy test`. */
const TESTS_FILE = 'policy.test.yaml';
/** Time limit of a test job, generous because all tests run again for each changed rule. */
const DEADLINE_MS = 10 * 60_000;
const MEMORY_MB = 1_024;

function policyTestsJob(policyFile: string, log: ServiceLog): ThreadJob {
  const file = join(dirname(policyFile), TESTS_FILE);
  return new ThreadJob({
    name: 'the tests of the policy',
    file: new URL('../policy/tests-thread.js', import.meta.url),
    data: () => (existsSync(file) ? { file } : `there is no ${TESTS_FILE} beside the policy that is served`),
    deadlineMs: DEADLINE_MS,
    memoryMb: MEMORY_MB,
    log,
  });
}

/** Audit, jobs, freshness and metrics for operators. `common` holds the parts shared by several worker processes. */
export function serverInsight(
  { service }: Pick<OpenService, 'service'>,
  settings: Settings,
  common: { readonly jobs: Jobs; gather(): Promise<readonly MetricsJson[]> } | undefined,
  figures: () => Promise<MetricsJson>,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Insight {
  const { reading, freshness } = createInsight(service);
  let jobs = common?.jobs;
  if (jobs === undefined) {
    const own = ownJobs(settings, service.log);
    closing.push(() => own.close());
    jobs = own;
  }
  const gather = common === undefined ? async () => [await figures()] : () => common.gather();
  return Object.freeze({ reading, jobs, freshness, metrics: async () => metricTotals(await gather()) });
}

export interface OwnJobs extends Jobs {
  close(): Promise<void>;
}

export function ownJobs(settings: Settings, log: ServiceLog): OwnJobs {
  const jobs = { verify: verifyJob(settings, log), policy_tests: policyTestsJob(settings.policyFile, log) };
  return Object.freeze({
    look: async (job: JobName) => jobs[job].look(),
    begin: async (job: JobName, by: string) => jobs[job].begin(by),
    close: async () => {
      await Promise.all(Object.values(jobs).map((job) => job.close()));
    },
  });
}
