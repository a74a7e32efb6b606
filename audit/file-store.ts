import { constants, write as writeAt } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, LATEST_FILE, PUBLIC_KEY_FILE, RETAINED_FILE } from './checkpoint.js';
import { filled, syncDirectoryAsync, type WriteAt, writeDurablyAsync, writeFullyAsync } from './disk.js';
import { AuditDamaged } from './errors.js';
import { keyName, segmentName, usedEnd } from './format.js';
import { readingFiles } from './readings.js';
import {
  beginningOf,
  type RecoveredLog,
  type RecoverOptions,
  recoverLog,
  signedSize,
  type Tail,
} from './recover.js';
import type { RetirementPlan } from './retention.js';
import { sealName } from './search/seal.js';
import { Sealer } from './search/sealer.js';
import { sealedBefore } from './search/seals.js';
import { Segments, SPARE_FILE } from './segments.js';
import type { Signer } from './signer.js';
import { directorySource, type LogSource } from './source.js';
import type { LogStore, NoteStore, ReadingQueue, SegmentStore } from './store.js';

/**
 * Copies segments into a directory of their writer below `archive`, which is a log by itself that ends where the kept
 * one begins: its last checkpoint is what was signed of that place. The keys of fingerprints stay behind. `archive` itself is
 * never made: where a mount is away, its place must not fill the disk below it.
 */
async function archived(dir: string, archive: string, segments: readonly number[]): Promise<void> {
  const key = await readFile(join(dir, PUBLIC_KEY_FILE));
  const writer = /^osl-audit\/([\w.-]+)\+/.exec(key.toString())?.[1] ?? 'unknown';
  const place = join(archive, writer);
  await stat(archive);
  await mkdir(place, { recursive: true, mode: 0o700 });
  for (const segment of segments)
    await copied(join(dir, segmentName(segment)), join(place, segmentName(segment)));
  await writeDurablyAsync(join(place, PUBLIC_KEY_FILE), key, 0o644);
  await writeDurablyAsync(join(place, CHECKPOINTS_FILE), await readFile(join(dir, RETAINED_FILE)), 0o644);
  await syncDirectoryAsync(place);
}

/** Whole or not at all, and on disk; a copy that is there already stays as it is. */
async function copied(from: string, to: string): Promise<void> {
  const there = await stat(to).catch(() => null);
  if (there !== null && there.size === (await stat(from)).size) return;
  await copyFile(from, `${to}.new`);
  const handle = await open(`${to}.new`, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${to}.new`, to);
}

const COPY_FILE = 'recover.tmp';

/** Segment files in a directory. */
export class FileStore implements LogStore {
  readonly source: LogSource;
  readonly readings: ReadingQueue;
  readonly #dir: string;
  readonly #segmentBytes: number;
  readonly #write: WriteAt;
  readonly #sealer: Sealer;

  constructor(dir: string, segmentBytes: number, write: WriteAt = writeAt) {
    this.source = directorySource(dir);
    this.readings = readingFiles(dir);
    this.#dir = dir;
    this.#sealer = new Sealer(dir);
    this.#segmentBytes = segmentBytes;
    this.#write = write;
  }

  async recover(signer: Signer, options: RecoverOptions = {}): Promise<RecoveredLog> {
    const { recovered, tail } = await this.#read(signer, options);
    await rm(join(this.#dir, SPARE_FILE), { force: true });
    const cut = tail === null ? null : await this.#secure(tail);
    await trimmed(this.#dir, CHECKPOINTS_FILE, recovered.signed.end);
    return { ...recovered, cut };
  }

  /** From the newest seal that a checkpoint vouches for; if that leads nowhere, from the first record on. */
  async #read(signer: Signer, options: RecoverOptions): ReturnType<typeof recoverLog> {
    if (options.base !== undefined) return recoverLog(this.source, signer, options);
    const size = await signedSize(this.source, signer);
    const { base: start } = await beginningOf(this.source, signer.verifier);
    const base = await sealedBefore(this.#dir, start.segment + 1, size);
    if (base === null) return recoverLog(this.source, signer, options);
    try {
      return await recoverLog(this.source, signer, { ...options, base });
    } catch (error) {
      if (!(error instanceof AuditDamaged)) throw error;
      return recoverLog(this.source, signer, options);
    }
  }

  segments({ segment }: RecoveredLog): SegmentStore {
    return new Segments(this.#dir, this.#segmentBytes, segment, this.#write);
  }

  notes(signed: number): Promise<NoteStore> {
    return NoteFiles.open(this.#dir, this.#write, signed);
  }

  rotated(): void {
    this.#sealer.soon();
  }

  async retain(note: Buffer): Promise<void> {
    await writeDurablyAsync(join(this.#dir, RETAINED_FILE), note, 0o644);
    await syncDirectoryAsync(this.#dir);
  }

  /** Deletes released segments; leftovers of a process that was killed here go with the next ones. */
  async release({ base }: RetirementPlan, archive: string | null): Promise<void> {
    const gone = (await this.source.segments()).filter((segment) => segment <= base.segment);
    if (archive !== null) await archived(this.#dir, archive, gone);
    for (const segment of gone)
      for (const name of [segmentName(segment), keyName(segment), sealName(segment)])
        await rm(join(this.#dir, name), { force: true });
    await syncDirectoryAsync(this.#dir);
  }

  async close(): Promise<void> {
    await this.#sealer.close();
  }

  /**
   * Puts the valid part of the last segment on disk, without the torn tail. The page cache may show what a failed
   * or interrupted sync never wrote, so the part is written anew, not merely synced; that also cuts off a
   * write of a killed process that is still under way. A segment without unused room was closed in order.
   */
  async #secure({ segment, bytes, end }: Tail): Promise<string | null> {
    if (end === bytes.length) return null;
    const copy = join(this.#dir, COPY_FILE);
    await writeDurablyAsync(copy, bytes.subarray(0, end), 0o600);
    await rename(copy, join(this.#dir, segmentName(segment)));
    await syncDirectoryAsync(this.#dir);
    const torn = usedEnd(bytes) - end;
    return torn > 0 ? `${segmentName(segment)}:${end}+${torn}` : null;
  }
}

/** Checkpoints in files of the log's directory: those that stay in one, the newest alone in another. */
class NoteFiles implements NoteStore {
  readonly #dir: string;
  readonly #handle: FileHandle;
  readonly #write: WriteAt;
  #position: number;

  private constructor(dir: string, handle: FileHandle, write: WriteAt, position: number) {
    this.#dir = dir;
    this.#handle = handle;
    this.#write = write;
    this.#position = position;
  }

  /** @param end length of the file of those that stay, in bytes */
  static async open(dir: string, write: WriteAt, end: number): Promise<NoteFiles> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC;
    const handle = await open(join(dir, CHECKPOINTS_FILE), flags, 0o644);
    return new NoteFiles(dir, handle, write, end);
  }

  async append(note: Buffer): Promise<void> {
    await writeFullyAsync(this.#write, this.#handle.fd, note, this.#position);
    this.#position += note.length;
  }

  async replace(note: Buffer): Promise<void> {
    const path = join(this.#dir, LATEST_FILE);
    await filled(`${path}.new`, 0o644, ({ fd }) => writeFullyAsync(this.#write, fd, note, 0));
    await rename(`${path}.new`, path);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/** Cuts a file of notes to its whole ones. */
async function trimmed(dir: string, name: string, end: number): Promise<void> {
  const handle = await open(join(dir, name), 'a', 0o644);
  try {
    await handle.truncate(end);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectoryAsync(dir);
}
