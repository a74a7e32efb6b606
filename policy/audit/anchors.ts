import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE } from './checkpoint.js';
import { type WriteAt, writeFullyAsync } from './disk.js';
import type { Frontier } from './frontier.js';
import type { Signer } from './signer.js';

/** Writes signed checkpoints, one after another, each on disk when `write` resolves. */
export class Anchors {
  readonly #handle: FileHandle;
  readonly #signer: Signer;
  readonly #write: WriteAt;
  #position: number;
  #size: number;
  #last: Promise<void> = Promise.resolve();

  private constructor(handle: FileHandle, signer: Signer, write: WriteAt, position: number, size: number) {
    this.#handle = handle;
    this.#signer = signer;
    this.#write = write;
    this.#position = position;
    this.#size = size;
  }

  /** @param position length of the file in bytes; @param size tree size of the last checkpoint, -1 if none */
  static async open(
    dir: string,
    signer: Signer,
    write: WriteAt,
    position: number,
    size: number,
  ): Promise<Anchors> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC;
    return new Anchors(await open(join(dir, CHECKPOINTS_FILE), flags, 0o644), signer, write, position, size);
  }

  /** Tree size of the last checkpoint written. */
  get size(): number {
    return this.#size;
  }

  /** Signs the tree as it stands when the checkpoints before are written; nothing if it has not grown. */
  write(tree: Frontier): Promise<void> {
    this.#last = this.#last.then(() => this.#writeNote(tree));
    return this.#last;
  }

  /** Resolves when nothing is being written, well or not. */
  async settled(): Promise<void> {
    await this.#last.catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #writeNote(tree: Frontier): Promise<void> {
    const size = tree.size;
    if (size === this.#size) return;
    const note = Buffer.from(`${this.#signer.sign(size, tree.root(), new Date().toISOString())}\n`);
    await writeFullyAsync(this.#write, this.#handle.fd, note, this.#position);
    this.#position += note.length;
    this.#size = size;
  }
}
