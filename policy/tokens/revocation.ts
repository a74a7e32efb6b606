import type { Identity, ParentToken } from '../identity.js';
import { CLOCK_SKEW_SECONDS } from './token-fault.js';

/**
 * The target of a revocation: one token by id, or all tokens with a subject in their chain that were issued up to a
 * time.
 */
export interface RevocationKey {
  readonly kind: 'token' | 'subject';
  readonly name: string;
}

/** A revocation. Times are ms since the epoch. */
export interface Revocation extends RevocationKey {
  /** The id, a UUID. */
  readonly id: string;
  readonly at: number;
  /** The time at which all affected tokens have expired. */
  readonly until: number;
}

/** The reason in the error message for a revoked token. */
export const REVOKED = 'it was revoked';

export interface RevocationResult {
  readonly revocation: Revocation;
  /** False if other gateways have not been notified yet; null if there are no other gateways. */
  readonly shared: boolean | null;
}

/** The revocations in force. */
export class RevokedTokens {
  readonly #all = new Map<string, Revocation>();
  readonly #tokens = new Set<string>();
  /** The time of the latest revocation per subject, ms since the epoch. */
  readonly #subjects = new Map<string, number>();
  readonly #followers = new Set<() => void>();

  /** Adds revocations and returns the new ones. */
  add(revocations: Iterable<Revocation>): readonly Revocation[] {
    const added: Revocation[] = [];
    for (const revocation of revocations) {
      if (this.#all.has(revocation.id)) continue;
      this.#all.set(revocation.id, revocation);
      this.#put(revocation);
      added.push(revocation);
    }
    if (added.length > 0) for (const heard of this.#followers) heard();
    return added;
  }

  /**
   * Subscribes to new revocations.
   * @param heard called after new revocations
   * @returns a function that unsubscribes
   */
  follow(heard: () => void): () => void {
    this.#followers.add(heard);
    return () => void this.#followers.delete(heard);
  }

  /** Removes expired revocations. @param now ms since the epoch */
  prune(now: number): void {
    const ended = [...this.#all.values()].filter(({ until }) => until <= now);
    if (ended.length === 0) return;
    for (const { id } of ended) this.#all.delete(id);
    this.#tokens.clear();
    this.#subjects.clear();
    for (const revocation of this.#all.values()) this.#put(revocation);
  }

  /** The revocations in order of arrival. */
  all(): readonly Revocation[] {
    return [...this.#all.values()];
  }

  /** True if the token of `identity`, or one of its source tokens, was revoked. */
  has(identity: ParentToken & Pick<Identity, 'sources'>): boolean {
    if (this.#all.size === 0) return false;
    return this.#holds(identity) || identity.sources?.some((source) => this.#holds(source)) === true;
  }

  #holds({ chain, tokenId, issuedAt, skewSeconds = CLOCK_SKEW_SECONDS }: ParentToken): boolean {
    if (this.#tokens.has(tokenId)) return true;
    if (this.#subjects.size === 0) return false;
    // INVARIANT: the issuer's clock may be ahead, so `issuedAt` minus the skew is compared.
    const issued = (issuedAt - skewSeconds) * 1_000;
    return chain.some((member) => issued <= (this.#subjects.get(member) ?? Number.NEGATIVE_INFINITY));
  }

  #put({ kind, name, at }: Revocation): void {
    if (kind === 'token') this.#tokens.add(name);
    else this.#subjects.set(name, Math.max(at, this.#subjects.get(name) ?? 0));
  }
}

/** The revocation check for logins and open sessions. */
export type RevocationCheck = Pick<RevokedTokens, 'has' | 'follow'>;
