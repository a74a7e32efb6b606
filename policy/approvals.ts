import type { PolicyDocument } from './document.js';
import type { IdentityClaims } from './identity.js';
import type { ProblemList } from './problems.js';
import type { PolicySnapshot } from './snapshot.js';

/** The approval that a grant requires. */
export interface ApprovalRule {
  /** A hash of the whole grant as written, so that a changed grant needs a new approval. */
  readonly grant: string;
  /** The data or admin role of those who may approve. */
  readonly by: string;
  /** Maximum duration of one approval, in minutes. */
  readonly minutes: number;
}

/** A person's approval of grants for one chain. Times are ms since the epoch. */
export interface Approval {
  /** Id of the request that was approved, a UUID. */
  readonly id: string;
  readonly chain: readonly string[];
  /** Hashes of the approved grants; see `ApprovalRule`. */
  readonly grants: readonly string[];
  /** Restricts the approval to requests of this task; null: any, or none. */
  readonly task: string | null;
  /** Restricts the approval to requests for this purpose; null: any, or none. */
  readonly purpose: string | null;
  readonly startsAt: number;
  /** Exclusive. */
  readonly endsAt: number;
}

/** The approvals that apply to one request, by the hash of the grant. */
export interface ApprovedGrants {
  readonly ids: readonly string[];
  get(grant: string): Pick<Approval, 'startsAt' | 'endsAt'> | undefined;
}

export const NOTHING_APPROVED: ApprovedGrants = Object.freeze({ ids: Object.freeze([]), get: () => undefined });

/** Supposes every approval, to find out if a query lacks nothing else. For refusals, never for answers. */
export const ALL_APPROVED: ApprovedGrants = Object.freeze({
  ids: Object.freeze([]),
  get: () => ({ startsAt: Number.NEGATIVE_INFINITY, endsAt: Number.POSITIVE_INFINITY }),
});

/** The approvals in force, by chain. */
export class Approvals {
  #byChain: ReadonlyMap<string, readonly Approval[]> = new Map();

  /** Replaces all of them. */
  replace(approvals: readonly Approval[]): void {
    const byChain = new Map<string, Approval[]>();
    for (const approval of approvals) {
      const key = JSON.stringify(approval.chain);
      byChain.set(key, [...(byChain.get(key) ?? []), approval]);
    }
    this.#byChain = byChain;
  }

  /** The approvals for this chain, purpose and task. Of two for one grant, the one that ends later. */
  of(
    { chain }: Pick<IdentityClaims, 'chain'>,
    purpose: string | null,
    task: string | null,
    now = Date.now(),
  ): ApprovedGrants {
    if (this.#byChain.size === 0) return NOTHING_APPROVED;
    const found = (this.#byChain.get(JSON.stringify(chain)) ?? [])
      .filter((a) => (a.purpose === null || a.purpose === purpose) && (a.task === null || a.task === task))
      .filter(({ startsAt, endsAt }) => now >= startsAt && now < endsAt)
      .sort((a, b) => a.endsAt - b.endsAt);
    if (found.length === 0) return NOTHING_APPROVED;
    const byGrant = new Map(found.flatMap((a) => a.grants.map((grant) => [grant, a] as const)));
    return Object.freeze({
      ids: Object.freeze(found.map(({ id }) => id)),
      get: (grant: string) => byGrant.get(grant),
    });
  }
}

/** True if a grant of the policy needs an approval. */
export function needsApprovals(snapshot: Pick<PolicySnapshot, 'roles'> | null): boolean {
  const roles = [...(snapshot?.roles.values() ?? [])];
  return roles.some(({ conditions }) => [...conditions.values()].some(({ approval }) => approval !== null));
}

/** The approval check of a request. */
export type ApprovalCheck = Pick<Approvals, 'of'>;

/** Reports roles in `by` that nobody can have. */
export function checkApprovers(document: PolicyDocument, problems: ProblemList): void {
  const { roles, subjects, exchange = [] } = document;
  const admin = [...Object.values(subjects), ...exchange].flatMap((owner) => owner.admin ?? []);
  const known = new Set([...Object.keys(roles), ...admin]);
  for (const [role, { grants }] of Object.entries(roles))
    for (const [i, { approval }] of grants.entries())
      if (approval !== undefined && !known.has(approval.by))
        problems.add('condition', ['roles', role, 'grants', i, 'approval', 'by'], {
          message: `nobody can have the role \`${approval.by}\``,
          hint: 'name a role of `roles`, or one that a subject has in `admin`',
        });
}
