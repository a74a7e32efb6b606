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
import { engineConfig, type OpenEngine, prepareRenewal } from '../engines.js';
import { startFollowing } from '../follow-control.js';
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
  prepareReload,
  type ReloadPart,
  type ReloadResult,
  recordEvent,
} from './reload.js';

/** Ways to change the served model: a reload, a new policy, or versions from other processes. */
export interface ModelChanges {
  /**
   * Reloads the manifest, policy, keys, credentials and `additionalParts`. If any of them cannot be loaded, none is replaced.
   *
   * @throws ManifestProblems, StartProblem and errors of `additionalParts`
   */
  reload(additionalParts?: readonly ReloadPart[]): Promise<ReloadResult>;
  /** Prepares a change that other processes of the server apply too. @throws the errors of `reload` */
  prepare(change: ModelChange, additionalParts?: readonly ReloadPart[]): Promise<PreparedChange>;
  /** Records that the policy to serve has been unknown since `since`, in ms since the epoch. */
  losePolicy(reason: string, since: number): Promise<void>;
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
  processFiles: ProcessFiles,
  settings: Settings,
): { readonly changes: ModelChanges; close(): Promise<void> } {
  const { serving, publishing, log, announce } = parts;
  const model = modelPart(parts, processFiles, settings);
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
    read: processFiles.read,
    // If row security in a database is outdated, its statements fail, so nothing is leaked in the meantime.
    onApplied: (model) =>
      void requireRowSecurity(model, parts.keys, log).catch((error: unknown) => log.error(messageOf(error))),
    record: (detail) => recordEvent(parts, 'service.policy', detail),
  };
  const prepare = (
    change: ModelChange,
    additionalParts: readonly ReloadPart[] = [],
  ): Promise<PreparedChange> => {
    switch (change.kind) {
      case 'version':
        return prepareVersion(parts.service, serving);
      case 'policy':
        return preparePolicy(policyParts, change.same === true, change.brokenSince);
      case 'reload':
        return prepareReload(parts, [...reloadable, ...additionalParts], (fault) =>
          serving.losePolicy(fault, change.brokenSince),
        );
      default:
        return assertNever(change);
    }
  };
  const losePolicy = async (reason: string, since: number): Promise<void> => {
    const state = serving.losePolicy({ message: reason, unknown: true }, since);
    await recordEvent(parts, 'service.policy', { state, why: reason });
  };
  const reload = (additionalParts: readonly ReloadPart[] = []): Promise<ReloadResult> =>
    publishing.exclusively(async () => {
      const result = await (await prepare({ kind: 'reload' }, additionalParts)).apply();
      await announce();
      return result;
    });
  const close = startFollowing(processFiles, settings, publishing, log, {
    policy: async (same) => prepare({ kind: 'policy', same }),
    lose: (reason) => losePolicy(reason, Date.now()),
    changed: announce,
    refreshRevocations: () => parts.revocations.refresh(),
  });
  const changes = { reload, prepare, losePolicy, renewDraft: (id: string) => publishing.drafts.renew(id) };
  return { changes, close };
}

function modelPart(
  { serving, publishing, service: { engines }, keys, log }: ChangingParts,
  processFiles: ProcessFiles,
  { manifestFile, policyFile }: Settings,
): ReloadPart & { readonly manifest: () => Manifest } {
  let { manifest } = serving.model;
  return {
    /** Returns the manifest that was prepared last, for the parts that are prepared after it. */
    manifest: () => manifest,
    prepare: async () => {
      const next = await loadModel(manifestFile, policyFile, publishing.versions.head, processFiles.read);
      refuseOtherConnectors(next, engines);
      ({ manifest } = next);
      await requireRowSecurity(next, keys, log);
      if (next.tenant !== serving.model.tenant)
        throw new StartProblem('the tenant cannot change while the service runs');
      return { now: versionsText(next), kept: null, apply: () => serving.serve(next) };
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
      return prepareRenewal(name, engine, await engineConfig(connector, settings));
    },
  };
}

/** Returns a part that only reports a changed lineage file, since lineage receivers are read only at startup. */
function lineagePart({ lineageFile }: Settings): readonly ReloadPart[] {
  if (lineageFile === null) return [];
  const initialText = readText(lineageFile, 'lineage file');
  const kept = `${lineageFile}: restart to change who is told of lineage`;
  return [
    {
      prepare: () => {
        const hasChanged = readText(lineageFile, 'lineage file') !== initialText;
        return { now: null, kept: hasChanged ? kept : null, apply: () => undefined };
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

const NO_RESULT: ReloadResult = Object.freeze({ now: [], kept: [] });
const UNCHANGED: PreparedChange = Object.freeze({
  apply: async () => NO_RESULT,
  abandon: async () => undefined,
});

/**
 * Prepares a version from another process, which has already checked that it can be served.
 *
 * @throws PublishedDamaged, and an Error if the version does not compile here
 */
async function prepareVersion(
  service: Pick<Service, 'publishing' | 'drafting' | 'log'>,
  serving: CurrentModel,
): Promise<PreparedChange> {
  const { publishing, log } = service;
  const { versions } = publishing;
  const { model } = serving;
  await versions.renew();
  const { head } = versions;
  if (head?.id === model.published?.id) return UNCHANGED;
  const next = model.over(await composeModel(service, model, head ?? EMPTY_OVERLAY), head);
  return {
    apply: async () => {
      serving.servePublished(next);
      log.info('took up what was published', { manifest: next.manifest.version });
      return NO_RESULT;
    },
    abandon: async () => undefined,
  };
}

type PublishedOverlay = typeof EMPTY_OVERLAY;

async function composeModel(
  { drafting }: Pick<Service, 'drafting'>,
  served: ServedModel,
  head: PublishedOverlay,
): Promise<Model> {
  const { manifest, snapshot, file, published } = served;
  const { document: base } = file;
  // Without a policy all requests are refused, so a compilation that blocks the event loop is harmless.
  if (snapshot === null) return { manifest: compilePublishable(base, head.objects).manifest, snapshot };
  const { objects } = published ?? EMPTY_OVERLAY;
  const baseline = { base, objects, manifest, snapshot };
  const result = await drafting.workOut({ action: 'rollback', to: head }, baseline, 'service');
  if (!result.ok) throw new Error('what another worker published does not compile here');
  const next = result.manifest;
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
  onApplied(model: ServedModel): void;
  record(detail: object): Promise<void>;
}

/**
 * Prepares the newest policy and published version. If the policy is invalid, the last valid one stays in force for a
 * limited time. If the published version cannot be served here, requests are refused immediately, unless
 * OSL_POLICY_FAILURE is `keep`.
 *
 * @param keepsPolicy keep the current policy, if there is one, and look only for published versions
 * @param brokenSince time at which the policy broke, in ms since the epoch, if it is broken
 * @throws PolicyFault, after recording it
 */
async function preparePolicy(
  parts: PolicyParts,
  keepsPolicy: boolean,
  brokenSince?: number,
): Promise<PreparedChange> {
  const { policyFile, versions, serving, log, record } = parts;
  const served = serving.model;
  try {
    const text = keepsPolicy && served.snapshot !== null ? null : await parts.read(policyFile);
    const { model, policy } = await combineModel(served, versions, policyFile, text);
    const { manifest } = model;
    const isSame = manifest === served.manifest && policy === served.snapshot?.version;
    if (isSame && serving.isNewestInForce) return UNCHANGED;
    return {
      apply: async () => {
        serving.serve(model);
        parts.onApplied(model);
        log.info('took up a policy', { manifest: manifest.version, policy });
        await record({ state: 'active' });
        return { now: [`manifest ${manifest.version}, policy ${policy}`], kept: [] };
      },
      abandon: () => record({ state: 'refused', why: 'another worker' }),
    };
  } catch (error) {
    const fault = toPolicyFault(error, parts);
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
async function combineModel(
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
    ? recompilePolicy(served, manifest)
    : compilePolicyText(policy, policyFile, manifest));
  return { model: served.over({ manifest, snapshot }, head), policy: snapshot.version };
}

/** Compiles the current policy for another manifest. */
function recompilePolicy({ snapshot }: ServedModel, { catalog, tenant }: Manifest): Promise<PolicySnapshot> {
  if (snapshot === null) throw new TypeError('no policy serves');
  return inTurns(compileSnapshotInSteps(snapshot.document, catalog, tenant));
}

async function compilePolicyText(
  text: string,
  file: string,
  { catalog, tenant }: Manifest,
): Promise<PolicySnapshot> {
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
function toPolicyFault(error: unknown, { policyFile, versions, serving }: PolicyParts): PolicyFault {
  const { manifest, file, published, tenant } = serving.model;
  const isInvalid = error instanceof ManifestProblems && versions.head?.id === published?.id;
  const problems = isInvalid ? error : new PolicyUnknown(policyFile, messageOf(error));
  return new PolicyFault(problems, { manifest, file, tenant });
}
