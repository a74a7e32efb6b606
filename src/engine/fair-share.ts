import { queryError } from 'osl-compiler';

/** A subject, or null for the gateway itself, which needs little and is never limited. */
export type FairShareParty = string | null;

interface QueuedItem<T> {
  readonly party: FairShareParty;
  readonly item: T;
}

/**
 * Shares places fairly among waiting parties.
 *
 * A free place goes to the party that holds the fewest; among equals, to the party that has waited longest with that
 * number. So no party holds more than half of the places while another wants as many. Parties that hold places must
 * leave some free for later arrivals: the last place is for parties that hold none, and a party with half of all places
 * must leave the reserve. Otherwise, one party's long statements could take every place before another party needs one.
 */
export class FairShare<T> {
  readonly #reserve: number;
  readonly #held = new Map<FairShareParty, number>();
  /**
   * Waiting parties, indexed by the number of places they hold. Each set is ordered by the time at which a party
   * began to wait with that number.
   */
  readonly #levels: (Set<FairShareParty> | undefined)[] = [];
  readonly #items = new Map<FairShareParty, Set<T>>();
  #waiting = 0;

  /** @param reserve fraction of the places, 0 to 1, that a party holding half of them must leave free */
  constructor(reserve: number) {
    this.#reserve = reserve;
  }

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(party: FairShareParty): number {
    return this.#items.get(party)?.size ?? 0;
  }

  /** True if `party` may take one of the `free` places out of `total`; ignores waiting parties with a better claim. */
  admits(party: FairShareParty, free: number, total: number): boolean {
    return free > this.#mustLeave(party, total);
  }

  take(party: FairShareParty): void {
    this.#move(party, 1);
  }

  giveBack(party: FairShareParty): void {
    this.#move(party, -1);
  }

  wait(party: FairShareParty, item: T): void {
    const items = this.#items.get(party);
    if (items === undefined) {
      this.#items.set(party, new Set([item]));
      this.#level(party).add(party);
    } else {
      items.add(item);
    }
    this.#waiting += 1;
  }

  /** Removes `item` from the queue. False if it was not waiting. */
  leave(party: FairShareParty, item: T): boolean {
    const items = this.#items.get(party);
    if (items?.delete(item) !== true) return false;
    this.#waiting -= 1;
    if (items.size === 0) {
      this.#items.delete(party);
      this.#level(party).delete(party);
    }
    return true;
  }

  /** Returns the next party to get one of the `free` places out of `total`, with its item; null if no party may. */
  first(free: number, total: number): QueuedItem<T> | null {
    for (const level of this.#levels) {
      const [party] = level ?? [];
      if (party === undefined) continue;
      // INVARIANT: the other parties at this level hold as many places, and those at higher levels more, so none of
      // them is entitled to a place either.
      if (!this.admits(party, free, total)) return null;
      const [item] = this.#items.get(party) ?? [];
      return item === undefined ? null : { party, item };
    }
    return null;
  }

  /** Empties the queue and returns its items. */
  dismiss(): readonly T[] {
    const items = [...this.#items.values()].flatMap((set) => [...set]);
    this.#items.clear();
    this.#levels.length = 0;
    this.#waiting = 0;
    return items;
  }

  #mustLeave(party: FairShareParty, total: number): number {
    const held = this.#heldBy(party);
    const reserve = Math.floor(this.#reserve * total);
    if (held === 0) return 0;
    return 2 * held < total ? Math.min(1, reserve) : reserve;
  }

  #move(party: FairShareParty, by: 1 | -1): void {
    const isWaiting = this.#items.has(party);
    if (isWaiting) this.#level(party).delete(party);
    const held = (this.#held.get(party) ?? 0) + by;
    if (held === 0) this.#held.delete(party);
    else this.#held.set(party, held);
    if (isWaiting) this.#level(party).add(party);
  }

  #level(party: FairShareParty): Set<FairShareParty> {
    const held = this.#heldBy(party);
    let level = this.#levels[held];
    if (level === undefined) {
      level = new Set();
      this.#levels[held] = level;
    }
    return level;
  }

  /** Number of places held by `party`; the gateway itself counts as holding none. */
  #heldBy(party: FairShareParty): number {
    return party === null ? 0 : (this.#held.get(party) ?? 0);
  }
}

/**
 * Limits the number of sessions that open transactions may hold, and allows half of that number per subject, so that
 * idle clients do not starve others.
 */
export class SnapshotPlaces {
  readonly #limit: number;
  readonly #bySubject = new Map<string | null, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @throws QueryError `overloaded` */
  take(subject: string | null): void {
    const held = this.#bySubject.get(subject) ?? 0;
    if (this.#total >= this.#limit || held >= Math.ceil(this.#limit / 2))
      throw queryError('overloaded', { retryAfterSeconds: 5 });
    this.#bySubject.set(subject, held + 1);
    this.#total += 1;
  }

  free(subject: string | null): void {
    const remaining = (this.#bySubject.get(subject) ?? 0) - 1;
    if (remaining > 0) this.#bySubject.set(subject, remaining);
    else this.#bySubject.delete(subject);
    this.#total -= 1;
  }
}
