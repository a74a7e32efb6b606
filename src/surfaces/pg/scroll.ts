import { QueryError, queryError } from 'osl-compiler';
import type { FetchResult, RowWriter, WireNotice } from '../../../wire/index.js';
import { eachDataRow, type MemoryShare } from '../../engine/index.js';
import { HELD_BYTES } from './paced-rows.js';
import type { SessionRecords } from './session-records.js';

/** Motion of FETCH and MOVE from the current row. A negative count reverses the direction. */
export interface Motion {
  readonly direction: 'forward' | 'backward' | 'absolute' | 'relative';
  readonly count: number | 'all';
}

/**
 * Rows of a cursor that can move backward: read on demand and kept, up to `HELD_BYTES`.
 *
 * Positions as in Postgres: 0 is before the first row, the number of rows + 1 is after the last.
 */
export class ScrolledRows {
  readonly #read: (max: number, rows: RowWriter) => Promise<FetchResult>;
  #rows: Uint8Array[] = [];
  #bytes = 0;
  #at = 0;
  readonly #memory: MemoryShare;
  readonly #records: Pick<SessionRecords, 'refusal'>;
  readonly #notices: WireNotice[] = [];
  #ended = false;
  /** Error of reading; must not be mistaken for the end of the rows. */
  #failure: { readonly cause: unknown } | null = null;

  /** `read` writes at most `max` further rows; 0 is all. */
  constructor(
    read: (max: number, rows: RowWriter) => Promise<FetchResult>,
    memory: MemoryShare,
    records: Pick<SessionRecords, 'refusal'>,
  ) {
    this.#read = read;
    this.#memory = memory;
    this.#records = records;
  }

  close(): void {
    this.#rows = [];
    this.#memory.release();
  }

  /** Returns and clears the notices of the query. */
  takeNotices(): readonly WireNotice[] {
    return this.#notices.splice(0);
  }

  /** Rows that the motion passes, in its order; for absolute and relative motions the row it ends on. */
  async move({ direction, count }: Motion): Promise<readonly Uint8Array[]> {
    switch (direction) {
      case 'forward':
        return count !== 'all' && count < 0 ? this.#backward(-count) : this.#forward(count);
      case 'backward':
        return count !== 'all' && count < 0 ? this.#forward(-count) : this.#backward(count);
      case 'absolute':
        return this.#to(await this.#absolute(Number(count)));
      case 'relative':
        return this.#to(this.#at + Number(count));
      default: {
        const unknown: never = direction;
        throw new TypeError(`unexpected direction ${String(unknown)}`);
      }
    }
  }

  async #forward(count: number | 'all'): Promise<readonly Uint8Array[]> {
    if (count === 0) return this.#to(this.#at);
    const begin = this.#at;
    const wanted = count === 'all' ? Number.POSITIVE_INFINITY : begin + count;
    await this.#reach(wanted);
    this.#at = Math.min(wanted, this.#rows.length + 1);
    return this.#rows.slice(begin, this.#at);
  }

  #backward(count: number | 'all'): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    if (count === 0) return this.#to(this.#at);
    const before = this.#at - 1;
    this.#at = count === 'all' ? 0 : Math.max(0, this.#at - count);
    return this.#rows.slice(Math.max(0, this.#at - 1), Math.max(0, before)).reverse();
  }

  async #absolute(count: number): Promise<number> {
    if (count >= 0) return count;
    await this.#reach(Number.POSITIVE_INFINITY);
    return this.#rows.length + 1 + count;
  }

  async #to(position: number): Promise<readonly Uint8Array[]> {
    await this.#reach(position);
    this.#at = Math.max(0, Math.min(position, this.#rows.length + 1));
    return this.#at === 0 ? [] : this.#rows.slice(this.#at - 1, this.#at);
  }

  /** Reads until row `position` or the end is buffered. @throws WireError 54000, 53200 if the rows exceed the limits */
  async #reach(position: number): Promise<void> {
    if (this.#failure !== null) throw this.#failure.cause;
    const missing = position - this.#rows.length;
    if (this.#ended || missing <= 0) return;
    const keep: RowWriter = {
      write: (messages) => {
        this.#bytes += messages.byteLength;
        if (this.#bytes > HELD_BYTES)
          throw queryError('tooLarge', { what: 'the bytes of a cursor that scrolls', limit: HELD_BYTES });
        this.#memory.require(messages.byteLength);
        for (const row of eachDataRow(messages)) this.#rows.push(row);
      },
    };
    try {
      const { suspended, notices } = await this.#read(Number.isFinite(missing) ? missing : 0, keep);
      this.#ended = !suspended;
      this.#notices.push(...(notices ?? []));
    } catch (failure) {
      const cause = failure instanceof QueryError ? this.#records.refusal(failure) : failure;
      this.#failure = { cause };
      throw cause;
    }
  }
}
