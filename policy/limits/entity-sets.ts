import { queryError } from 'osl-compiler';
import { monotonicMs } from './leases.js';
import type { QuotaCount } from './quota-counts.js';

/** Members to add to one set. */
export interface SetAddition {
  readonly key: string;
  readonly windowMs: number;
  /** The maximum number of members. */
  readonly most: number;
  /** Different hashes of entities; none only queries the set. */
  readonly members: readonly string[];
}

export interface SetResult {
  /** Index of the first addition that would exceed its maximum; null if there is none. Then nothing was added. */
  readonly refused: number | null;
  /** The state of each set. */
  readonly counts: readonly QuotaCount[];
}

/** Sets of the different entities that callers have been shown, each for a window from its first member. */
export interface EntitySets {
  /**
   * Adds members to all sets, or to none.
   *
   * @throws QueryError E5038 if the sets cannot be reached, and E5031 if there is no room for more members
   */
  add(additions: readonly SetAddition[]): Promise<SetResult>;
}

/** Maximum number of members of all sets together. */
const MAX_MEMBERS = 2_000_000;
const RETRY_SECONDS = 60;

interface EntitySet {
  readonly endsAt: number;
  readonly members: Set<string>;
}

/** The sets in the memory of the process that counts. */
export class EntitySetBook {
  readonly #now: () => number;
  readonly #maxMembers: number;
  readonly #sets = new Map<string, EntitySet>();
  #members = 0;

  constructor(now: () => number = monotonicMs, maxMembers = MAX_MEMBERS) {
    this.#now = now;
    this.#maxMembers = maxMembers;
  }

  /** @param additions have different keys @throws QueryError E5031 */
  add(additions: readonly SetAddition[]): SetResult {
    const now = this.#now();
    const planned = additions.map(({ key, windowMs, most, members }) => {
      const known = this.#sets.get(key);
      const set = known !== undefined && known.endsAt > now ? known : null;
      const added = members.filter((member) => set?.members.has(member) !== true);
      const before = set?.members.size ?? 0;
      const exceeds = added.length > 0 && before + added.length > most;
      return { key, set, added, before, exceeds, endsAt: set?.endsAt ?? now + windowMs };
    });
    const refused = planned.findIndex(({ exceeds }) => exceeds);
    if (refused < 0) {
      this.#requireRoom(
        planned.reduce((sum, { added }) => sum + added.length, 0),
        now,
      );
      for (const { key, set, added, endsAt } of planned) this.#insert(key, set, added, endsAt);
    }
    const counts = planned.map(({ before, added, endsAt }) => ({
      used: before + (refused < 0 ? added.length : 0),
      endsInMs: endsAt - now,
    }));
    return { refused: refused < 0 ? null : refused, counts };
  }

  #insert(key: string, current: EntitySet | null, added: readonly string[], endsAt: number): void {
    if (added.length === 0) return;
    if (current === null) this.#drop(key);
    const set = current ?? { endsAt, members: new Set<string>() };
    this.#sets.set(key, set);
    for (const member of added) set.members.add(member);
    this.#members += added.length;
  }

  #requireRoom(more: number, now: number): void {
    if (this.#members + more <= this.#maxMembers) return;
    for (const [key, { endsAt }] of this.#sets) if (endsAt <= now) this.#drop(key);
    if (this.#members + more > this.#maxMembers)
      throw queryError('overloaded', { retryAfterSeconds: RETRY_SECONDS });
  }

  #drop(key: string): void {
    this.#members -= this.#sets.get(key)?.members.size ?? 0;
    this.#sets.delete(key);
  }
}
