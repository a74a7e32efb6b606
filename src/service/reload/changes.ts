import { assertNever } from 'osl-compiler';
import { compileSnapshotInSteps, PolicyProblems, type PolicySnapshot } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import type { ServiceLog } from '../../base/log.js';
import { readText, StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import {
  compilePublishable,
  EMPTY_OVERLAY,
  type Manifest,
  ManifestProblems,
  parsePolicyDocument,
} from '../../model/manifest/index.js';
import type { Model, ServedModel } from '../../model/served-model.js';
import type { PublicationStore, VersionStore } from '../../model/versions/versions.js';
import { engineConfig, type OpenEngine, renewal } from '../engines.js';
import { beginFollowing } from '../follow-control.js';
import type { TenantKeys } from '../keys.js';
import { loadModel, PolicyFault, PolicyUnknown } from '../model.js';
import type { ProcessFiles } from '../process-files.js';
import type { Revocations } from '../revocations.js';
import { requireRowSecurity } from '../row-security.js';
import type { Service } from '../service.js';
import type { CurrentModel } from '../serving.js';
import type { Settings } from '../settings.js';
import {
  type EventParts,
  type PreparedChange,
  preparedReload,
  type ReloadPart,
  type ReloadResult,
  recordEvent,
} from './reload.js';

/** Ways to change the served model: a reload, a new policy, or versions from other processes. */
export interface ModelChanges {
  /**
   * Reloads the manifest, policy, keys, credentials and `more`. If any of them cannot be loaded, none is replaced.
   *
   * @throws ManifestProblems, StartProblem and errors of `more`
   */
  reload(more?: readonly ReloadPart[]): Promise<ReloadResult>;
  /** Prepares a change that other processes of the server apply too. @throws the errors of `reload` */
  prepare(change: ModelChange, more?: readonly ReloadPart[]): Promise<PreparedChange>;
  /** Records that the policy to serve has been unknown since `since`, in ms since the epoch. */
  losePolicy(why: string, since: number): Promise<void>;
  renewDraft(id: string): Promise<void>;
}

interface ChangingParts extends EventParts {
  readonly service: Service;
  readonly serving: CurrentModel;
  readonly publishing: PublicationStore;
  readonly revocations: Revocations;
  readonly keys: TenantKeys;
  readonly opened: ReadonlyMap<string, OpenEngine>;
  readonly trust: ReloadPart;
  readonly dashboards: ReloadPart;
  announce(): Promise<void>;
}

/** Starts following the control database and the policy file; `close` stops that. */
export function startChanges(
  parts: ChangingParts,
  seat: ProcessFiles,
  settings: Settings,
): { readonly changes: ModelChanges; close(): Promise<void> } {
  const { serving, publishing, log, announce } = parts;
  const model = modelPart(parts, seat, settings);
  const reloadable = [
    model,
    parts.trust,
    parts.dashboards,
    ...[...parts.opened].map(([name, engine]) => enginePart(name, engine, model.manifest, settings)),
    ...lineagePart(settings),
  ];
  const policyParts: PolicyParts = {
    policyFile: settings.policyFile,
    versions: publishing.versions,
    serving,
    log,
    read: seat.read,
    // If row security in a database is outdated, its statements fail, so nothing is leaked in the meantime.
    taken: (model) =>
      void requireRowSecurity(model, parts.keys, log).catch((error: unknown) => log.error(messageOf(error))),
    record: (detail) => recordEvent(parts, 'service.policy', detail),
  };
  const prepare = (change: ModelChange, more: readonly ReloadPart[] = []): Promise<PreparedChange> => {
    switch (change.kind) {
      case 'version':
        return preparedVersion(parts.service, serving);
      case 'policy':
        return preparedPolicy(policyParts, change.same === true, change.brokenSince);
      case 'reload':
        return preparedReload(parts, [...reloadable, ...more], (fault) =>
          serving.losePolicy(fault, change.brokenSince),
        );
      default:
        return assertNever(change);
    }
  };
  const losePolicy = async (why: string, since: number): Promise<void> => {
    const state = serving.losePolicy({ message: why, unknown: true }, since);
    await recordEvent(parts, 'service.policy', { state, why });
  };
  const reload = (more: readonly ReloadPart[] = []): Promise<ReloadResult> =>
    publishing.exclusively(async () => {
      const told = await (await prepare({ kind: 'reload' }, more)).take();
      await announce();
      return told;
    });
  const close = beginFollowing(seat, settings, publishing, log, {
    policy: async (same) => prepare({ kind: 'policy', same }),
    lose: (why) => losePolicy(why, Date.now()),
    changed: announce,
    revoked: () => parts.revocations.look(),
  });
  const changes = { reload, prepare, losePolicy, renewDraft: (id: string) => publishing.drafts.renew(id) };
  return { changes, close };
}

function modelPart(
  { serving, publishing, service: { engines }, keys, log }: ChangingParts,
  seat: ProcessFiles,
  { manifestFile, policyFile }: Settings,
): ReloadPart & { readonly manifest: () => Manifest } {
  let { manifest } = serving.model;
  return {
    /** Returns the manifest that was prepared last, for the parts that are prepared after it. */
    manifest: () => manifest,
    prepare: async () => {
      const next = await loadModel(manifestFile, policyFile, publishing.versions.head, seat.read);
      refuseOtherConnectors(next, engines);
      ({ manifest } = next);
      await requireRowSecurity(next, keys, log);
      if (next.tenant !== serving.model.tenant)
        throw new StartProblem('the tenant cannot change while the service runs');
      return { now: versionsText(next), kept: null, take: () => serving.take(next) };
    },
  };
}

function versionsText({ manifest, snapshot }: ServedModel): string {
  return `manifest ${manifest.version}, policy ${snapshot?.version ?? 'none'}`;
}

/** @throws StartProblem */
function refuseOtherConnectors(next: Model, engines: ReadonlyMap<string, unknown>): void {
  const names = [...next.manifest.connectors.keys()];
  if (names.length === engines.size && names.every((n) => engines.has(n))) return;
  throw new StartProblem(
    'the manifest names other connectors than those that are open: restart to change them',
  );
}

function enginePart(
  name: string,
  engine: OpenEngine,
  manifest: () => Manifest,
  settings: Settings,
): ReloadPart {
  return {
    prepare: async () => {
      const connector = manifest().connectors.get(name);
      if (connector === undefined) throw new StartProblem(`connector \`${name}\` is not declared any more`);
      return renewal(name, engine, await engineConfig(connector, settings));
    },
  };
}

/** Returns a part that only reports a changed lineage file, since lineage receivers are read only at startup. */
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

/** A change applied by all processes of a server. */
export type ModelChange =
  /** Reload of the files. `brokenSince` is the time at which the policy broke, in ms since the epoch. */
  | { readonly kind: 'reload'; readonly brokenSince?: number }
  /** A version published by another process. */
  | { readonly kind: 'version' }
  /**
   * Load the newest policy and the versions published by other gateways; if `same`, keep the current policy and load
   * only the versions.
   */
  | { readonly kind: 'policy'; readonly same?: boolean; readonly brokenSince?: number };

const NOTHING: ReloadResult = Object.freeze({ now: [], kept: [] });
const UNCHANGED: PreparedChange = Object.freeze({ take: async () => NOTHING, drop: async () => undefined });

/**
 * Prepares a version from another process, which has already checked that it can be served.
 *
 * @throws PublishedDamaged, and an Error if the version does not compile here
 */
async function preparedVersion(
  service: Pick<Service, 'publishing' | 'drafting' | 'log'>,
  serving: CurrentModel,
): Promise<PreparedChange> {
  const { publishing, log } = service;
  const { versions } = publishing;
  const { model } = serving;
  await versions.renew();
  const { head } = versions;
  if (head?.id === model.published?.id) return UNCHANGED;
  const next = model.over(await composed(service, model, head ?? EMPTY_OVERLAY), head);
  return {
    take: async () => {
      serving.takePublished(next);
      log.info('took up what was published', { manifest: next.manifest.version });
      return NOTHING;
    },
    drop: async () => undefined,
  };
}

type PublishedOverlay = typeof EMPTY_OVERLAY;

async function composed(
  { drafting }: Pick<Service, 'drafting'>,
  served: ServedModel,
  head: PublishedOverlay,
): Promise<Model> {
  const { manifest, snapshot, file, published } = served;
  const { document: base } = file;
  // Without a policy all requests are refused, so a compilation that blocks the event loop is harmless.
  if (snapshot === null) return { manifest: compilePublishable(base, head.objects).manifest, snapshot };
  const { objects } = published ?? EMPTY_OVERLAY;
  const ground = { base, objects, manifest, snapshot };
  const worked = await drafting.workOut({ action: 'rollback', to: head }, ground, 'service');
  if (!worked.ok) throw new Error('what another worker published does not compile here');
  const next = worked.manifest;
  const steps = compileSnapshotInSteps(snapshot.document, next.catalog, next.tenant);
  return { manifest: next, snapshot: await inTurns(steps) };
}

/** Dependencies for applying a policy, or versions published by other gateways, without a reload. */
interface PolicyParts {
  readonly policyFile: string;
  readonly versions: VersionStore;
  readonly serving: CurrentModel;
  readonly log: ServiceLog;
  /** Reads the policy. @throws the errors of `readManifestText` */
  readonly read: (file: string) => Promise<string>;
  taken(model: ServedModel): void;
  record(detail: object): Promise<void>;
}

/**
 * Prepares the newest policy and published version. If the policy is invalid, the last valid one stays in force for a
 * limited time. If the published version cannot be served here, requests are refused immediately, unless
 * OSL_POLICY_FAILURE is `keep`.
 *
 * @param same keep the current policy, if there is one, and look only for published versions
 * @param brokenSince time at which the policy broke, in ms since the epoch, if it is broken
 * @throws PolicyFault, after recording it
 */
async function preparedPolicy(
  parts: PolicyParts,
  same: boolean,
  brokenSince?: number,
): Promise<PreparedChange> {
  const { policyFile, versions, serving, log, record } = parts;
  const served = serving.model;
  try {
    const text = same && served.snapshot !== null ? null : await parts.read(policyFile);
    const { model, policy } = await modelOver(served, versions, policyFile, text);
    const { manifest } = model;
    const isSame = manifest === served.manifest && policy === served.snapshot?.version;
    if (isSame && serving.isSound) return UNCHANGED;
    return {
      take: async () => {
        serving.take(model);
        parts.taken(model);
        log.info('took up a policy', { manifest: manifest.version, policy });
        await record({ state: 'active' });
        return { now: [`manifest ${manifest.version}, policy ${policy}`], kept: [] };
      },
      drop: () => record({ state: 'refused', why: 'another worker' }),
    };
  } catch (error) {
    const fault = faultOf(error, parts);
    const state = serving.losePolicy(fault, brokenSince);
    await record({ state, why: error instanceof Error ? error.name : 'unknown' });
    throw fault;
  }
}

/**
 * Combines the manifest file as last loaded, the newest published version and a policy.
 *
 * @param policy text; null: the current policy
 * @throws ManifestProblems, PolicyProblems, PublishedDamaged if the combination cannot be served here
 */
async function modelOver(
  served: ServedModel,
  versions: VersionStore,
  policyFile: string,
  policy: string | null,
): Promise<{ readonly model: ServedModel; readonly policy: string }> {
  await versions.renew();
  const { head } = versions;
  const manifest =
    head?.id === served.published?.id
      ? served.manifest
      : compilePublishable(served.file.document, (head ?? EMPTY_OVERLAY).objects).manifest;
  const snapshot = await (policy === null
    ? policyAgain(served, manifest)
    : policyOf(policy, policyFile, manifest));
  return { model: served.over({ manifest, snapshot }, head), policy: snapshot.version };
}

/** Compiles the current policy for another manifest. */
function policyAgain({ snapshot }: ServedModel, { catalog, tenant }: Manifest): Promise<PolicySnapshot> {
  if (snapshot === null) throw new TypeError('no policy serves');
  return inTurns(compileSnapshotInSteps(snapshot.document, catalog, tenant));
}

async function policyOf(text: string, file: string, { catalog, tenant }: Manifest): Promise<PolicySnapshot> {
  const source = parsePolicyDocument(text, file);
  try {
    return await inTurns(compileSnapshotInSteps(source.document, catalog, tenant));
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw new ManifestProblems(source.diagnostics(error.problems), text);
  }
}

/**
 * Converts an error to the fault of an invalid or unknown policy. While a newer published version, which may have
 * removed rights, is not served yet, every error makes the policy unknown.
 */
function faultOf(error: unknown, { policyFile, versions, serving }: PolicyParts): PolicyFault {
  const { manifest, file, published, tenant } = serving.model;
  const isInvalid = error instanceof ManifestProblems && versions.head?.id === published?.id;
  const problems = isInvalid ? error : new PolicyUnknown(policyFile, messageOf(error));
  return new PolicyFault(problems, { manifest, file, tenant });
}
