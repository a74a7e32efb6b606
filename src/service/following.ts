import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { ManifestProblems } from '../model/manifest/index.js';
import type { Model } from '../model/model.js';
import type { Publishing } from '../publishing/store/index.js';
import { PolicyFault, PolicyUnknown } from './model.js';
import { followed } from './policy-change.js';
import type { PolicyState } from './policy-standing.js';
import type { Prepared, Reloaded } from './reload.js';

/** What a process takes up without a reload: a policy, and what others have published. */
export interface FollowingParts {
  readonly policyFile: string;
  readonly publishing: Publishing;
  readonly log: ServiceLog;
  readonly tenant: string;
  readonly model: () => Model;
  /** The published version that the model has. */
  readonly head: () => string | null;
  /** Gives the text of the policy. Throws as `readManifestText`. */
  readonly read: (file: string) => Promise<string>;
  /** The policy that serves may go on: none is missing, none is kept for a while. */
  readonly sound: () => boolean;
  /** Serves it from now on. */
  take(next: Model, head: string | null): void;
  /** The newest policy is missing, invalid or unknown. */
  failed(fault: PolicyFault): PolicyState;
  record(detail: object): Promise<void>;
}

const NOTHING: Reloaded = Object.freeze({ now: [], kept: [] });
const UNCHANGED: Prepared = Object.freeze({ take: async () => NOTHING, drop: async () => undefined });

/**
 * Reads and checks the policy and what is published, and takes them up together. An invalid policy leaves the last valid one
 * in force for a time; what others have published, and this process cannot serve, ends all answers at once.
 *
 * @param same the policy that serves stays, where one does: only what is published is looked at
 * @throws PolicyFault, once it is on record
 */
export async function preparedPolicy(parts: FollowingParts, same: boolean): Promise<Prepared> {
  const { policyFile, publishing, log, record } = parts;
  const model = parts.model();
  try {
    const text = same && model.snapshot !== null ? null : await parts.read(policyFile);
    const next = await followed({ publishing, model, head: parts.head() }, policyFile, text);
    const isSame = next.manifest === model.manifest && next.snapshot.version === model.snapshot?.version;
    if (isSame && parts.sound()) return UNCHANGED;
    const { manifest, snapshot, head } = next;
    return {
      take: async () => {
        parts.take({ manifest, snapshot }, head);
        log.info('took up a policy', { manifest: manifest.version, policy: snapshot.version });
        await record({ state: 'active' });
        return { now: [`manifest ${manifest.version}, policy ${snapshot.version}`], kept: [] };
      },
      drop: () => record({ state: 'refused', why: 'another worker' }),
    };
  } catch (error) {
    const fault = faultOf(error, parts);
    await record({ state: parts.failed(fault), why: error instanceof Error ? error.name : 'unknown' });
    throw fault;
  }
}

/**
 * A policy that is invalid, or one that is unknown: also where it does not fit what others have published since, which may
 * have taken something away.
 */
function faultOf(
  error: unknown,
  { policyFile, publishing, tenant, model, head }: FollowingParts,
): PolicyFault {
  const isInvalid = error instanceof ManifestProblems && (publishing.versions.head?.id ?? null) === head();
  const problems = isInvalid ? error : new PolicyUnknown(policyFile, messageOf(error));
  return new PolicyFault(problems, { manifest: model().manifest, file: publishing.file(), tenant });
}
