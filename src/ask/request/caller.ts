import type {
  Circumstances,
  EffectiveAccess,
  Identity,
  IdentityClaims,
  PolicySnapshot,
} from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { ServedModel } from '../../model/served-model.js';

/** The identity, access and model of one request, fixed before anything is compiled. */
export interface Caller {
  readonly identity: Identity;
  /** Claims for row security when `explain access` evaluates another chain's rights. Default: those of `identity`. */
  readonly evaluatedAs?: IdentityClaims;
  readonly access: EffectiveAccess;
  /** Replaced by a new object on each reload or publication. */
  readonly model: ServedModel;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
  readonly purpose: string | null;
  readonly circumstances: Circumstances;
  /** The task that the request is part of; null if it names none. */
  readonly task: string | null;
  /** Expiry of `access`, in ms since the epoch. */
  readonly until: number;
  /**
   * Time, on the clock of `performance.now()`, when the last attribute of `access` was read from an entity; absent if
   * no attribute was.
   */
  readonly rightsAsOf?: number;
}

/** Reads the attributes that a policy takes from entities. */
export interface TableAttributeReader {
  /** True if the caller's row filters use attributes from entities; until they are read, such filters accept no row. */
  needs(caller: Caller): boolean;
  /** Returns the caller with these attributes. @throws QueryError if they cannot be read */
  complete(caller: Caller): Promise<Caller>;
}

/** The versions that an answer is based on. */
export interface ServedVersions {
  readonly manifest: string;
  readonly policy: string;
}

export function versionsOf({ manifest, snapshot }: Pick<Caller, 'manifest' | 'snapshot'>): ServedVersions {
  return { manifest: manifest.version, policy: snapshot.version };
}

/** True while the caller's rights need not be evaluated again. */
export function isCurrent({ circumstances, until }: Caller, now = Date.now()): boolean {
  // Also re-evaluate if the clock was set back.
  return until === Number.POSITIVE_INFINITY || (now >= circumstances.now && now < until);
}

/** Returns purpose, emergency, task and approvals as JSON for the audit record; null if none of them is set. */
export function auditDetailOf({
  purpose,
  task,
  circumstances: { emergency, approved },
}: Pick<Caller, 'purpose' | 'circumstances' | 'task'>) {
  const { ids } = approved;
  if (purpose === null && emergency === null && task === null && ids.length === 0) return null;
  return JSON.stringify({
    ...(purpose !== null && { purpose }),
    ...(emergency !== null && { break_glass: emergency.id }),
    ...(task !== null && { task }),
    ...(ids.length > 0 && { approvals: ids }),
  });
}
