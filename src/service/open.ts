import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import type { AuditLog } from '../../policy/audit/index.js';
import {
  configuredKeys,
  createLimiter,
  createVerifier,
  DEFAULT_LIMITS,
  type KeyConfiguration,
  type KeySource,
  keyRing,
} from '../../policy/index.js';
import { maskKeys } from '../ask/data/mask-keys.js';
import { createPlanCache } from '../ask/data/plan-cache.js';
import { PermittedSets } from '../ask/data/runtime/permitted.js';
import { createParsing } from '../ask/parsing/index.js';
import { Marks, unfinishedEntry } from '../ask/parsing/marks.js';
import { createProbes } from '../ask/request/probes.js';
import { createStrangers } from '../ask/request/strangers.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { type Engine, type EngineConfig, openEngine, type ReachChange, wordsOf } from '../engine/index.js';
import { type Connector, type Manifest, systemUrlVariable, urlVariable } from '../model/manifest/index.js';
import type { Model } from '../model/model.js';
import { createDrafting } from '../publishing/drafting/index.js';
import { createPublishing, headIn } from '../publishing/store/index.js';
import { openAudit } from './audit.js';
import { connectFault, withoutPassword } from './connect-fault.js';
import { connectorUrl } from './connector-url.js';
import { contentPlane } from './content.js';
import { type OpenEngine, renewal } from './credentials.js';
import { issuerKeys } from './issuer-keys.js';
import { type TenantKeys, tenantKeys } from './keys.js';
import type { Lineage } from './lineage/index.js';
import { lineageOf } from './lineage.js';
import { type LoadedModel, loadModel, PolicyFault } from './model.js';
import { settle, tenantIn } from './place.js';
import { PolicyStanding, type PolicyState } from './policy-standing.js';
import { readText } from './read-text.js';
import { type Reloaded, type ReloadPart, reloadAll } from './reload.js';
import { requireRowSecurity, rowRightsOf } from './row-security.js';
import type { Service } from './service.js';
import type { Settings } from './settings.js';
import { watchEngines } from './watch.js';

/** A service that is open: its parts run, nothing listens yet. */
export interface OpenService {
  readonly service: Service;
  readonly keys: TenantKeys;
  /** Why it began without a policy; null where it has one. */
  readonly policyFault: PolicyFault | null;
  /**
   * Reads manifest, policy, keys and credentials anew, and `more`: all change together, or nothing does.
   *
   * @throws ManifestProblems, StartProblem and what `more` throws
   */
  reload(more?: readonly ReloadPart[]): Promise<Reloaded>;
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
  const before = await loadFirst(settings);
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
    const first = await loadFirst(settings, before);
    const { engines, opened, close: closeEngines } = await openEngines(first.manifest, settings, log);
    closing.push(closeEngines);
    const unwatch = watchEngines(engines, log);
    closing.push(async () => unwatch());
    // Without a policy nothing is read; a reload that brings one asks for it.
    if (first.snapshot !== null) await requireRowSecurity(first, keys, log);
    const marks = await openMarks(settings, first.tenant, audit, log);
    const lineage = await lineageOf(settings, first, audit, log);
    if (lineage !== null) closing.push(() => lineage.close(LINEAGE_CLOSE_MS));
    await lineage?.announce(first.manifest);
    const parsing = createParsing({ log });
    closing.push(() => parsing.close());
    const drafting = createDrafting({ log });
    closing.push(() => drafting.close());
    const parts = { audit, engines, lineage, parsing, drafting, marks };
    const open = await serviceOf(settings, log, first, keys, opened, parts, close);
    return Object.freeze({ ...open, over });
  } catch (error) {
    await close();
    throw error;
  }
}

/** What a start found. */
interface First extends LoadedServed {
  readonly policyFault: PolicyFault | null;
}

/**
 * What is to be served first: without a policy where that of the file is missing or broken, as long as it is known
 * whose the server is. Tokens are of a tenant, so without one nobody could be told anything.
 *
 * @throws PolicyFault where it is not, and what `loadServed` throws
 */
async function loadFirst(settings: Settings, known: First | null = null): Promise<First> {
  try {
    return { ...(await loadServed(settings, known?.policyFault === null ? known : null)), policyFault: null };
  } catch (error) {
    if (!(error instanceof PolicyFault)) throw error;
    const tenant = tenantIn(settings.dataDir) ?? error.tenant;
    if (tenant === null) throw error;
    const { manifest, file } = error;
    return { manifest, snapshot: null, tenant, file, head: null, policyFault: error };
  }
}

/** The engine of every connector; all or none. @throws StartProblem, and an engine's Error for the operator */
export async function openEngines(
  manifest: Manifest,
  settings: Settings,
  log: ServiceLog,
): Promise<{
  readonly engines: ReadonlyMap<string, Engine>;
  readonly opened: ReadonlyMap<string, OpenEngine>;
  readonly close: () => Promise<void>;
}> {
  const engines = new Map<string, Engine>();
  const opened = new Map<string, OpenEngine>();
  const close = async (): Promise<void> => {
    for (const engine of [...engines.values()].reverse()) await engine.close();
  };
  try {
    for (const connector of manifest.connectors.values()) {
      const config = engineConfig(connector, settings);
      const engine = await openConnector(connector, config, log);
      engines.set(connector.name, engine);
      opened.set(connector.name, { engine, config });
    }
    return { engines, opened, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What is on its way to a receiver may end; the outbox keeps the rest. ms */
const LINEAGE_CLOSE_MS = 3_000;

/** What was opened for the service, and is closed with it. */
type OpenParts = Pick<Service, 'audit' | 'engines' | 'lineage' | 'parsing' | 'drafting' | 'marks'>;

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
  first: First,
  keys: TenantKeys,
  opened: ReadonlyMap<string, OpenEngine>,
  parts: OpenParts,
  close: () => Promise<void>,
): Promise<Omit<OpenService, 'over'>> {
  const { engines, lineage } = parts;
  let model: Model = first;
  let { file } = first;
  const withoutPolicy = (): void => {
    model = Object.freeze({ manifest: model.manifest, snapshot: null });
  };
  const standing = new PolicyStanding(settings.policyFailure, log, () => {
    withoutPolicy();
    void recordEvent(service, 'service.policy', { state: 'missing', why: 'the time to keep it is over' });
  });
  if (first.policyFault !== null) standing.failedAtStart(first.policyFault);
  const publishing = await createPublishing(publishedDir(settings), {
    file: () => file,
    serve: async (next) => {
      // INVARIANT: what is published while the policy's time ends brings none back.
      model = standing.missing ? { ...next, snapshot: null } : next;
      await announced(lineage, next, log);
    },
  });
  const limiter = createLimiter({ limits: first.snapshot?.limits ?? DEFAULT_LIMITS });
  const strangers = createStrangers({ tenant: first.tenant, audit: parts.audit, log });
  const { probeWindowMs: windowMs } = settings.audit;
  const probes = createProbes({ tenant: first.tenant, audit: parts.audit, log, windowMs });
  const ring = keyRing(readKeys(keyConfiguration(settings, keys.signing)));
  const [defaultConnector] = engines.keys();
  if (defaultConnector === undefined) throw new StartProblem('the manifest declares no connector');
  const service: Service = {
    tenant: first.tenant,
    model: () => model,
    keptPolicy: () => standing.kept,
    publishing,
    verifier: createVerifier({
      tenant: first.tenant,
      keys: ring,
      issuers: settings.issuers,
      ...(settings.audiences.length > 0 && { audiences: settings.audiences }),
      now: Date.now,
    }),
    limiter,
    strangers,
    probes,
    ...parts,
    defaultConnector,
    maskKeys: maskKeys(keys.masking, first.tenant),
    rowRights: rowRightsOf(engines, keys),
    plans: createPlanCache(settings.planCacheBytes),
    content: contentPlane(() => model.manifest, engines, settings.content, log),
    permitted: new PermittedSets(settings.exactUpTo),
    caps: settings.caps,
    log,
  };
  lineage?.follow(() => model.manifest);
  const modelPart: ReloadPart = {
    prepare: async () => {
      const { versions } = publishing;
      const next = await loadModel(settings.manifestFile, settings.policyFile, versions.head);
      refuseOtherConnectors(next, engines);
      await requireRowSecurity(next, keys, log);
      if (next.tenant !== first.tenant)
        throw new StartProblem('the tenant cannot change while the service runs');
      const take = (): void => {
        standing.mended();
        model = next;
        file = next.file;
        limiter.configure(next.snapshot?.limits ?? DEFAULT_LIMITS);
      };
      const { manifest, snapshot } = next;
      return { now: `manifest ${manifest.version}, policy ${snapshot?.version ?? 'none'}`, kept: null, take };
    },
  };
  const keysPart: ReloadPart = {
    prepare: () => {
      const { signing } = tenantKeys(settings.dataDir);
      const configuration = keyConfiguration(settings, signing);
      const source = readKeys(configuration);
      const take = (): void => {
        ring.replace(source);
        service.verifier.forget();
      };
      return { now: keysText(configuration), kept: null, take };
    },
  };
  const reloadable = [
    modelPart,
    keysPart,
    ...enginesParts(opened, first.manifest, settings),
    ...lineagePart(settings),
  ];
  const reload = (more: readonly ReloadPart[] = []): Promise<Reloaded> =>
    publishing.exclusively(async () => {
      const told = await recordedReload(service, [...reloadable, ...more], (fault) => {
        const state = standing.failed(fault);
        if (state === 'missing') withoutPolicy();
        return state;
      });
      await announced(lineage, model, log);
      return told;
    });
  const end = (): Promise<void> => {
    standing.close();
    strangers.settle();
    probes.settle();
    return close();
  };
  if (first.policyFault !== null)
    await recordEvent(service, 'service.policy', { state: 'missing', why: 'at start' });
  return { service: Object.freeze(service), keys, policyFault: first.policyFault, reload, close: end };
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

function keyConfiguration(settings: Settings, signing: Uint8Array): KeyConfiguration {
  const secrets = settings.localTokens ? [{ secret: signing }] : [];
  return { secrets, publicKeys: settings.publicKeyFiles.flatMap(issuerKeys) };
}

/** @throws StartProblem for a key that is unfit */
function readKeys(configuration: KeyConfiguration): KeySource {
  try {
    return configuredKeys(configuration);
  } catch (error) {
    throw new StartProblem(`OSL_PUBLIC_KEYS: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function keysText({ secrets = [], publicKeys = [] }: KeyConfiguration): string {
  const local = secrets.length > 0 ? "the gateway's own key" : null;
  const issuers = publicKeys.length > 0 ? `${publicKeys.length} of issuers` : null;
  return `tokens by ${[local, issuers].filter((text) => text !== null).join(' and ')}`;
}

/** One part for each connector whose URL is in a variable or a file. */
function enginesParts(
  opened: ReadonlyMap<string, OpenEngine>,
  manifest: Manifest,
  settings: Settings,
): readonly ReloadPart[] {
  return [...manifest.connectors.values()].flatMap((connector) => {
    const engine = opened.get(connector.name);
    if (engine === undefined) return [];
    return [{ prepare: () => renewal(connector.name, engine, engineConfig(connector, settings)) }];
  });
}

/** Receivers of lineage are read at start alone. */
function lineagePart({ lineageFile }: Settings): readonly ReloadPart[] {
  if (lineageFile === null) return [];
  const before = readText(lineageFile, 'lineage file');
  const kept = `${lineageFile}: restart to change who is told of lineage`;
  return [
    {
      prepare: () => {
        const changed = readText(lineageFile, 'lineage file') !== before;
        return { now: null, kept: changed ? kept : null, take: () => undefined };
      },
    },
  ];
}

/** What became of the service itself, in the audit log. */
async function recordEvent({ audit, tenant, model }: Service, action: string, detail: object): Promise<void> {
  const { manifest, snapshot } = model();
  await audit.append({
    kind: 'event',
    request_id: randomUUID(),
    tenant,
    surface: 'system',
    action,
    versions: { manifest: manifest.version, policy: snapshot?.version ?? null },
    detail: JSON.stringify(detail),
  });
}

/**
 * A reload, and a refused one, leave a line in the log and a record.
 *
 * @param withoutPolicy what follows of a policy that is missing or broken
 */
async function recordedReload(
  service: Service,
  parts: readonly ReloadPart[],
  withoutPolicy: (fault: PolicyFault) => PolicyState,
): Promise<Reloaded> {
  const { log } = service;
  const record = (detail: object): Promise<void> => recordEvent(service, 'service.reload', detail);
  let reloaded: Reloaded;
  try {
    reloaded = await reloadAll(parts);
  } catch (error) {
    const why = error instanceof Error ? error.name : 'unknown';
    if (error instanceof PolicyFault) await record({ reloaded: false, why, policy: withoutPolicy(error) });
    else {
      log.error('not reloaded: what was served before is still served', { why });
      await record({ reloaded: false, why });
    }
    throw error;
  }
  const { now, kept } = reloaded;
  log.info('reloaded', { now, kept });
  if (kept.length > 0) log.warn('not all was reloaded', { kept });
  await record({ reloaded: true, now, kept });
  return reloaded;
}

async function openConnector(connector: Connector, config: EngineConfig, log: ServiceLog): Promise<Engine> {
  const engine = await openEngine(config, {
    onUpstreamError: (error, tables) =>
      log.warn('upstream error', {
        connector: connector.name,
        ...wordsOf(error),
        ...(tables.length > 0 && { tables }),
      }),
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
  const name = urlVariable(connector);
  const url = connectorUrl(process.env, name);
  if (url === null) {
    throw new StartProblem(
      `connector \`${connector.name}\` takes its URL from ${name} (or the file that ${name}_FILE names), which is not set`,
    );
  }
  return {
    kind: 'postgres',
    url,
    systemUrl: connectorUrl(process.env, systemUrlVariable(connector)),
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
