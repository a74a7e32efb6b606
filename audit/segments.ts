import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import {
  filled,
  syncDirectoryAsync,
  type WriteAt,
  writeDurablyAsync,
  writeFully,
  writeFullyAsync,
} from './disk.js';
import { Fingerprints } from './fingerprint.js';
import { encodeHeader, keyName, type SegmentHeader, segmentName } from './format.js';
import type { SegmentStore } from './store.js';

export const SPARE_FILE = 'spare.tmp';
const ZEROS = Buffer.alloc(1024 * 1024);

/** Keeps the key of a segment's fingerprints. */
export function keepSegmentKey(dir: string, segment: number, key: Uint8Array): Promise<void> {
  return writeDurablyAsync(join(dir, keyName(segment)), key, 0o600);
}

/**
 * The segment being written, and the spare that follows it. Segments are filled with zeros and synced beforehand
 * and opened with O_DSYNC, so a write changes neither size nor block map and is durable when it returns: that is
 * cheaper than append and fdatasync (0.14 against 0.22 ms).
 */
export class Segments implements SegmentStore {
  readonly #dir: string;
  readonly #bytes: number;
  readonly #write: WriteAt;
  #handle: FileHandle | null = null;
  #spare: Promise<void> | null = null;
  #number: number;
  #position = 0;
  #start = 0;
  #fingerprints: Fingerprints | null = null;

  /** @param last number of the last segment there is, 0 if none */
  constructor(dir: string, bytes: number, last: number, write: WriteAt) {
    this.#dir = dir;
    this.#bytes = bytes;
    this.#number = last;
    this.#write = write;
  }

  get number(): number {
    return this.#number;
  }

  /** True if a group of `length` bytes belongs into the current segment; a group larger than one gets its own. */
  fits(length: number): boolean {
    return this.#position === this.#start || this.#position + length <= this.#bytes;
  }

  /** Makes the next segment the current one; the caller has nothing in flight. */
  async begin(header: Omit<SegmentHeader, 'segment'>): Promise<void> {
    const number = this.#number + 1;
    await (this.#spare ?? this.#makeSpare());
    this.#spare = null;
    const key = randomBytes(32);
    await keepSegmentKey(this.#dir, number, key);
    const path = join(this.#dir, segmentName(number));
    // INVARIANT: a segment appears under its name only with its header on disk, so no header is ever torn.
    if (existsSync(path)) throw new Error(`${path} exists already`);
    const handle = await open(join(this.#dir, SPARE_FILE), constants.O_RDWR | constants.O_DSYNC);
    const line = encodeHeader({ ...header, segment: number });
    await writeFullyAsync(this.#write, handle.fd, line, 0);
    await rename(join(this.#dir, SPARE_FILE), path);
    await syncDirectoryAsync(this.#dir);
    await this.#closeCurrent();
    this.#handle = handle;
    this.#number = number;
    this.#start = line.length;
    this.#position = line.length;
    this.#fingerprints = new Fingerprints(key);
  }

  /** Appends one group; durable when `done` is called without an error. */
  append(group: Buffer, length: number, done: (error: Error | null) => void): void {
    const handle = this.#handle;
    if (!handle) throw new Error('no segment is open');
    writeFully(this.#write, handle.fd, group, length, this.#position, (error) => {
      if (!error) this.#position += length;
      done(error);
    });
    if (!this.#spare && this.#position + length > this.#bytes / 2) this.#prepareSpare();
  }

  /** Keyed fingerprint `<segment>.<base64url of HMAC-SHA-256>`. */
  fingerprint(text: string): string {
    return `${this.#number}.${this.#keyed().of(text)}`;
  }

  fingerprintOf(bytes: Uint8Array, start: number, end: number): string {
    return `${this.#number}.${this.#keyed().ofBytes(bytes, start, end)}`;
  }

  #keyed(): Fingerprints {
    if (!this.#fingerprints) throw new Error('no segment is open');
    return this.#fingerprints;
  }

  /** Gives the unused room of the current segment back and closes it; waits for a spare in the making. */
  async finish(): Promise<void> {
    await this.#closeCurrent();
    await this.#spare?.catch(() => undefined);
  }

  /** Closes without touching the segment: what a failed log left is for recovery to judge. */
  async abandon(): Promise<void> {
    await this.#spare?.catch(() => undefined);
    await this.#handle?.close();
    this.#handle = null;
  }

  async #closeCurrent(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (!handle) return;
    await handle.truncate(this.#position);
    await handle.sync();
    await handle.close();
  }

  #prepareSpare(): void {
    this.#spare = this.#makeSpare();
    // The error counts when the spare is needed; `begin` awaits the same promise.
    this.#spare.catch(() => undefined);
  }

  #makeSpare(): Promise<void> {
    return filled(join(this.#dir, SPARE_FILE), 0o600, async ({ fd }) => {
      for (let at = 0; at < this.#bytes; at += ZEROS.length) {
        const part = ZEROS.subarray(0, Math.min(ZEROS.length, this.#bytes - at));
        await writeFullyAsync(this.#write, fd, part, at);
      }
    });
  }
}
