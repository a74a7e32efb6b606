import type { Party } from '../fair-share.js';
import type { RowSink } from '../statement.js';
import { SLICE_BYTES, turns } from '../turns.js';
import { Spool } from './spool.js';
import type { SpoolRoom } from './spool-room.js';

/** How long an answer may wait for its reader, in ms, all waits together, before its rows are spooled. */
export const PATIENCE_MS = 500;

/**
 * A sink that relieves the database of a slow reader: once an answer has waited long enough, its rows are spooled as fast
 * as they come, and the reader takes them from there. Where there is no room for them it waits, as without a spool.
 */
export class RelievedSink implements RowSink {
  readonly #sink: RowSink;
  readonly #room: SpoolRoom;
  readonly #party: Party;
  readonly #fail: (error: unknown) => void;
  #waited = 0;
  #spool: Spool | null = null;
  #delivered: Promise<void> | null = null;
  #dropped = false;

  /** `fail` hears, once, why rows that were spooled could not be delivered. */
  constructor(sink: RowSink, room: SpoolRoom, party: Party, fail: (error: unknown) => void) {
    this.#sink = sink;
    this.#room = room;
    this.#party = party;
    this.#fail = fail;
  }

  write(bytes: Uint8Array, rows: number): void | Promise<void> {
    if (this.#spool !== null) return this.#spool.put({ bytes, rows });
    const reading = this.#sink.write(bytes, rows);
    return reading === undefined ? undefined : this.#wait(reading);
  }

  /** No more comes. Resolves once all that was spooled has been delivered, or cannot be; null where nothing was. */
  end(): Promise<void> | null {
    this.#spool?.end();
    return this.#delivered;
  }

  /** Nothing more is delivered. */
  drop(): void {
    this.#dropped = true;
    this.#spool?.close();
  }

  async #wait(reading: Promise<void>): Promise<void> {
    const since = performance.now();
    const read = await within(reading, PATIENCE_MS - this.#waited);
    this.#waited += performance.now() - since;
    if (read) return;
    const spool = await Spool.open(this.#room, this.#party);
    if (spool === null) {
      await reading;
      return;
    }
    if (this.#dropped) {
      spool.close();
      return;
    }
    this.#spool = spool;
    this.#delivered = this.#deliver(reading, spool).catch((error: unknown) => this.#fail(error));
  }

  /** In slices, as those that an upstream sends: nothing else would give the event loop back between them. */
  async #deliver(reading: Promise<void>, spool: Spool): Promise<void> {
    await reading;
    let bytes = 0;
    for (let some = await spool.take(); some !== null; some = await spool.take()) {
      for (const part of some) {
        if (this.#dropped) return;
        await this.#sink.write(part.bytes, part.rows);
        bytes += part.bytes.length;
        if (bytes < SLICE_BYTES) continue;
        bytes = 0;
        await turns.wait();
      }
    }
    spool.close();
  }
}

/** Whether `work` settled within `ms`. Rejects as it does. */
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
