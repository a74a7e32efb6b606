import { queryError } from 'osl-compiler';
import type { RowWriter } from '../../../wire/index.js';
import {
  eachDataRow,
  type MemoryShare,
  noMemory,
  type RowSink,
  rowScheduler,
  SLICE_BYTES,
} from '../../engine/index.js';

export const MAX_BUFFERED_BYTES = 64 * 1_048_576;

/**
 * Rows of a running query, buffered for a client that fetches in batches.
 *
 * Buffers up to `MAX_BUFFERED_BYTES`, as long as memory for answers is available. Beyond that, the query waits for its
 * client and keeps its upstream session. A query that must not wait (the embedded engine has a single session) fails if
 * memory is short or if its total size exceeds the limit, whatever the client's speed.
 */
export class BufferedRows implements RowSink {
  readonly #mayPause: boolean;
  readonly #memory: MemoryShare;
  #rows: Uint8Array[] = [];
  #next = 0;
  #bytes = 0;
  #total = 0;
  #takenRows = 0;
  #ended = false;
  #failure: { readonly cause: unknown } | null = null;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: (() => void) | null = null;

  constructor(mayPause: boolean, memory: MemoryShare) {
    this.#mayPause = mayPause;
    this.#memory = memory;
  }

  write(messages: Uint8Array): void | Promise<void> {
    if (this.#ended) return undefined;
    for (const row of eachDataRow(messages)) this.#rows.push(row);
    this.#bytes += messages.byteLength;
    this.#total += messages.byteLength;
    const hasMemory = this.#memory.hold(messages.byteLength);
    if (!this.#mayPause && this.#total > MAX_BUFFERED_BYTES)
      throw queryError('tooLarge', { what: 'the bytes of a portal', limit: MAX_BUFFERED_BYTES });
    if (!this.#mayPause && !hasMemory) throw noMemory();
    if (hasMemory && this.#bytes <= MAX_BUFFERED_BYTES) {
      this.#wakeReader();
      return undefined;
    }
    const waiting = new Promise<void>((resolve) => {
      this.#wakeWriter = () => {
        this.#wakeWriter = null;
        resolve();
      };
    });
    this.#wakeReader();
    return waiting;
  }

  rowsSent(): number {
    return this.#takenRows;
  }

  /**
   * Ends the rows after the last one or after a failure. `take` throws the failure once the rows before it have been
   * taken.
   */
  end(failure: { readonly cause: unknown } | null): void {
    this.#ended = true;
    this.#failure = failure;
    this.#wakeReader();
  }

  /** Discards buffered rows and those still to come. */
  discard(): void {
    this.#rows = [];
    this.#next = 0;
    this.#bytes = 0;
    this.#memory.release();
    this.#ended = true;
    this.#wakeReader();
    this.#wakeWriter?.();
  }

  /** Releases the memory of rows that were taken and sent. */
  releaseSent(bytes: number): void {
    this.#memory.giveBack(bytes);
  }

  /**
   * Takes at most `max` rows (0: no maximum). Returns fewer if the buffer is full, `MAX_ROWS_TAKEN` rows are taken or
   * the rows have ended. `hasMore` is false only at the end. Throws the query's failure.
   */
  async take(max: number): Promise<{ readonly rows: readonly Uint8Array[]; readonly hasMore: boolean }> {
    const limit = max === 0 ? Number.POSITIVE_INFINITY : max;
    while (!this.#ended && this.#available < Math.min(limit, MAX_ROWS_TAKEN)) {
      if (this.#wakeWriter !== null) break;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
    const rows = this.#rows.slice(this.#next, this.#next + Math.min(limit, MAX_ROWS_TAKEN));
    this.#next += rows.length;
    this.#takenRows += rows.length;
    for (const row of rows) this.#bytes -= row.byteLength;
    if (this.#next === this.#rows.length || this.#next > COMPACT_AFTER) this.#compact();
    if (this.#bytes <= MAX_BUFFERED_BYTES / 2) this.#wakeWriter?.();
    if (rows.length === 0 && this.#failure !== null) throw this.#failure.cause;
    return { rows, hasMore: this.#available > 0 || !this.#ended || this.#failure !== null };
  }

  get #available(): number {
    return this.#rows.length - this.#next;
  }

  #compact(): void {
    this.#rows = this.#rows.slice(this.#next);
    this.#next = 0;
  }
}

const MAX_ROWS_TAKEN = 16_384;
const COMPACT_AFTER = 65_536;

/**
 * Writes buffered rows in slices, yielding to the event loop in between. `onSent` is called with the size of each
 * row sent.
 */
export async function writeRows(
  rows: readonly Uint8Array[],
  out: RowWriter,
  onSent: (bytes: number) => void = () => undefined,
): Promise<void> {
  let bytes = 0;
  for (const row of rows) {
    const backpressure = out.write(row);
    if (backpressure !== undefined) await backpressure;
    onSent(row.byteLength);
    bytes += row.byteLength;
    if (bytes < SLICE_BYTES) continue;
    bytes = 0;
    await rowScheduler.wait();
  }
}
