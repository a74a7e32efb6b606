import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { InternalError } from 'osl-compiler';
import type { FairShareParty } from '../fair-share.js';

/** Allocation unit of a spool in bytes. Each open file takes at least one unit, which limits the number of files. */
export const EXTENT_BYTES = 1_048_576;

export interface SpoolSettings {
  /** The folder for the files, which are unlinked immediately. */
  readonly dir: string;
  /** Maximum total size in bytes of this process' files; one party may use half of it. */
  readonly bytes: number;
  /** Called when the disk refuses a write, but not again until a write has succeeded. */
  readonly onFault: (error: unknown) => void;
}

export interface SpoolStats {
  readonly bytes: number;
  /** `answers` is the number of answers spooled now, `spooled` the number since the start. */
  readonly answers: number;
  readonly spooled: number;
}

/** Disk space for rows that slow readers have not taken yet, limited in total and per party. */
export class SpoolRoom {
  readonly #settings: SpoolSettings;
  readonly #byParty = new Map<FairShareParty, number>();
  #bytes = 0;
  #answers = 0;
  #spooled = 0;
  #failing = false;

  constructor(settings: SpoolSettings) {
    this.#settings = settings;
    mkdirSync(settings.dir, { recursive: true, mode: 0o700 });
    removeLeftovers(settings.dir);
  }

  stats(): SpoolStats {
    return { bytes: this.#bytes, answers: this.#answers, spooled: this.#spooled };
  }

  /** Allocates an extent for `party`; returns false if the total, or the half that one party may use, is exhausted. */
  take(party: FairShareParty): boolean {
    const { bytes } = this.#settings;
    const held = this.#byParty.get(party) ?? 0;
    if (this.#bytes + EXTENT_BYTES > bytes || 2 * (held + EXTENT_BYTES) > bytes) return false;
    this.#bytes += EXTENT_BYTES;
    this.#byParty.set(party, held + EXTENT_BYTES);
    return true;
  }

  giveBack(party: FairShareParty, extents: number): void {
    const bytes = extents * EXTENT_BYTES;
    this.#bytes -= bytes;
    const remaining = (this.#byParty.get(party) ?? 0) - bytes;
    if (remaining > 0) this.#byParty.set(party, remaining);
    else this.#byParty.delete(party);
  }

  /** Opens a file and unlinks it, so that it disappears with its handle or the process. */
  async open(): Promise<FileHandle> {
    const path = join(this.#settings.dir, randomUUID());
    const file = await open(path, 'wx+', 0o600);
    // Another process may have removed it while starting.
    await unlink(path).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
    this.#answers += 1;
    this.#spooled += 1;
    return file;
  }

  countClosed(): void {
    this.#answers -= 1;
  }

  /** Records the result of a write: its error, or null for success. */
  recordWrite(error: unknown): void {
    const failed = error !== null;
    if (failed && !this.#failing) this.#settings.onFault(error);
    this.#failing = failed;
  }
}

/** Removes the empty files of processes that were killed between creating a file and unlinking it. */
function removeLeftovers(dir: string): void {
  for (const name of readdirSync(dir)) rmSync(join(dir, name), { force: true });
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

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

/** Accounts for the memory of rows: `wait` before they are read from disk, `hold` if they are already in memory. */
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
  #nextNumber = 0;
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
      room.recordWrite(error);
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

  /** Takes the oldest rows, or waits for some; null at the end. @throws the disk's error, errors of `reader.wait` */
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
    const done = (): void => {
      this.#room.giveBack(this.#party, this.#extents);
      this.#room.countClosed();
    };
    this.#file.close().then(done, done);
  }

  /** Takes rows from memory. All rows on disk were taken before, so their space is free again. */
  #takeMemory(): readonly RowBatch[] {
    const rows = this.#memory;
    this.#memory = [];
    this.#memoryBytes = 0;
    this.#end = 0;
    this.#full = false;
    this.#wakeWriter();
    return rows;
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
        this.#room.recordWrite(null);
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
    this.#room.recordWrite(error);
  }

  #hasRoom(length: number): boolean {
    while (this.#end + length > this.#extents * EXTENT_BYTES) {
      if (!this.#room.take(this.#party)) return false;
      this.#extents += 1;
    }
    return true;
  }

  async #append(parts: readonly RowBatch[], length: number): Promise<void> {
    const number = this.#nextNumber;
    this.#nextNumber += 1;
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
      const size = Math.min(piece.length, length - done);
      const { bytesRead } = await this.#file.read(piece, 0, size, at + done);
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

  /** Truncates the file to release its disk space. Called only once all rows in it have been taken. */
  async #rewind(): Promise<void> {
    this.#end = 0;
    const freed = this.#extents - 1;
    if (freed === 0 || this.#closed) return;
    this.#extents = 1;
    const truncated = this.#file.truncate(0).then(
      () => undefined,
      (error: unknown) => this.#room.recordWrite(this.#closed ? null : error),
    );
    this.#writing = truncated.then(() => {
      this.#writing = null;
      this.#room.giveBack(this.#party, freed);
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

/** Returns the initial AES-CTR counter of a frame: frame number in the upper half, block number 0 in the lower. */
function vectorOf(number: number): Buffer {
  const vector = Buffer.alloc(16);
  vector.writeBigUInt64BE(BigInt(number), 0);
  return vector;
}
