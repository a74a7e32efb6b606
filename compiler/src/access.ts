import type { Relation } from './catalog.js';
import { InternalError } from './errors.js';
import type { Expr } from './plan.js';

/** How a cell that the caller may not read in the clear is shown. */
export type MaskKind = 'redact' | 'null' | 'hash' | 'partial' | 'year' | 'deny';

/**
 * What one caller may see: the outcome of identity and policy, the only thing that `govern` trusts.
 *
 * Values of a subject's attributes are not in here: row filters refer to them as parameters, so that callers
 * with the same rights share plans.
 */
export interface Access {
  /**
   * Equal signatures mean equal plans. Made from the effective roles, the policy version, the chain length and
   * the pattern of attributes (which are missing, which are `any`, which are lists).
   */
  readonly signature: string;
  readonly policyVersion: string;
  /** Chain subjects, root to leaf; attribute parameters refer to them by index. */
  readonly chainLength: number;
  /** By relation name. A relation that is not here does not exist for this caller. */
  readonly relations: ReadonlyMap<string, RelationAccess>;
}

export interface RelationAccess {
  /** Never empty. A row is visible if any grant's filter holds; a cell if a grant covers row and column. */
  readonly grants: readonly RelationGrant[];
  /** The mask of each sensitivity label that occurs in this relation; a label without one is `deny`. */
  readonly masks: ReadonlyMap<string, MaskKind>;
  /** Columns that an explicit deny rule names. They beat every grant. */
  readonly denied: ReadonlySet<string>;
}

/** What `access` says of a relation that the binder has found in it. */
export function accessTo(relation: Relation, access: Access): RelationAccess {
  const found = access.relations.get(relation.name);
  if (found === undefined || found.grants.length === 0) {
    throw new InternalError(`no grant reaches ${relation.name}`);
  }
  return found;
}

export interface RelationGrant {
  /** Opaque id, safe to show to the caller. */
  readonly id: string;
  readonly columns: ReadonlySet<string>;
  /** Sensitivity labels that this grant shows in the clear. */
  readonly unmask: ReadonlySet<string>;
  /** Predicate over base columns; null means every row. */
  readonly filter: Expr | null;
}
