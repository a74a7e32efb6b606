import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { DEFAULT_ISSUER } from '../../../../policy/index.js';
import type { WireTls } from '../../../../wire/index.js';
import type { ServiceLog } from '../../../base/log.js';
import { INSTALLATION_ROOT, version } from '../../../base/package-root.js';
import { StartProblem } from '../../../base/start-problem.js';
import { messageOf } from '../../../base/thrown.js';
import { indexContent } from '../../../service/index-content.js';
import { type OpenService, openService } from '../../../service/open.js';
import type { Reloaded, ReloadPart } from '../../../service/reload.js';
import type { Service } from '../../../service/service.js';
import type { Settings } from '../../../service/settings.js';
import { Catalogs } from '../../../surfaces/catalog/index.js';
import { createHttpServer } from '../../../surfaces/http/server.js';
import { createPgFrontend } from '../../../surfaces/pg/index.js';
import { ensureDemo } from '../../demo/index.js';
import { systemFault, usage } from '../exit.js';
import type { Progress } from '../progress.js';
import { removeServerFile, type ServerRecord, writeServerFile } from '../server-file.js';
import { checkDataDir, spaceLeft } from './data-dir.js';
import { inspect } from './inspect.js';
import { checkPorts } from './ports.js';

export interface RunningServer {
  readonly open: OpenService;
  readonly settings: Settings;
  /** With the ports that it really has. */
  readonly record: ServerRecord;
  /** Reads everything anew that can change while it runs. @throws what `failureOf` knows; nothing has changed then */
  reload(): Promise<Reloaded>;
  /** Takes nothing more, lets what runs end for `deadlineMs`, and closes everything. */
  stop(deadlineMs: number): Promise<void>;
}

export interface ServerOptions {
  readonly settings: Settings;
  /** Loads the demo first. */
  readonly demo: boolean;
  readonly log: ServiceLog;
  readonly progress: Progress;
}

/**
 * Starts a server: both files are read and both ports looked at before anything is written to the disk. What was
 * opened is closed again where a later step fails.
 *
 * @throws Failure, StartProblem, ManifestProblems and what else `failureOf` knows
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, log, progress } = options;
  await checkPorts(settings);
  checkDataDir(settings.dataDir);
  const closing: ((deadlineMs: number) => Promise<void>)[] = [];
  const stop = async (deadlineMs: number): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end(deadlineMs);
  };
  try {
    progress.step('starting');
    const open = await operatorsWords(openService(settings, log), settings);
    closing.push(() => open.close());
    if (options.demo) await loadDemo(open.service, settings, progress);
    await inspect(open.service, settings);
    const { certificates, ...ports } = await listen(settings, open.service, closing);
    const record = writeServerFile(settings.dataDir, recordOf(options, ports));
    closing.push(async () => removeServerFile(settings.dataDir, process.pid));
    const reload = async (): Promise<Reloaded> => {
      const told = await open.reload(certificates);
      await inspect(open.service, settings);
      return told;
    };
    return { open, settings, record, reload, stop };
  } catch (error) {
    await stop(0);
    throw error;
  } finally {
    progress.end();
  }
}

async function loadDemo(service: Service, settings: Settings, progress: Progress): Promise<void> {
  const engine = service.engines.get(service.defaultConnector);
  if (engine === undefined) throw new StartProblem('the demo has no connector');
  await operatorsWords(
    ensureDemo(engine.system, INSTALLATION_ROOT, (step, done, total) =>
      progress.step(step === 'read' ? 'reading packages' : 'loading rows', done, total),
    ),
    settings,
  );
  const { manifest } = service.model();
  await operatorsWords(
    indexContent(manifest, service.engines, settings.content, [], (p) =>
      progress.step(`indexing ${p.facet} ${p.version}`, p.done, p.total),
    ),
    settings,
  );
}

/** Both frontends; they stop side by side, and before what they stand on. */
async function listen(
  settings: Settings,
  service: Service,
  closing: ((deadlineMs: number) => Promise<void>)[],
): Promise<{
  readonly httpPort: number;
  readonly pgPort: number;
  readonly certificates: readonly ReloadPart[];
}> {
  const tls = tlsOf(settings);
  const catalogs = new Catalogs({ dir: join(settings.dataDir, 'catalog') });
  closing.push(() => catalogs.close());
  // The first client need not wait for the base image; if it cannot be made, that client hears why.
  catalogs
    .warm()
    .catch((error: unknown) => service.log.warn('the catalog is not warm', { error: String(error) }));
  const pg = createPgFrontend(service, {
    ...(tls === null ? {} : { tls }),
    catalogs,
    maxSubjectSessions: settings.subjectSessions,
  });
  const rest = await createHttpServer(service, {
    wireSessions: () => pg.connections,
    metricsFrom: settings.metricsFrom,
    corsOrigins: settings.corsOrigins,
    mcp: { ...settings.mcp, version: version() },
  });
  closing.push(async (deadlineMs) => {
    await Promise.all([rest.close(deadlineMs), pg.stop(deadlineMs)]);
  });
  const { port: httpPort } = await rest.listen(settings.httpPort, settings.host);
  const { port: pgPort } = await pg.listen(settings.pgPort, settings.host);
  return { httpPort, pgPort, certificates: certificatePart(settings, (next) => pg.secure(next)) };
}

/** The wire's certificate, read anew; connections that are open keep theirs. */
function certificatePart(settings: Settings, secure: (tls: WireTls) => void): readonly ReloadPart[] {
  if (settings.tls === null) return [];
  const { certFile } = settings.tls;
  const prepare = () => {
    const tls = tlsOf(settings);
    if (tls === null) return { now: null, kept: null, take: () => undefined };
    try {
      createSecureContext(tls);
    } catch (error) {
      throw usage(`${certFile} and its key do not fit: ${messageOf(error)}`);
    }
    const { validTo } = new X509Certificate(tls.cert);
    return { now: `a certificate until ${validTo}`, kept: null, take: () => secure(tls) };
  };
  return [{ prepare }];
}

function tlsOf({ tls }: Settings) {
  return tls === null ? null : { cert: readPem(tls.certFile), key: readPem(tls.keyFile) };
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(systemFault(error) ?? `${file} cannot be read`);
  }
}

function recordOf(
  { settings, demo }: ServerOptions,
  ports: { readonly httpPort: number; readonly pgPort: number },
) {
  const { host, tls, manifestFile, policyFile, localTokens, issuers, audiences } = settings;
  const startedAt = new Date().toISOString();
  return {
    host,
    ...ports,
    tls: tls !== null,
    localTokens,
    issuer: issuers[0] ?? DEFAULT_ISSUER,
    audience: audiences[0] ?? '',
    manifestFile,
    policyFile,
    demo,
    version: version(),
    startedAt,
  };
}

/** An engine says in a plain Error what the operator must mend; anything more special is left as it is. */
async function operatorsWords<T>(work: Promise<T>, { dataDir }: Settings): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const plain = error instanceof Error && (error.name === 'Error' || error.name === 'UpstreamFailure');
    if (!plain || systemFault(error) !== null) throw error;
    throw new StartProblem(`${error.message}${spaceLeft(dataDir)}`);
  }
}
