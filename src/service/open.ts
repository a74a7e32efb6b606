import { join } from 'node:path';
import { ready } from 'osl-compiler';
import type { AuditLog } from '../../policy/audit/index.js';
import { DEFAULT_LIMITS } from '../../policy/index.js';
import { KeptAnswers } from '../ask/data/kept-answers.js';
import { maskKeys } from '../ask/data/mask-keys.js';
import { createPlanCache } from '../ask/data/plan-cache.js';
import { PermittedSets } from '../ask/data/runtime/permitted.js';
import { PermittedWords } from '../ask/data/runtime/statistics.js';
import { Underway } from '../ask/data/underway.js';
import { createParsing } from '../ask/parsing/index.js';
import { Marks, unfinishedEntry } from '../ask/parsing/marks.js';
import { createProbes } from '../ask/request/probes.js';
import { createStrangers } from '../ask/request/strangers.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';
import { AnswerMemory, type OpenedEngine } from '../engine/index.js';
import type { Connector } from '../model/manifest/index.js';
import type { Model, PartsReached } from '../model/model.js';
import { createDrafting } from '../publishing/drafting/index.js';
import { createPublishing } from '../publishing/store/index.js';
import { RollupStanding } from '../rollups/index.js';
import { openAudit } from './audit.js';
import { beginFollowing, joined } from './begin-following.js';
import { contentPlane } from './content.js';
import { Control } from './control.js';
import type { OpenEngine } from './credentials.js';
import { databaseEpochs } from './data-epochs.js';
import { openEngines } from './engines.js';
import { preparedReload, recordEvent } from './events.js';
import { type FollowingParts, preparedPolicy } from './following.js';
import { openGlasses } from './glasses.js';
import { type TenantKeys, tenantKeys } from './keys.js';
import { countingSeat } from './limits/counting-seat.js';
import type { Lineage } from './lineage/index.js';
import { leftLineage, lineageOf } from './lineage.js';
import { loadModel, type PolicyFault } from './model.js';
import { openObserving } from './observing.js';
import { ownerOf } from './owner.js';
import { PolicyStanding, type PolicyState, type PolicyTrouble } from './policy-standing.js';
import type { Prepared, Reloaded, ReloadPart } from './reload.js';
import { enginesParts, lineagePart, refuseOtherConnectors } from './reload-parts.js';
import { RevocationFiles, Revocations } from './revocations.js';
import { requireRowSecurity, requireRowSecurityOf, rowRightsOf } from './row-security.js';
import { aloneIn, following, type Seat } from './seat.js';
import { type First, loadFirst, publishedDir } from './served.js';
import type { Service } from './service.js';
import type { Settings } from './settings.js';
import { type Sharing, sharing } from './sharing.js';
import { spoolOf } from './spool.js';
import { type SystemReads, systemReads } from './system-reads.js';
import { takeOver } from './take-over.js';
import { openTrust, type TokenTrust } from './token-trust.js';
import { type Change, preparedVersion } from './version-change.js';
import { watchEngines } from './watch.js';

/** A service that is open: its parts run, nothing listens yet. */
export interface OpenService {
  readonly service: Service;
  /** The databases with their system engines, for tools alone: a surface receives `service`. */
  readonly databases: ReadonlyMap<string, OpenedEngine>;
  readonly keys: TenantKeys;
  /** Why it began without a policy; null where it has one. */
  readonly policyFault: PolicyFault | null;
  /**
   * Reads manifest, policy, keys and credentials anew, and `more`: all change together, or nothing does.
   *
   * @throws ManifestProblems, StartProblem and what `more` throws
   */
  reload(more?: readonly ReloadPart[]): Promise<Reloaded>;
  /** Reads and checks a change that other processes of the server take up too. Throws as `reload`. */
  prepare(change: Change, more?: readonly ReloadPart[]): Promise<Prepared>;
  /** What is to serve cannot be known since then, ms since 1970: what may, the settings say. */
  losePolicy(why: string, since: number): Promise<void>;
  /** Another process has changed a draft. */
  renewDraft(id: string): Promise<void>;
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
export async function openService(
  settings: Settings,
  log: ServiceLog,
  seat: Seat = aloneIn(settings.dataDir),
): Promise<OpenService> {
  await ready();
  const control = seat.keeps ? await Control.open(settings, log) : null;
  const own = following(seat, control);
  try {
    return await openedIn(settings, log, own);
  } catch (error) {
    await control?.close();
    throw error;
  }
}

async function openedIn(settings: Settings, log: ServiceLog, seat: Seat): Promise<OpenService> {
  const before = await loadFirst(settings, null, seat.read);
  const keys = tenantKeys(settings.dataDir, settings.keysDir);
  const closing: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closing.splice(0).reverse()) await end();
  };
  try {
    const { audit, over } = await openAudit(settings, seat.auditDir, before.tenant, log);
    closing.push(() => closeAudit(audit, log));
    // The log's lock is the directory's: from here on nobody else publishes.
    const ended = seat.keeps ? await takeOver(settings, before.tenant, audit, log) : [];
    await joined(seat.control, keys, log);
    const first = await loadFirst(settings, before, seat.read);
    const spool = spoolOf(settings, log);
    const shares = sharing(settings, seat, first.tenant, log);
    closing.push(shares.close);
    const memory = new AnswerMemory(settings.load.answers);
    const counting = await countingSeat(seat, settings, first.tenant, log);
    closing.push(counting.close);
    const { heard: control } = seat;
    const limits = counting.heard;
    seat = counting.seat;
    const served: Served = { model: first };
    const admit = (connector: Connector): Promise<void> =>
      requireRowSecurityOf(connector, served.model, keys, log);
    const {
      databases,
      opened,
      close: closeEngines,
    } = await openEngines(first.manifest, settings, log, { spool, memory, admit });
    closing.push(closeEngines);
    const engines = new Map([...databases].map(([name, { governed }]) => [name, governed]));
    const reads = systemReads(databases);
    const unwatch = watchEngines(engines, log);
    closing.push(async () => unwatch());
    const marks = await openMarks(seat, first.tenant, audit, log);
    const trust = await openTrust(
      settings,
      first.tenant,
      { ...keys, exchangeKey: await seat.exchangeKey() },
      log,
    );
    closing.push(async () => trust.close());
    const revocations = await openRevocations(settings, seat, trust, shares, log);
    closing.push(async () => revocations.close());
    const lineage = await lineageOf(settings, first, seat, audit, log);
    for (const left of await leftLineage(settings, first, ended, log))
      closing.push(() => left.close(LINEAGE_CLOSE_MS));
    if (lineage !== null) closing.push(() => lineage.close(LINEAGE_CLOSE_MS));
    await lineage?.announce(first.manifest);
    const { observing, close: closeObserving } = openObserving(settings, log);
    closing.push(closeObserving);
    const parsing = createParsing({ log });
    closing.push(() => parsing.close());
    const drafting = createDrafting({ log });
    closing.push(() => drafting.close());
    const { epochs, close: closeEpochs } = databaseEpochs(() => first.manifest.connectors, reads, log);
    closing.push(closeEpochs);
    const reached = (): PartsReached => ({
      control: control(),
      limits: limits(),
      issuers: trust.reached(),
    });
    const { revoked } = revocations;
    const parts = {
      audit,
      engines,
      lineage,
      parsing,
      drafting,
      marks,
      epochs,
      spool,
      memory,
      observing,
      reached,
      revocations,
      revoked,
    };
    const open = await serviceOf(
      settings,
      seat,
      log,
      first,
      served,
      { ...keys, trust },
      opened,
      parts,
      reads,
      shares,
      close,
    );
    return Object.freeze({ ...open, databases, over });
  } catch (error) {
    await close();
    throw error;
  }
}

/** What is served now. */
interface Served {
  model: Model;
}

/** What is on its way to a receiver may end; the outbox keeps the rest. ms */
const LINEAGE_CLOSE_MS = 3_000;

/** What was opened for the service, and is closed with it. */
type OpenParts = Pick<
  Service,
  | 'audit'
  | 'engines'
  | 'lineage'
  | 'parsing'
  | 'drafting'
  | 'marks'
  | 'epochs'
  | 'spool'
  | 'memory'
  | 'observing'
  | 'reached'
  | 'revocations'
  | 'revoked'
>;

/** Throws as `Revocations.open`. */
function openRevocations(
  { dataDir }: Settings,
  seat: Seat,
  { lifetimeMs }: Pick<TokenTrust, 'lifetimeMs'>,
  { revoke: share }: Pick<Sharing, 'revoke'>,
  log: ServiceLog,
): Promise<Revocations> {
  return Revocations.open({
    files: new RevocationFiles(dataDir),
    log,
    sweeps: seat.announces,
    told: seat.revoked,
    lifetimeMs,
    share,
  });
}

/** Where long texts are marked while they are compiled. What an earlier process left there is told, and recorded. */
async function openMarks(
  { marksDir }: Seat,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<Marks> {
  const marks = new Marks(marksDir);
  await marks.open();
  const told = marks.left(async (mark) => {
    log.error('the gateway ended while it compiled this question', { ...mark });
    await audit.whenOpen;
    await audit.append(unfinishedEntry(mark, tenant));
  });
  if (audit.stats().failure === null) await told;
  else
    told.catch((error: unknown) => log.error('what was left was not recorded', { cause: messageOf(error) }));
  return marks;
}

async function serviceOf(
  settings: Settings,
  seat: Seat,
  log: ServiceLog,
  first: First,
  served: Served,
  keys: TenantKeys & { readonly trust: TokenTrust },
  opened: ReadonlyMap<string, OpenEngine>,
  parts: OpenParts,
  reads: SystemReads,
  { publish }: Sharing,
  close: () => Promise<void>,
): Promise<Omit<OpenService, 'over' | 'databases'>> {
  const { engines, lineage } = parts;
  const answers = new KeptAnswers(settings.resultCache, parts.memory);
  const underway = new Underway(parts.revoked);
  let { file } = first;
  const serves = (next: Model): void => {
    served.model = next;
    underway.changed(next);
    // What is kept has the versions in its key: this is for the memory.
    answers.clear();
  };
  const withoutPolicy = (): void =>
    serves(Object.freeze({ manifest: served.model.manifest, snapshot: null }));
  let head = first.head;
  const standing = new PolicyStanding(settings.policyFailure, log, () => {
    withoutPolicy();
    void recordEvent(service, 'service.policy', { state: 'missing', why: 'the time to keep it is over' });
  });
  if (first.policyFault !== null) standing.failedAtStart(first.policyFault);
  const serveOwn = (next: Model): void => {
    // INVARIANT: what is published while the policy's time ends brings none back.
    serves(standing.missing ? { ...next, snapshot: null } : next);
    head = publishing.versions.head?.id ?? null;
  };
  const publishing = await createPublishing(publishedDir(settings), {
    sweeps: seat.keeps,
    alone: seat.exclusively,
    draftChanged: seat.draftChanged,
    share: publish,
    file: () => file,
    serve: async (next) => {
      await seat.published();
      serveOwn(next);
      await announce(lineage, next, log);
    },
  });
  const limiter = seat.limiter(first.snapshot?.limits ?? DEFAULT_LIMITS);
  const strangers = createStrangers({ tenant: first.tenant, audit: parts.audit, log });
  const { probeWindowMs: windowMs } = settings.audit;
  const probes = createProbes({ tenant: first.tenant, audit: parts.audit, log, windowMs });
  let drained = false;
  const [defaultConnector] = engines.keys();
  if (defaultConnector === undefined) throw new StartProblem('the manifest declares no connector');
  const rollups = new RollupStanding(
    () => served.model.manifest,
    reads.readRollupStates,
    (connector, error) =>
      log.warn('rollups cannot be looked at: none is used', { connector, cause: messageOf(error) }),
  );
  await rollups.start();
  const service: Service = {
    tenant: first.tenant,
    model: () => served.model,
    keptPolicy: () => standing.kept,
    policyFault: () => standing.fault,
    publishing,
    activation: () => seat.activation(),
    steady: () => !drained && seat.steady(),
    drain: (on) => {
      drained = on;
    },
    draining: () => drained,
    verifier: keys.trust.verifier,
    exchange: keys.trust.exchange,
    resources: keys.trust.resources,
    firstUse: seat.firstUse,
    logins: keys.trust.logins,
    limiter,
    strangers,
    glasses: openGlasses(join(settings.dataDir, 'break-glass'), settings.alarms.url, log),
    probes,
    ...parts,
    readCatalog: reads.readCatalog,
    readRollupStates: reads.readRollupStates,
    defaultConnector,
    maskKeys: maskKeys(keys.masking, first.tenant),
    rowRights: rowRightsOf(engines, keys),
    owner: ownerOf(settings.owner, log),
    plans: createPlanCache(settings.planCacheBytes),
    rollups,
    content: contentPlane(() => served.model.manifest, reads, settings.content, log, settings.dataDir),
    permitted: new PermittedSets(settings.exactUpTo),
    words: new PermittedWords(),
    answers,
    caps: settings.caps,
    underway,
    log,
  };
  lineage?.follow(() => served.model.manifest);
  keys.trust.follow(() => served.model.snapshot);
  const modelPart: ReloadPart = {
    prepare: async () => {
      const { versions } = publishing;
      const published = versions.head?.id ?? null;
      const next = await loadModel(settings.manifestFile, settings.policyFile, versions.head, seat.read);
      refuseOtherConnectors(next, engines);
      await requireRowSecurity(next, keys, log);
      if (next.tenant !== first.tenant)
        throw new StartProblem('the tenant cannot change while the service runs');
      const take = (): void => {
        standing.mended();
        serves(next);
        file = next.file;
        head = published;
        limiter.configure(next.snapshot?.limits ?? DEFAULT_LIMITS);
      };
      const { manifest, snapshot } = next;
      return { now: `manifest ${manifest.version}, policy ${snapshot?.version ?? 'none'}`, kept: null, take };
    },
  };
  const reloadable = [
    modelPart,
    keys.trust.reload,
    ...enginesParts(opened, first.manifest, settings),
    ...lineagePart(settings),
  ];
  const lost = (fault: PolicyTrouble, since?: number): PolicyState => {
    const state = standing.failed(fault, since);
    if (state === 'missing') withoutPolicy();
    return state;
  };
  const followingParts = (since?: number): FollowingParts => ({
    policyFile: settings.policyFile,
    publishing,
    log,
    tenant: first.tenant,
    model: () => served.model,
    head: () => head,
    read: seat.read,
    sound: () => !standing.missing && standing.kept === null,
    take: (next, published) => {
      standing.mended();
      serves(next);
      head = published;
      limiter.configure(next.snapshot?.limits ?? DEFAULT_LIMITS);
      // Statements fail at a database whose own policies are others: nothing is shown meanwhile.
      void requireRowSecurity(next, keys, log).catch((error: unknown) => log.error(messageOf(error)));
    },
    failed: (fault) => lost(fault, since),
    record: (detail) => recordEvent(service, 'service.policy', detail),
  });
  const prepare = (change: Change, more: readonly ReloadPart[] = []): Promise<Prepared> => {
    switch (change.kind) {
      case 'version':
        return preparedVersion(service, serveOwn);
      case 'policy':
        return preparedPolicy(followingParts(change.brokenSince), change.same === true);
      case 'reload':
        return preparedReload(service, [...reloadable, ...more], (fault) => lost(fault, change.brokenSince));
      default: {
        const unknown: never = change;
        return unknown;
      }
    }
  };
  const losePolicy = async (why: string, since: number): Promise<void> => {
    await recordEvent(service, 'service.policy', {
      state: lost({ message: why, unknown: true }, since),
      why,
    });
  };
  const stopFollowing = beginFollowing(seat, settings, publishing, log, {
    policy: async (same) => prepare({ kind: 'policy', same }),
    lose: (why) => losePolicy(why, Date.now()),
    changed: () => announce(lineage, served.model, log),
    revoked: () => parts.revocations.look(),
  });
  const reload = (more: readonly ReloadPart[] = []): Promise<Reloaded> =>
    publishing.exclusively(async () => {
      const told = await (await prepare({ kind: 'reload' }, more)).take();
      await announce(lineage, served.model, log);
      return told;
    });
  const end = async (): Promise<void> => {
    await stopFollowing();
    standing.close();
    rollups.close();
    strangers.settle();
    probes.settle();
    await close();
  };
  const changing = { reload, prepare, losePolicy, renewDraft: (id: string) => publishing.drafts.renew(id) };
  if (first.policyFault !== null)
    await recordEvent(service, 'service.policy', { state: 'missing', why: 'at start' });
  return { service: Object.freeze(service), keys, policyFault: first.policyFault, ...changing, close: end };
}

/** What is published serves, whether or not lineage can be told of it; at the next start it is. */
async function announce(lineage: Lineage | null, { manifest }: Model, log: ServiceLog): Promise<void> {
  try {
    await lineage?.announce(manifest);
  } catch (error) {
    log.error('lineage was not told what is published', {
      error: messageOf(error),
    });
  }
}

/** A log that has failed cannot be closed cleanly; that it failed is known by then. */
async function closeAudit(audit: AuditLog, log: ServiceLog): Promise<void> {
  try {
    await audit.close();
  } catch (error) {
    log.error('the audit log could not be closed', {
      error: messageOf(error),
    });
  }
}
