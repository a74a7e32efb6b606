import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FairShareParty } from '../fair-share.js';

/** Allocation unit of a spool; the number of units bounds the number of open files. */
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
  /** Number of answers spooled now, and since the start. */
  readonly answers: number;
  readonly spooled: number;
}

/** Disk space for rows that slow readers have not taken yet, limited in total and per party. */
export class SpoolRoom {
  readonly #settings: SpoolSettings;
  readonly #of = new Map<FairShareParty, number>();
  #taken = 0;
  #answers = 0;
  #spooled = 0;
  #failing = false;

  constructor(settings: SpoolSettings) {
    this.#settings = settings;
    mkdirSync(settings.dir, { recursive: true, mode: 0o700 });
    sweep(settings.dir);
  }

  stats(): SpoolStats {
    return { bytes: this.#taken, answers: this.#answers, spooled: this.#spooled };
  }

  /** Allocates an extent for `party`; returns false if none is left. */
  take(party: FairShareParty): boolean {
    const { bytes } = this.#settings;
    const own = this.#of.get(party) ?? 0;
    if (this.#taken + EXTENT_BYTES > bytes || 2 * (own + EXTENT_BYTES) > bytes) return false;
    this.#taken += EXTENT_BYTES;
    this.#of.set(party, own + EXTENT_BYTES);
    return true;
  }

  giveBack(party: FairShareParty, extents: number): void {
    const bytes = extents * EXTENT_BYTES;
    this.#taken -= bytes;
    const left = (this.#of.get(party) ?? 0) - bytes;
    if (left > 0) this.#of.set(party, left);
    else this.#of.delete(party);
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

  closed(): void {
    this.#answers -= 1;
  }

  /** Reports the result of a write; null for success. */
  wrote(error: unknown): void {
    const failed = error !== null;
    if (failed && !this.#failing) this.#settings.onFault(error);
    this.#failing = failed;
  }
}

/** Removes the empty files of processes that were killed between creating and unlinking. */
function sweep(dir: string): void {
  for (const name of readdirSync(dir)) rmSync(join(dir, name), { force: true });
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
