import { constants } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, LATEST_FILE } from './checkpoint.js';
import { filled, syncDirectoryAsync, type WriteAt, writeFullyAsync } from './disk.js';
import type { NoteStore } from './store.js';

/** Checkpoints in files of the log's directory: those that stay in one, the newest alone in another. */
export class NoteFiles implements NoteStore {
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
export async function trimmed(dir: string, name: string, end: number): Promise<void> {
  const handle = await open(join(dir, name), 'a', 0o644);
  try {
    await handle.truncate(end);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectoryAsync(dir);
}
