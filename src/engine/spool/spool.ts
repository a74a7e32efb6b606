import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { InternalError } from 'osl-compiler';
import type { FairShareParty } from '../fair-share.js';
import { EXTENT_BYTES, type SpoolRoom } from './spool-room.js';

/** Whole DataRow messages as they arrived. */
export interface RowBatch {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/** Rows written to the file together. `number` is unique within a spool, so no two frames share a key stream. */
interface SpoolFrame {
  readonly number: number;
  readonly at: number;
  readonly length: number;
  readonly parts: readonly { readonly length: number; readonly rows: number }[];
}

/** Accounts for the memory of rows before and while they are read. */
export interface SpoolReader {
  wait(bytes: number): Promise<void>;
  hold(bytes: number): void;
}

/** Number of bytes collected before a write; twice as many may wait in memory. */
const FRAME_BYTES = 262_144;
const ALGORITHM = 'aes-256-ctr';

/**
 * A FIFO queue of an answer's rows between the database and a slow reader, mostly in an unlinked file. Data on disk is
 * encrypted with a key that exists only in this process, so a copy of the disk or its free blocks reveals nothing.
 */
export class Spool {
  readonly #room: SpoolRoom;
  readonly #party: FairShareParty;
  readonly #file: FileHandle;
  readonly #key = randomBytes(32);
  #extents: number;
  #frames: SpoolFrame[] = [];
  #next = 0;
  #end = 0;
  #memory: RowBatch[] = [];
  #memoryBytes = 0;
  #writtenBytes = 0;
  #writing: Promise<void> | null = null;
  /** True after a write failed or found no room, until all written data has been taken. */
  #full = false;
  #ended = false;
  #closed = false;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: () => void = () => undefined;

  /** Opens a spool for `party`; null if there is no room or the disk fails. */
  static async open(room: SpoolRoom, party: FairShareParty): Promise<Spool | null> {
    if (!room.take(party)) return null;
    try {
      return new Spool(room, party, await room.open());
    } catch (error) {
      room.giveBack(party, 1);
      room.wrote(error);
      return null;
    }
  }

  private constructor(room: SpoolRoom, party: FairShareParty, file: FileHandle) {
    this.#room = room;
    this.#party = party;
    this.#file = file;
    this.#extents = 1;
  }

  /** Appends `rows`. If a promise is returned, wait for it before adding more; it never rejects. */
  put(rows: RowBatch): void | Promise<void> {
    if (this.#closed) return undefined;
    this.#memory.push(rows);
    this.#memoryBytes += rows.bytes.length;
    this.#wakeReader();
    if (this.#memoryBytes >= FRAME_BYTES) this.#write();
    if (this.#memoryBytes + this.#writtenBytes < 2 * FRAME_BYTES) return undefined;
    return new Promise((resolve) => {
      this.#wakeWriter = resolve;
    });
  }

  /** Marks the end of the input. */
  end(): void {
    this.#ended = true;
    this.#wakeReader();
  }

  /** Takes the oldest rows; null at the end. @throws the disk's error */
  async take(reader: SpoolReader): Promise<readonly RowBatch[] | null> {
    for (;;) {
      if (this.#closed) return null;
      const frame = this.#frames.shift();
      if (frame !== undefined) {
        await reader.wait(frame.length);
        return this.#read(frame);
      }
      if (this.#writing !== null) {
        await this.#writing;
      } else if (this.#memory.length > 0) {
        reader.hold(this.#memoryBytes);
        return this.#takeMemory();
      } else if (this.#ended) {
        return null;
      } else {
        await this.#rewind();
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
          if (this.#memory.length > 0 || this.#ended || this.#closed) resolve();
        });
      }
    }
  }

  /** Drops the remaining rows and the file. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#frames = [];
    this.#memory = [];
    this.#memoryBytes = 0;
    this.#wakeReader();
    this.#wakeWriter();
    const over = (): void => {
      this.#room.giveBack(this.#party, this.#extents);
      this.#room.closed();
    };
    this.#file.close().then(over, over);
  }

  /** Takes rows from memory. All rows on disk were taken before, so their space is free again. */
  #takeMemory(): readonly RowBatch[] {
    const taken = this.#memory;
    this.#memory = [];
    this.#memoryBytes = 0;
    this.#end = 0;
    this.#full = false;
    this.#wakeWriter();
    return taken;
  }

  #write(): void {
    if (this.#writing !== null || this.#full) return;
    if (!this.#hasRoom(this.#memoryBytes)) {
      this.#full = true;
      return;
    }
    const parts = this.#memory;
    const length = this.#memoryBytes;
    this.#memory = [];
    this.#memoryBytes = 0;
    this.#writtenBytes = length;
    this.#writing = this.#append(parts, length).then(
      () => {
        this.#writing = null;
        this.#writtenBytes = 0;
        this.#room.wrote(null);
        this.#wakeWriter();
      },
      (error: unknown) => this.#keepUnwritten(parts, length, error),
    );
  }

  #keepUnwritten(parts: readonly RowBatch[], length: number, error: unknown): void {
    this.#writing = null;
    this.#writtenBytes = 0;
    if (this.#closed) return;
    this.#full = true;
    this.#memory = [...parts, ...this.#memory];
    this.#memoryBytes += length;
    this.#room.wrote(error);
  }

  #hasRoom(length: number): boolean {
    while (this.#end + length > this.#extents * EXTENT_BYTES) {
      if (!this.#room.take(this.#party)) return false;
      this.#extents += 1;
    }
    return true;
  }

  async #append(parts: readonly RowBatch[], length: number): Promise<void> {
    const number = this.#next;
    this.#next += 1;
    const cipher = createCipheriv(ALGORITHM, this.#key, vectorOf(number));
    const at = this.#end;
    let done = 0;
    for (const piece of pieces(parts)) {
      await this.#writeAll(cipher.update(piece), at + done);
      done += piece.length;
    }
    this.#end = at + length;
    const sizes = parts.map(({ bytes, rows }) => ({ length: bytes.length, rows }));
    this.#frames.push({ number, at, length, parts: sizes });
  }

  async #writeAll(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, at + done);
      done += bytesWritten;
    }
  }

  async #read({ number, at, length, parts }: SpoolFrame): Promise<readonly RowBatch[]> {
    const plain = Buffer.allocUnsafe(length);
    const piece = Buffer.allocUnsafe(Math.min(length, 2 * FRAME_BYTES));
    const decipher = createDecipheriv(ALGORITHM, this.#key, vectorOf(number));
    for (let done = 0; done < length; ) {
      const wanted = Math.min(piece.length, length - done);
      const { bytesRead } = await this.#file.read(piece, 0, wanted, at + done);
      if (bytesRead === 0) throw new InternalError('a spool is shorter than it was written');
      plain.set(decipher.update(piece.subarray(0, bytesRead)), done);
      done += bytesRead;
    }
    let from = 0;
    return parts.map((part) => {
      const bytes = plain.subarray(from, from + part.length);
      from += part.length;
      return { bytes, rows: part.rows };
    });
  }

  /** Truncates the file once all rows have been taken. */
  async #rewind(): Promise<void> {
    this.#end = 0;
    const free = this.#extents - 1;
    if (free === 0 || this.#closed) return;
    this.#extents = 1;
    const truncated = this.#file.truncate(0).then(
      () => undefined,
      (error: unknown) => this.#room.wrote(this.#closed ? null : error),
    );
    this.#writing = truncated.then(() => {
      this.#writing = null;
      this.#room.giveBack(this.#party, free);
    });
    await this.#writing;
  }
}

/** Yields the bytes of `parts` in order, about a frame at a time, so that encryption copies are bounded. */
function* pieces(parts: readonly RowBatch[]): Generator<Uint8Array> {
  let small: Uint8Array[] = [];
  let size = 0;
  for (const { bytes } of parts) {
    for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
      const piece = bytes.subarray(at, at + FRAME_BYTES);
      small.push(piece);
      size += piece.length;
      if (size < FRAME_BYTES) continue;
      yield Buffer.concat(small, size);
      small = [];
      size = 0;
    }
  }
  if (size > 0) yield Buffer.concat(small, size);
}

/** The initial counter: its upper half is the frame number, its lower half the block number. */
function vectorOf(number: number): Buffer {
  const vector = Buffer.alloc(16);
  vector.writeBigUInt64BE(BigInt(number), 0);
  return vector;
}
