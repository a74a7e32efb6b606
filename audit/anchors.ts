import type { Frontier, SignedState } from './frontier.js';
import type { Signer } from './signer.js';
import type { NoteStore } from './store.js';

/** Writes signed checkpoints, one after another, each durable when its promise resolves. */
export class Anchors {
  readonly #notes: NoteStore;
  readonly #signer: Signer;
  readonly #signed: (note: string) => void;
  #lasting: number;
  #newest: number;
  #last: Promise<void> = Promise.resolve();

  /** @param told hears each checkpoint once it is durable */
  constructor(notes: NoteStore, signer: Signer, signed: SignedState, told: (note: string) => void) {
    this.#notes = notes;
    this.#signer = signer;
    this.#signed = told;
    this.#lasting = signed.lasting;
    this.#newest = signed.newest;
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
    return this.#notes.close();
  }

  async #append(tree: Frontier): Promise<void> {
    const { size } = tree;
    if (size === this.#lasting) return;
    const note = this.#sign(tree);
    await this.#notes.append(Buffer.from(`${note}\n`), size);
    this.#lasting = size;
    this.#newest = size;
    this.#signed(note);
  }

  async #replace(tree: Frontier): Promise<void> {
    const { size } = tree;
    if (size === this.#newest) return;
    const note = this.#sign(tree);
    await this.#notes.replace(Buffer.from(`${note}\n`), size);
    this.#newest = size;
    this.#signed(note);
  }

  #sign(tree: Frontier): string {
    return this.#signer.sign(tree.size, tree.root(), new Date().toISOString());
  }
}
