import { compileSnapshotInSteps, PolicyProblems, type PolicySnapshot } from '../../policy/index.js';
import { inTurns } from '../base/in-turns.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import {
  compilePublishable,
  EMPTY_OVERLAY,
  type Manifest,
  ManifestProblems,
  parsePolicyDocument,
} from '../model/manifest/index.js';
import type { ServedModel } from '../model/served-model.js';
import type { VersionStore } from '../model/versions/index.js';
import { PolicyFault, PolicyUnknown } from './model.js';
import type { PreparedChange, ReloadResult } from './reload/reload.js';
import type { CurrentModel } from './serving.js';

/** Dependencies for applying a policy, and versions of other gateways, without a reload. */
export interface PolicyParts {
  readonly policyFile: string;
  readonly versions: VersionStore;
  readonly serving: CurrentModel;
  readonly log: ServiceLog;
  /** Reads the policy. @throws the errors of `readManifestText` */
  readonly read: (file: string) => Promise<string>;
  taken(model: ServedModel): void;
  record(detail: object): Promise<void>;
}

const NOTHING: ReloadResult = Object.freeze({ now: [], kept: [] });
const UNCHANGED: PreparedChange = Object.freeze({ take: async () => NOTHING, drop: async () => undefined });

/**
 * Prepares the newest policy and published version. If the policy is invalid, the last valid one stays in force for a
 * time. If the published version cannot be served here, requests are refused immediately.
 *
 * @param same keep the current policy, if there is one, and look only for published versions
 * @param brokenSince time at which the policy broke, in ms since the epoch, if it is broken
 * @throws PolicyFault, after recording it
 */
export async function preparedPolicy(
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

/** Recompiles the current policy against another manifest. */
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
