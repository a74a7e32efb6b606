import { constants } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, LATEST_FILE } from './checkpoint.js';
import { filled, type WriteAt, writeFullyAsync } from './disk.js';
import type { Frontier } from './frontier.js';
import type { Signer } from './signer.js';

/** What is signed already. */
export interface Signed {
  /** Length of the file `checkpoints` in bytes. */
  readonly end: number;
  /** Tree size of the last checkpoint there, -1 if none. */
  readonly lasting: number;
  /** Tree size of the newest one anywhere, -1 if none. */
  readonly newest: number;
}

/** Writes signed checkpoints, one after another, each on disk when its promise resolves. */
export class Anchors {
  readonly #dir: string;
  readonly #handle: FileHandle;
  readonly #signer: Signer;
  readonly #write: WriteAt;
  #position: number;
  #lasting: number;
  #newest: number;
  #last: Promise<void> = Promise.resolve();

  private constructor(dir: string, handle: FileHandle, signer: Signer, write: WriteAt, signed: Signed) {
    this.#dir = dir;
    this.#handle = handle;
    this.#signer = signer;
    this.#write = write;
    this.#position = signed.end;
    this.#lasting = signed.lasting;
    this.#newest = signed.newest;
  }

  static async open(dir: string, signer: Signer, write: WriteAt, signed: Signed): Promise<Anchors> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC;
    const handle = await open(join(dir, CHECKPOINTS_FILE), flags, 0o644);
    return new Anchors(dir, handle, signer, write, signed);
  }

  /** Tree size of the newest checkpoint written. */
  get size(): number {
    return this.#newest;
  }

  /** Tree size of the last one that stays. */
  get lasting(): number {
    return this.#lasting;
  }

  /** Signs, to stay, the tree as it stands when the checkpoints before are written; nothing if it has not grown. */
  write(tree: Frontier): Promise<void> {
    this.#last = this.#last.then(() => this.#append(tree));
    return this.#last;
  }

  /** Signs the tree in the place of the newest checkpoint: a file of all seconds would outgrow the log of a quiet day. */
  renew(tree: Frontier): Promise<void> {
    this.#last = this.#last.then(() => this.#replace(tree));
    return this.#last;
  }

  /** Resolves when nothing is being written, well or not. */
  async settled(): Promise<void> {
    await this.#last.catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #append(tree: Frontier): Promise<void> {
    const { size } = tree;
    if (size === this.#lasting) return;
    const note = this.#sign(tree);
    await writeFullyAsync(this.#write, this.#handle.fd, note, this.#position);
    this.#position += note.length;
    this.#lasting = size;
    this.#newest = size;
  }

  async #replace(tree: Frontier): Promise<void> {
    const { size } = tree;
    if (size === this.#newest) return;
    const path = join(this.#dir, LATEST_FILE);
    const note = this.#sign(tree);
    await filled(`${path}.new`, 0o644, ({ fd }) => writeFullyAsync(this.#write, fd, note, 0));
    await rename(`${path}.new`, path);
    this.#newest = size;
  }

  #sign(tree: Frontier): Buffer {
    return Buffer.from(`${this.#signer.sign(tree.size, tree.root(), new Date().toISOString())}\n`);
  }
}
