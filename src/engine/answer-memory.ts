import { InternalError, type QueryError, queryError } from 'osl-compiler';
import type { FairShareParty } from './fair-share.js';
import { eachDataRow } from './protocol/backend-messages.js';

/** Maximum size in bytes of rows that are not counted, since their session's buffers limit them. */
export const LARGE_ROW_BYTES = 262_144;

const WAIT_MS = 5_000;

export interface AnswerBounds {
  /** Maximum size of a row in bytes, as sent by the database. A larger row ends its statement. */
  readonly rowBytes: number;
  /** Maximum number of bytes that all unfinished answers of this process may hold. */
  readonly bytes: number;
}

/** Metrics of the answer memory: bytes, except that `waiting` is the number of requests that wait for memory. */
export interface AnswerMemoryStats {
  readonly held: number;
  readonly limit: number;
  readonly waiting: number;
  /** Number of requests for memory that were refused since the start. */
  readonly refused: number;
}

interface MemoryWaiter {
  readonly party: FairShareParty;
  readonly bytes: number;
  readonly settle: (granted: boolean) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Accounts for the memory held by the unfinished answers of a process, beyond the small buffers of their sessions:
 * large rows from their first byte until the reader has them, rows kept for later fetches, rows that a later step
 * reads, and cached answers.
 *
 * A party, such as a subject, may hold at most half of the memory, except for a single row that is larger. Large rows
 * queue, and the party that holds least is served first.
 */
export class AnswerMemory {
  readonly bounds: AnswerBounds;
  readonly #byParty = new Map<FairShareParty, number>();
  readonly #waiters = new Set<MemoryWaiter>();
  #held = 0;
  #refused = 0;
  /** True while waiters are served. That may free cached data, which calls `giveBack`; prevents recursion. */
  #isServing = false;
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

  /** Sets the function that frees about `bytes` of cached data before a caller waits or is refused. */
  onShortage(free: (bytes: number) => void): void {
    this.#free = free;
  }

  /**
   * Reserves memory for `party`. Returns false if the party would hold too much, too little is free, or other requests
   * wait and the party already holds some memory. Always true for the gateway itself (null), whose statements must not
   * lose a row.
   */
  take(party: FairShareParty, bytes: number): boolean {
    const mayOvertake = party === null || this.#waiters.size === 0 || this.#heldBy(party) === 0;
    if (!mayOvertake || !this.#admits(party, bytes)) return false;
    this.#add(party, bytes);
    return true;
  }

  /** Like `take`, but waits until the memory can be reserved. Resolves to false after five seconds. */
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

  /** Counts memory already in use, even if it returns false: `party` may not hold that much or too little is free. */
  hold(party: FairShareParty, bytes: number): boolean {
    const admitted = this.#admits(party, bytes);
    if (!admitted) this.#refused += 1;
    this.#add(party, bytes);
    return admitted;
  }

  giveBack(party: FairShareParty, bytes: number): void {
    const remaining = this.#heldBy(party) - bytes;
    if (remaining < 0) throw new InternalError('more memory was given back than was taken');
    this.#held -= bytes;
    if (remaining > 0) this.#byParty.set(party, remaining);
    else this.#byParty.delete(party);
    this.#serve();
  }

  #heldBy(party: FairShareParty): number {
    return this.#byParty.get(party) ?? 0;
  }

  #admits(party: FairShareParty, bytes: number): boolean {
    if (party === null) return true;
    const { bytes: limit } = this.bounds;
    if (this.#isBeyondHalf(party, bytes)) return false;
    const missing = this.#held + bytes - limit;
    if (missing > 0) this.#free(missing);
    // Freeing may have served waiters, including statements of this party, so both limits are checked again.
    return this.#held + bytes <= limit && !this.#isBeyondHalf(party, bytes);
  }

  /** True if the party holds some memory and would hold more than half, so that a single row may exceed half. */
  #isBeyondHalf(party: FairShareParty, bytes: number): boolean {
    const held = this.#heldBy(party);
    return held > 0 && 2 * (held + bytes) > this.bounds.bytes;
  }

  #add(party: FairShareParty, bytes: number): void {
    this.#held += bytes;
    this.#byParty.set(party, this.#heldBy(party) + bytes);
  }

  /** Serves waiting parties, starting with the one that holds least. A party at its limit does not block others. */
  #serve(): void {
    if (this.#waiters.size === 0 || this.#isServing) return;
    this.#isServing = true;
    try {
      this.#serveInOrder();
    } finally {
      this.#isServing = false;
    }
  }

  #serveInOrder(): void {
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

export function noMemory(): QueryError {
  return queryError('answerMemory', { retryAfterSeconds: 5 });
}

export function rowTooLarge({ rowBytes }: AnswerBounds): QueryError {
  return queryError('rowTooLarge', { limitMib: rowBytes / 1_048_576 });
}

/** The answer memory held by one statement. */
export class MemoryShare {
  readonly #memory: AnswerMemory;
  readonly #party: FairShareParty;
  #held = 0;

  constructor(memory: AnswerMemory, party: FairShareParty) {
    this.#memory = memory;
    this.#party = party;
  }

  /** Counts memory already in use, even if it returns false: the party may not hold that much or too little is free. */
  hold(bytes: number): boolean {
    this.#held += bytes;
    return this.#memory.hold(this.#party, bytes);
  }

  /** Like `hold`. @throws QueryError E5039 if `hold` returns false; the memory counts as held until `release` */
  require(bytes: number): void {
    if (!this.hold(bytes)) throw noMemory();
  }

  /** Counts whole DataRow messages. @throws QueryError E0530 if a row is too large, E5039 if memory is short */
  requireRows(messages: Uint8Array): void {
    const { bounds } = this.#memory;
    if (messages.length > bounds.rowBytes)
      for (const row of eachDataRow(messages)) if (row.length > bounds.rowBytes) throw rowTooLarge(bounds);
    this.require(messages.length);
  }

  /** Releases `bytes` bytes, or all held memory if it is less. */
  giveBack(bytes: number): void {
    const released = Math.min(bytes, this.#held);
    this.#held -= released;
    this.#memory.giveBack(this.#party, released);
  }

  release(): void {
    if (this.#held > 0) this.giveBack(this.#held);
  }
}

/** Returns an answer memory without limits, for command-line tools. */
export function unboundedMemory(): AnswerMemory {
  return new AnswerMemory({ rowBytes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY });
}
