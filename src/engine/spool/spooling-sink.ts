import { type AnswerMemory, LARGE_ROW_BYTES, noMemory } from '../answer-memory.js';
import { rowScheduler, SLICE_BYTES } from '../fair-scheduler.js';
import type { FairShareParty } from '../fair-share.js';
import type { RowSink } from '../statement.js';
import { Spool, type SpoolRoom } from './spool.js';

/** Total time in ms that an answer may wait for its reader before its rows are spooled. */
const PATIENCE_MS = 500;

/** Memory in bytes that a spooled answer reserves for rows being written and rows read back. */
const SPOOL_BYTES = 1_048_576;

export interface SpoolingOptions {
  readonly room: SpoolRoom;
  readonly memory: AnswerMemory;
  readonly party: FairShareParty;
  readonly copies: number;
  /** Called at most once, if spooled rows could not be delivered. */
  readonly fail: (error: unknown) => void;
}

/**
 * A sink that relieves the database of slow readers. Once an answer has waited long enough, its rows are spooled as
 * they arrive and the reader is served from the spool. If there is no room for them, the session waits.
 */
export class SpoolingSink implements RowSink {
  readonly #sink: RowSink;
  readonly #options: SpoolingOptions;
  #waitedMs = 0;
  #spool: Spool | null = null;
  #delivered: Promise<void> | null = null;
  #dropped = false;

  constructor(sink: RowSink, options: SpoolingOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  write(bytes: Uint8Array, rows: number): void | Promise<void> {
    if (this.#spool !== null) return this.#spool.put({ bytes, rows });
    const pending = this.#sink.write(bytes, rows);
    return pending === undefined ? undefined : this.#wait(pending, bytes.length);
  }

  /** Ends the input. Resolves once all spooled rows are delivered or delivery has failed; null if none were spooled. */
  end(): Promise<void> | null {
    this.#spool?.end();
    return this.#delivered;
  }

  /** Stops delivery and drops the spooled rows. */
  drop(): void {
    this.#dropped = true;
    this.#spool?.close();
  }

  async #wait(pending: Promise<void>, bytes: number): Promise<void> {
    const startedAt = performance.now();
    const inTime = await within(pending, PATIENCE_MS - this.#waitedMs);
    this.#waitedMs += performance.now() - startedAt;
    if (inTime) return;
    const spool = await this.#open();
    if (spool === null) {
      await pending;
      return;
    }
    const { memory, party, fail } = this.#options;
    // The statement no longer waits for the reader, but the rows being read still occupy memory, which is charged here.
    const reserved = SPOOL_BYTES + this.#needOf(bytes);
    memory.hold(party, reserved - SPOOL_BYTES);
    this.#spool = spool;
    if (this.#dropped) spool.close();
    this.#delivered = this.#deliver(pending, spool)
      .catch(fail)
      .finally(() => memory.giveBack(party, reserved));
  }

  /** Opens a spool; null if there is no room on disk or in memory. */
  async #open(): Promise<Spool | null> {
    const { room, memory, party } = this.#options;
    if (!memory.take(party, SPOOL_BYTES)) return null;
    const spool = await Spool.open(room, party);
    if (spool === null) memory.giveBack(party, SPOOL_BYTES);
    return spool;
  }

  /** Delivers in slices like those of an upstream, so that other work can run between them. */
  async #deliver(pending: Promise<void>, spool: Spool): Promise<void> {
    await pending;
    const deliveryMemory = new DeliveryMemory(this.#options, (bytes) => this.#needOf(bytes));
    try {
      let bytes = 0;
      for (
        let batches = await spool.take(deliveryMemory);
        batches !== null;
        batches = await spool.take(deliveryMemory)
      ) {
        for (const batch of batches) {
          if (this.#dropped) return;
          await this.#sink.write(batch.bytes, batch.rows);
          bytes += batch.bytes.length;
          if (bytes < SLICE_BYTES) continue;
          bytes = 0;
          await rowScheduler.wait();
        }
        deliveryMemory.release();
      }
    } finally {
      deliveryMemory.release();
      spool.close();
    }
  }

  #needOf(bytes: number): number {
    return bytes <= LARGE_ROW_BYTES ? 0 : bytes * (1 + this.#options.copies);
  }
}

/** Accounts for the memory used by rows that were read from a spool but not yet delivered. */
class DeliveryMemory {
  readonly #options: SpoolingOptions;
  readonly #needOf: (bytes: number) => number;
  #held = 0;

  constructor(options: SpoolingOptions, needOf: (bytes: number) => number) {
    this.#options = options;
    this.#needOf = needOf;
  }

  /** Reserves memory before `bytes` bytes of rows are read. @throws QueryError E5039 */
  async wait(bytes: number): Promise<void> {
    const { memory, party } = this.#options;
    const need = this.#needOf(bytes);
    if (need === 0) return;
    if (!(await memory.wait(party, need))) throw noMemory();
    this.#held += need;
  }

  /** Counts `bytes` bytes of rows that are already in memory. */
  hold(bytes: number): void {
    const need = this.#needOf(bytes);
    this.#options.memory.hold(this.#options.party, need);
    this.#held += need;
  }

  release(): void {
    this.#options.memory.giveBack(this.#options.party, this.#held);
    this.#held = 0;
  }
}

/** Resolves to true if `work` resolves within `ms`, otherwise to false; rejects if `work` rejects. */
function within(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, ms));
    work.then(
      () => {
        clearTimeout(timer);
        resolve(true);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
