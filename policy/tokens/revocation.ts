import type { Identity, ParentToken } from '../identity.js';
import { CLOCK_SKEW_SECONDS } from './token-fault.js';

/** One token by its id, or all tokens that name a subject in their chain and were issued up to a moment. */
export interface RevocationKey {
  readonly kind: 'token' | 'subject';
  readonly name: string;
}

/** Something that was revoked. Times are ms since the epoch. */
export interface Revocation extends RevocationKey {
  /** A UUID. */
  readonly id: string;
  readonly at: number;
  /** From then on every token that it is about has ended by itself. */
  readonly until: number;
}

/** Reason in the error for a revoked token. */
export const REVOKED = 'it was revoked';

/** The result of a revocation. */
export interface RevocationMade {
  readonly revocation: Revocation;
  /** False where other gateways are yet to hear of it; null where there are none. */
  readonly shared: boolean | null;
}

/** The revocations in force: of tokens that have not ended by themselves yet. */
export class RevokedTokens {
  readonly #all = new Map<string, Revocation>();
  readonly #tokens = new Set<string>();
  /** Of each subject the last moment, ms since the epoch. */
  readonly #subjects = new Map<string, number>();
  readonly #followers = new Set<() => void>();

  /** Those that were not known are in force from now on; gives them. */
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

  /** @param heard is called when more was revoked. Gives what ends that. */
  follow(heard: () => void): () => void {
    this.#followers.add(heard);
    return () => void this.#followers.delete(heard);
  }

  /** Forgets what has ended by itself. @param now ms since the epoch */
  prune(now: number): void {
    const ended = [...this.#all.values()].filter(({ until }) => until <= now);
    if (ended.length === 0) return;
    for (const { id } of ended) this.#all.delete(id);
    this.#tokens.clear();
    this.#subjects.clear();
    for (const revocation of this.#all.values()) this.#put(revocation);
  }

  /** In the order in which they became known. */
  all(): readonly Revocation[] {
    return [...this.#all.values()];
  }

  /** True if the token of `identity`, or one that it was made from, was revoked. Free while nothing is. */
  has(identity: ParentToken & Pick<Identity, 'sources'>): boolean {
    if (this.#all.size === 0) return false;
    return this.#holds(identity) || identity.sources?.some((source) => this.#holds(source)) === true;
  }

  #holds({ chain, tokenId, issuedAt, skewSeconds = CLOCK_SKEW_SECONDS }: ParentToken): boolean {
    if (this.#tokens.has(tokenId)) return true;
    if (this.#subjects.size === 0) return false;
    // INVARIANT: an issuer whose clock is ahead has issued before the moment what says that it was issued after it.
    const issued = (issuedAt - skewSeconds) * 1_000;
    return chain.some((member) => issued <= (this.#subjects.get(member) ?? Number.NEGATIVE_INFINITY));
  }

  #put({ kind, name, at }: Revocation): void {
    if (kind === 'token') this.#tokens.add(name);
    else this.#subjects.set(name, Math.max(at, this.#subjects.get(name) ?? 0));
  }
}

/** Revocation check for logins and for open sessions. */
export type RevocationCheck = Pick<RevokedTokens, 'has' | 'follow'>;

/** Revocation check that revokes nothing. */
export const NOTHING_REVOKED: RevocationCheck = Object.freeze({
  has: () => false,
  follow: () => () => undefined,
});
