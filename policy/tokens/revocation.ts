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
  readonly #listeners = new Set<() => void>();

  /** Adds revocations and returns the new ones. */
  add(revocations: Iterable<Revocation>): readonly Revocation[] {
    const added: Revocation[] = [];
    for (const revocation of revocations) {
      if (this.#all.has(revocation.id)) continue;
      this.#all.set(revocation.id, revocation);
      this.#index(revocation);
      added.push(revocation);
    }
    if (added.length > 0) for (const listener of this.#listeners) listener();
    return added;
  }

  /**
   * Subscribes to new revocations.
   * @param listener called after new revocations
   * @returns a function that unsubscribes
   */
  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Removes expired revocations. @param now ms since the epoch */
  prune(now: number): void {
    const expired = [...this.#all.values()].filter(({ until }) => until <= now);
    if (expired.length === 0) return;
    for (const { id } of expired) this.#all.delete(id);
    this.#tokens.clear();
    this.#subjects.clear();
    for (const revocation of this.#all.values()) this.#index(revocation);
  }

  /** The revocations in order of arrival. */
  all(): readonly Revocation[] {
    return [...this.#all.values()];
  }

  /** True if the token of `identity`, or one of its source tokens, was revoked. */
  has(identity: ParentToken & Pick<Identity, 'sources'>): boolean {
    if (this.#all.size === 0) return false;
    return this.#isRevoked(identity) || identity.sources?.some((source) => this.#isRevoked(source)) === true;
  }

  #isRevoked({ chain, tokenId, issuedAt, skewSeconds = CLOCK_SKEW_SECONDS }: ParentToken): boolean {
    if (this.#tokens.has(tokenId)) return true;
    if (this.#subjects.size === 0) return false;
    // INVARIANT: the issuer's clock may be ahead, so `issuedAt` minus the skew is compared.
    const issuedMs = (issuedAt - skewSeconds) * 1_000;
    return chain.some((member) => issuedMs <= (this.#subjects.get(member) ?? Number.NEGATIVE_INFINITY));
  }

  #index({ kind, name, at }: Revocation): void {
    if (kind === 'token') this.#tokens.add(name);
    else this.#subjects.set(name, Math.max(at, this.#subjects.get(name) ?? 0));
  }
}

/** The revocation check for logins and open sessions. */
export type RevocationCheck = Pick<RevokedTokens, 'has' | 'follow'>;
