import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FairShareParty } from '../fair-share.js';

/** Bytes that a spool allocates at a time: as many files as there are extents may be open. */
export const EXTENT_BYTES = 1_048_576;

export interface SpoolSettings {
  /** Folder of the files until they are unlinked, which is at once. */
  readonly dir: string;
  /** Bytes that all files of this process may hold, and those of one party half of it. */
  readonly bytes: number;
  /** The disk takes nothing more; heard once until it does again. For the operator. */
  readonly onFault: (error: unknown) => void;
}

/** Allocated bytes. */
export interface SpoolStats {
  readonly bytes: number;
  /** Answers that are kept there now, and that were since the start. */
  readonly answers: number;
  readonly spooled: number;
}

/** Disk space for rows that slow readers have not taken yet: bounded as a whole and for each party. */
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

  /** Takes one extent for `party`; false where there is none left. */
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

  /** A new file, which has no name any more: it ends with its handle, and so with the process. */
  async open(): Promise<FileHandle> {
    const path = join(this.#settings.dir, randomUUID());
    const file = await open(path, 'wx+', 0o600);
    // Another process that has just begun may have swept it away.
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

  /** Result of the last write. */
  wrote(error: unknown): void {
    const failed = error !== null;
    if (failed && !this.#failing) this.#settings.onFault(error);
    this.#failing = failed;
  }
}

/** Files of processes that were killed between the two steps of `open`: they are empty. */
function sweep(dir: string): void {
  for (const name of readdirSync(dir)) rmSync(join(dir, name), { force: true });
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
