import type { IdentityClaims } from './identity.js';

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
  /** Restricts the approval to requests of this task; null: no restriction. */
  readonly task: string | null;
  /** Restricts the approval to requests for this purpose; null: no restriction. */
  readonly purpose: string | null;
  readonly startsAt: number;
  /** End of the approval, exclusive. */
  readonly endsAt: number;
}

/** The approvals that apply to one request, by the hash of the grant. */
export interface ApprovedGrants {
  readonly ids: readonly string[];
  get(grant: string): Pick<Approval, 'startsAt' | 'endsAt'> | undefined;
}

export const NOTHING_APPROVED: ApprovedGrants = Object.freeze({
  ids: Object.freeze([]),
  get: () => undefined,
});

/** Treats every grant as approved, to find out if a query lacks only approvals. For refusals, never for answers. */
export const ALL_APPROVED: ApprovedGrants = Object.freeze({
  ids: Object.freeze([]),
  get: () => ({ startsAt: Number.NEGATIVE_INFINITY, endsAt: Number.POSITIVE_INFINITY }),
});

/** The approvals in force, by chain. */
export class Approvals {
  #byChain: ReadonlyMap<string, readonly Approval[]> = new Map();
  readonly #listeners = new Set<() => void>();

  /** Calls `listener` whenever the approvals have been reloaded. */
  follow(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Replaces all approvals. */
  replace(approvals: readonly Approval[]): void {
    const byChain = new Map<string, Approval[]>();
    for (const approval of approvals) {
      const key = JSON.stringify(approval.chain);
      byChain.set(key, [...(byChain.get(key) ?? []), approval]);
    }
    this.#byChain = byChain;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the approvals in force for this chain, purpose and task. If two cover a grant, the later end applies. */
  inForce(
    { chain }: Pick<IdentityClaims, 'chain'>,
    purpose: string | null,
    task: string | null,
    now = Date.now(),
  ): ApprovedGrants {
    if (this.#byChain.size === 0) return NOTHING_APPROVED;
    const matching = (this.#byChain.get(JSON.stringify(chain)) ?? [])
      .filter((a) => (a.purpose === null || a.purpose === purpose) && (a.task === null || a.task === task))
      .filter(({ startsAt, endsAt }) => now >= startsAt && now < endsAt)
      .sort((a, b) => a.endsAt - b.endsAt);
    if (matching.length === 0) return NOTHING_APPROVED;
    const byGrant = new Map(matching.flatMap((a) => a.grants.map((grant) => [grant, a] as const)));
    return Object.freeze({
      ids: Object.freeze(matching.map(({ id }) => id)),
      get: (grant: string) => byGrant.get(grant),
    });
  }
}

/** The lookup of the approvals for a request. */
export type ApprovalCheck = Pick<Approvals, 'inForce'>;

/** The approvals for running queries. */
export type FollowedApprovals = Pick<Approvals, 'inForce' | 'follow'>;
