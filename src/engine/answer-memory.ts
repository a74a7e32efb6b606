import { InternalError, type QueryError, queryError } from 'osl-compiler';
import type { FairShareParty } from './fair-share.js';
import { eachDataRow } from './protocol/data-row.js';

/** Rows up to this size are not counted one by one: what a session holds of them is bounded by its buffers. */
export const LARGE_ROW_BYTES = 262_144;

/** Longest wait of a large row for memory, after which its statement is refused. */
const WAIT_MS = 5_000;

export interface AnswerBounds {
  /** Bytes of one row of an answer, as the database sends it. A larger one ends its statement. */
  readonly rowBytes: number;
  /** Bytes that the answers under way in this process may hold. */
  readonly bytes: number;
}

/** For metrics, in bytes. */
export interface AnswerMemoryStats {
  readonly held: number;
  readonly limit: number;
  /** Large rows that wait for memory now. */
  readonly waiting: number;
  /** Times that there was not enough since the start. */
  readonly refused: number;
}

interface MemoryWaiter {
  readonly party: FairShareParty;
  readonly bytes: number;
  readonly settle: (granted: boolean) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Memory that the answers under way in one process hold beyond the small buffers of their sessions: large rows from their
 * first byte until their reader has them, rows kept for later fetches, rows that a later step reads, kept answers.
 *
 * One party holds at most half of it, or one row. Large rows wait for their turn; whoever holds least comes first.
 */
export class AnswerMemory {
  readonly bounds: AnswerBounds;
  readonly #of = new Map<FairShareParty, number>();
  readonly #waiters = new Set<MemoryWaiter>();
  #held = 0;
  #refused = 0;
  #free: (bytes: number) => void = () => undefined;

  constructor(bounds: AnswerBounds) {
    this.bounds = bounds;
  }

  stats(): AnswerMemoryStats {
    return {
      held: this.#held,
      limit: this.bounds.bytes,
      waiting: this.#waiters.size,
      refused: this.#refused,
    };
  }

  /** `free` gives up what is held for convenience, about so many bytes of it, before anybody waits or is refused. */
  onShortage(free: (bytes: number) => void): void {
    this.#free = free;
  }

  /** Takes memory for `party`; false where it has too much already, there is not enough, or others wait for it. */
  take(party: FairShareParty, bytes: number): boolean {
    const mayOvertake = this.#waiters.size === 0 || this.#heldBy(party) === 0;
    if (!mayOvertake || !this.#admits(party, bytes)) return false;
    this.#add(party, bytes);
    return true;
  }

  /** As `take`, when there is enough. Resolves to false after five seconds without. */
  wait(party: FairShareParty, bytes: number): Promise<boolean> {
    if (this.take(party, bytes)) return Promise.resolve(true);
    return new Promise((settle) => {
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        this.#refused += 1;
        settle(false);
      }, WAIT_MS);
      const waiter: MemoryWaiter = { party, bytes, settle, timer };
      this.#waiters.add(waiter);
    });
  }

  /** Counts memory that is in use already. False: `party` holds more than it may. */
  hold(party: FairShareParty, bytes: number): boolean {
    const admitted = this.#admits(party, bytes);
    if (!admitted) this.#refused += 1;
    this.#add(party, bytes);
    return admitted;
  }

  giveBack(party: FairShareParty, bytes: number): void {
    const left = this.#heldBy(party) - bytes;
    if (left < 0) throw new InternalError('more memory was given back than was taken');
    this.#held -= bytes;
    if (left > 0) this.#of.set(party, left);
    else this.#of.delete(party);
    this.#serve();
  }

  #heldBy(party: FairShareParty): number {
    return this.#of.get(party) ?? 0;
  }

  #admits(party: FairShareParty, bytes: number): boolean {
    if (party === null) return true;
    const { bytes: limit } = this.bounds;
    if (this.#isBeyondHalf(party, bytes)) return false;
    const missing = this.#held + bytes - limit;
    if (missing > 0) this.#free(missing);
    return this.#held + bytes <= limit;
  }

  /** With its copies one row alone may be more than half. */
  #isBeyondHalf(party: FairShareParty, bytes: number): boolean {
    const held = this.#heldBy(party);
    return held > 0 && 2 * (held + bytes) > this.bounds.bytes;
  }

  #add(party: FairShareParty, bytes: number): void {
    this.#held += bytes;
    this.#of.set(party, this.#heldBy(party) + bytes);
  }

  /** Those who hold least first; a party at its own half holds up nobody else. */
  #serve(): void {
    if (this.#waiters.size === 0) return;
    const byHeld = [...this.#waiters].sort((a, b) => this.#heldBy(a.party) - this.#heldBy(b.party));
    for (const waiter of byHeld) {
      const { party, bytes } = waiter;
      if (!this.#admits(party, bytes)) {
        if (this.#isBeyondHalf(party, bytes)) continue;
        return;
      }
      this.#waiters.delete(waiter);
      clearTimeout(waiter.timer);
      this.#add(party, bytes);
      waiter.settle(true);
    }
  }
}

/** The error of a statement that would hold more than there is for it. */
export function noMemory(): QueryError {
  return queryError('answerMemory', { retryAfterSeconds: 5 });
}

export function rowTooLarge({ rowBytes }: AnswerBounds): QueryError {
  return queryError('rowTooLarge', { limitMib: rowBytes / 1_048_576 });
}

/** The share of one question in the memory of answers. */
export class MemoryShare {
  readonly #memory: AnswerMemory;
  readonly #party: FairShareParty;
  #held = 0;

  constructor(memory: AnswerMemory, party: FairShareParty) {
    this.#memory = memory;
    this.#party = party;
  }

  get held(): number {
    return this.#held;
  }

  /** Counts memory that is in use already. False: its party holds more than it may. */
  hold(bytes: number): boolean {
    this.#held += bytes;
    return this.#memory.hold(this.#party, bytes);
  }

  /** @throws QueryError E5039 where its party may not hold as much; it is counted all the same, until `release` */
  require(bytes: number): void {
    if (!this.hold(bytes)) throw noMemory();
  }

  /** Counts whole DataRow messages. @throws QueryError E0530, and as `require` */
  requireRows(messages: Uint8Array): void {
    const { bounds } = this.#memory;
    if (messages.length > bounds.rowBytes)
      for (const row of eachDataRow(messages)) if (row.length > bounds.rowBytes) throw rowTooLarge(bounds);
    this.require(messages.length);
  }

  /** Bytes released before are not given back again. */
  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#held);
    this.#held -= back;
    this.#memory.giveBack(this.#party, back);
  }

  /** Gives back all that it holds. */
  release(): void {
    if (this.#held > 0) this.giveBack(this.#held);
  }
}

/** Of a tool, which asks for itself alone. */
export function unboundedMemory(): AnswerMemory {
  return new AnswerMemory({ rowBytes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY });
}
