/** Sharing party: a subject by name, or the gateway itself, which asks little and is never held back. */
export type FairShareParty = string | null;

interface QueuedItem<T> {
  readonly party: FairShareParty;
  readonly item: T;
}

/**
 * Assigns equal places to waiting parties.
 *
 * A place that comes free goes to the party that holds the fewest, and among those to the one that has held so few for
 * longest, so that nobody has more than half while another waits for as much. And whoever holds places leaves some free for
 * those who come later: the last to parties that hold none; and one that holds half of all leaves the reserve. Without
 * it one party's long statements could take every place before another asks.
 */
export class FairShare<T> {
  readonly #reserve: number;
  readonly #held = new Map<FairShareParty, number>();
  /** The waiting parties by what they hold; each set in the order in which they came to hold so many. */
  readonly #levels: (Set<FairShareParty> | undefined)[] = [];
  readonly #items = new Map<FairShareParty, Set<T>>();
  #waiting = 0;

  /** `reserve`: which part of the places a party leaves free, from 0 to 1. */
  constructor(reserve: number) {
    this.#reserve = reserve;
  }

  /** Number of waiting callers. */
  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(party: FairShareParty): number {
    return this.#items.get(party)?.size ?? 0;
  }

  /** True if `party` may have one of `free` places among `all`, if nobody else is to have it. */
  admits(party: FairShareParty, free: number, all: number): boolean {
    return free > this.#leaves(party, all);
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

  /** `item` waits no longer; false where it did not. */
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

  /** Next party for one of `free` places among `all`; null if nobody may have it. */
  first(free: number, all: number): QueuedItem<T> | null {
    for (const level of this.#levels) {
      const [party] = level ?? [];
      if (party === undefined) continue;
      // INVARIANT: the others of this level hold as much, and those above more: what is not for one is for none of them.
      if (!this.admits(party, free, all)) return null;
      const [item] = this.#items.get(party) ?? [];
      return item === undefined ? null : { party, item };
    }
    return null;
  }

  /** All that wait; nobody does afterwards. */
  dismiss(): readonly T[] {
    const items = [...this.#items.values()].flatMap((set) => [...set]);
    this.#items.clear();
    this.#levels.length = 0;
    this.#waiting = 0;
    return items;
  }

  #leaves(party: FairShareParty, all: number): number {
    const held = this.#heldBy(party);
    const reserve = Math.floor(this.#reserve * all);
    if (held === 0) return 0;
    return 2 * held < all ? Math.min(1, reserve) : reserve;
  }

  #move(party: FairShareParty, by: 1 | -1): void {
    const waits = this.#items.has(party);
    if (waits) this.#level(party).delete(party);
    const held = (this.#held.get(party) ?? 0) + by;
    if (held === 0) this.#held.delete(party);
    else this.#held.set(party, held);
    if (waits) this.#level(party).add(party);
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

  /** The gateway itself counts as one that holds none. */
  #heldBy(party: FairShareParty): number {
    return party === null ? 0 : (this.#held.get(party) ?? 0);
  }
}
