import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_FEATURES, ready } from 'osl-compiler';
import {
  type AuditLog,
  configuredKeys,
  createLimiter,
  createVerifier,
  DEFAULT_LIMITS,
} from '../../policy/index.js';
import { type Engine, type EngineConfig, openEngine, type ReachChange, wordsOf } from '../engine/index.js';
import type { Lineage } from '../lineage/index.js';
import type { Connector, Manifest } from '../manifest/index.js';
import { createParsing } from '../parsing/index.js';
import { Marks, unfinishedEntry } from '../parsing/marks.js';
import { createPublishing, headIn } from '../publishing/index.js';
import type { Model, Service, ServiceLog } from '../service.js';
import { maskKeys } from '../spine/mask-keys.js';
import { createPlanCache } from '../spine/plan-cache.js';
import { PermittedSets } from '../spine/runtime/permitted.js';
import { createStrangers } from '../spine/strangers.js';
import { openAudit } from './audit.js';
import { connectFault, withoutPassword } from './connect-fault.js';
import { connectorUrl } from './connector-url.js';
import { contentPlane } from './content.js';
import { type TenantKeys, tenantKeys } from './keys.js';
import { lineageOf } from './lineage.js';
import { type LoadedModel, loadModel } from './model.js';
import { settle } from './place.js';
import { requireRowSecurity, rowRightsOf } from './row-security.js';
import { type Settings, StartProblem } from './settings.js';
import { watchEngines } from './watch.js';

/** A service that is open: its parts run, nothing listens yet. */
export interface OpenService {
  readonly service: Service;
  readonly keys: TenantKeys;
  /** Loads manifest and policy anew; both change together, or neither does. @throws ManifestProblems */
  reload(): Promise<Model>;
  /** Resolves, with why, when nothing can be answered any more and the process should end; else never. */
  readonly over: Promise<string>;
  /** Closes engines, then the audit log. */
  close(): Promise<void>;
}

/**
 * Puts a service together. Whatever is opened is closed again if a later part fails.
 *
 * @throws StartProblem, ManifestProblems, AuditDamaged, AuditLocked, and an engine's Error for the operator
 */
export async function openService(settings: Settings, log: ServiceLog): Promise<OpenService> {
  await ready();
  const before = await loadServed(settings);
  const keys = tenantKeys(settings.dataDir);
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    const { audit, over } = await openAudit(settings, before.tenant, log);
    closing.push(() => closeAudit(audit, log));
    // The log's lock is the directory's: from here on nobody else publishes.
    await settle(settings.dataDir, before.tenant, audit, log);
    const first = await loadServed(settings, before);
    const { engines, close: closeEngines } = await openEngines(first.manifest, settings, log);
    closing.push(closeEngines);
    const unwatch = watchEngines(engines, log);
    closing.push(async () => unwatch());
    await requireRowSecurity(first, keys, log);
    const marks = await openMarks(settings, first.tenant, audit, log);
    const lineage = await lineageOf(settings, first, audit, log);
    if (lineage !== null) closing.push(() => lineage.close(LINEAGE_CLOSE_MS));
    await lineage?.announce(first.manifest);
    const parsing = createParsing({ log });
    closing.push(() => parsing.close());
    const parts = { audit, engines, lineage, parsing, marks };
    const open = await serviceOf(settings, log, first, keys, parts, close);
    return Object.freeze({ ...open, over });
  } catch (error) {
    await close();
    throw error;
  }
}

/** The engine of every connector; all or none. @throws StartProblem, and an engine's Error for the operator */
export async function openEngines(
  manifest: Manifest,
  settings: Settings,
  log: ServiceLog,
): Promise<{ readonly engines: ReadonlyMap<string, Engine>; readonly close: () => Promise<void> }> {
  const engines = new Map<string, Engine>();
  const close = async (): Promise<void> => {
    for (const engine of [...engines.values()].reverse()) await engine.close();
  };
  try {
    for (const connector of manifest.connectors.values()) {
      engines.set(connector.name, await openConnector(connector, settings, log));
    }
    return { engines, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What is on its way to a receiver may end; the outbox keeps the rest. ms */
const LINEAGE_CLOSE_MS = 3_000;

/** What was opened for the service, and is closed with it. */
type OpenParts = Pick<Service, 'audit' | 'engines' | 'lineage' | 'parsing' | 'marks'>;

/** Where long texts are marked while they are compiled. What an earlier process left there is told, and recorded. */
async function openMarks(
  { dataDir }: Settings,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<Marks> {
  const marks = new Marks(join(dataDir, 'compiling'));
  await marks.open();
  await marks.left(async (mark) => {
    log.error('the gateway ended while it compiled this question', { ...mark });
    await audit.append(unfinishedEntry(mark, tenant));
  });
  return marks;
}

async function serviceOf(
  settings: Settings,
  log: ServiceLog,
  first: LoadedModel,
  keys: TenantKeys,
  parts: OpenParts,
  close: () => Promise<void>,
): Promise<Omit<OpenService, 'over'>> {
  const { engines, lineage } = parts;
  let model: Model = first;
  let { file } = first;
  const publishing = await createPublishing(publishedDir(settings), {
    file: () => file,
    serve: async (next) => {
      model = next;
      await announced(lineage, next, log);
    },
  });
  const limiter = createLimiter({ limits: first.snapshot?.limits ?? DEFAULT_LIMITS });
  const strangers = createStrangers();
  const [defaultConnector] = engines.keys();
  if (defaultConnector === undefined) throw new StartProblem('the manifest declares no connector');
  const service: Service = {
    tenant: first.tenant,
    model: () => model,
    publishing,
    verifier: createVerifier({
      tenant: first.tenant,
      keys: configuredKeys(keyConfiguration(settings, keys)),
      issuer: 'service',
      now: Date.now,
    }),
    limiter,
    strangers,
    ...parts,
    defaultConnector,
    maskKeys: maskKeys(keys.masking, first.tenant),
    rowRights: rowRightsOf(engines, keys),
    plans: createPlanCache(settings.planCacheBytes),
    content: contentPlane(() => model.manifest, engines, settings.content),
    permitted: new PermittedSets(settings.exactUpTo),
    caps: settings.caps,
    features: ALL_FEATURES,
    log,
  };
  lineage?.follow(() => model.manifest);
  const reload = async (): Promise<Model> => {
    const { versions } = publishing;
    const next = await loadModel(settings.manifestFile, settings.policyFile, versions.head);
    refuseOtherConnectors(next, engines);
    await requireRowSecurity(next, keys, log);
    if (next.tenant !== first.tenant)
      throw new StartProblem('the tenant cannot change while the service runs');
    model = next;
    file = next.file;
    limiter.configure(next.snapshot?.limits ?? DEFAULT_LIMITS);
    await lineage?.announce(next.manifest);
    return next;
  };
  const end = (): Promise<void> => {
    strangers.settle();
    return close();
  };
  return { service: Object.freeze(service), keys, reload: () => publishing.exclusively(reload), close: end };
}

/** What is published serves, whether or not lineage can be told of it; at the next start it is. */
async function announced(lineage: Lineage | null, { manifest }: Model, log: ServiceLog): Promise<void> {
  try {
    await lineage?.announce(manifest);
  } catch (error) {
    log.error('lineage was not told what is published', {
      error: error instanceof Error ? error.message : String(error),
    });
  }
}

/** Where versions and drafts are. */
export function publishedDir({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'published');
}

/** What is to be served, with what was published; `known` where that is what was loaded before. */
export async function loadServed(
  settings: Settings,
  known: LoadedServed | null = null,
): Promise<LoadedServed> {
  const head = await headIn(publishedDir(settings));
  if (known !== null && known.head === (head?.id ?? null)) return known;
  const model = await loadModel(settings.manifestFile, settings.policyFile, head);
  return { ...model, head: head?.id ?? null };
}

export interface LoadedServed extends LoadedModel {
  readonly head: string | null;
}

function refuseOtherConnectors(next: Model, engines: ReadonlyMap<string, Engine>): void {
  const names = [...next.manifest.connectors.keys()];
  if (names.length === engines.size && names.every((n) => engines.has(n))) return;
  throw new StartProblem(
    'the manifest names other connectors than those that are open: restart to change them',
  );
}

function keyConfiguration(settings: Settings, keys: TenantKeys) {
  const publicKeys = settings.publicKeyFiles.map((file) => ({ pem: readText(file, 'public key') }));
  return { secrets: [{ secret: keys.signing }], publicKeys };
}

export function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new StartProblem(`${what} ${file} cannot be read (${reason})`);
  }
}

async function openConnector(connector: Connector, settings: Settings, log: ServiceLog): Promise<Engine> {
  const config = engineConfig(connector, settings);
  const engine = await openEngine(config, {
    onUpstreamError: (error) => log.warn('upstream error', { connector: connector.name, ...wordsOf(error) }),
    onReach: (change) => reached(connector, change, log),
  }).catch((error: unknown) => {
    if (config.kind === 'pglite') throw error;
    throw new StartProblem(
      `connector \`${connector.name}\`, ${withoutPassword(config.url)}: ${connectFault(error)}`,
    );
  });
  for (const warning of engine.warnings) log.warn(warning, { connector: connector.name });
  return engine;
}

function reached({ name }: Connector, change: ReachChange, log: ServiceLog): void {
  if (change.kind === 'mended')
    log.info('connector opens sessions again', { connector: name, after_seconds: change.seconds });
  else
    log.warn('connector opens no more sessions: it goes on with those it has, and tries again', {
      connector: name,
      cause: connectFault(change.cause),
    });
}

function engineConfig(connector: Connector, settings: Settings): EngineConfig {
  if (connector.kind === 'pglite')
    return { kind: 'pglite', dataDir: join(settings.dataDir, 'pg', connector.name) };
  const name = connector.urlEnv ?? 'OSL_POSTGRES_URL';
  const url = connectorUrl(process.env, name);
  if (url === null) {
    throw new StartProblem(
      `connector \`${connector.name}\` takes its URL from ${name} (or the file that ${name}_FILE names), which is not set`,
    );
  }
  return {
    kind: 'postgres',
    url,
    systemUrl: connectorUrl(process.env, `${name}_SYSTEM`),
    poolSize: settings.poolSize,
    poolReserve: settings.poolReserve,
  };
}

/** A log that has failed cannot be closed cleanly; that it failed is known by then. */
async function closeAudit(audit: AuditLog, log: ServiceLog): Promise<void> {
  try {
    await audit.close();
  } catch (error) {
    log.error('the audit log could not be closed', {
      error: error instanceof Error ? error.message : String(error),
    });
  }
}
