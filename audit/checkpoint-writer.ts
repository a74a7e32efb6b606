import type { AuditSync } from './checkpoint.js';
import type { Frontier, SignedState } from './frontier.js';
import type { Signer } from './signer.js';
import type { NoteStore } from './store.js';

/** Signs and writes checkpoints one after another; each is durable when its promise resolves. */
export class CheckpointWriter {
  readonly #notes: NoteStore;
  readonly #signer: Signer;
  readonly #signed: (note: string) => void;
  /** Extension lines of each checkpoint: `sync kernel`, or empty with `sync: 'disk'`. */
  readonly #extension: string;
  #lasting: number;
  #newest: number;
  #last: Promise<void> = Promise.resolve();

  /** @param stored callback invoked with each checkpoint once it is durable */
  constructor(
    notes: NoteStore,
    signer: Signer,
    signed: SignedState,
    sync: AuditSync,
    stored: (note: string) => void,
  ) {
    this.#extension = sync === 'kernel' ? 'sync kernel\n' : '';
    this.#notes = notes;
    this.#signer = signer;
    this.#signed = stored;
    this.#lasting = signed.lasting;
    this.#newest = signed.newest;
  }

  get size(): number {
    return this.#newest;
  }

  /** Tree size of the last permanent checkpoint; -1 if there is none. */
  get lasting(): number {
    return this.#lasting;
  }

  /**
   * Writes a permanent checkpoint after all earlier checkpoints are written; does nothing if the tree has not grown
   * since the last permanent one. The records of the tree must be on disk.
   */
  write(tree: Frontier): Promise<void> {
    return this.#enqueue('append', tree);
  }

  /** Replaces the newest checkpoint. Adding one every second would take more space than the records of a quiet log. */
  renew(tree: Frontier): Promise<void> {
    return this.#enqueue('replace', tree);
  }

  /** Signs a tree without storing the checkpoint. INVARIANT: all records of the tree are on disk. */
  sign(size: number, root: Buffer): string {
    return this.#signer.sign(size, root, new Date().toISOString(), this.#extension);
  }

  /** Waits for the checkpoints being written. Never rejects. */
  async settled(): Promise<void> {
    await this.#last.catch(() => undefined);
  }

  close(): Promise<void> {
    return this.#notes.close();
  }

  #enqueue(kind: 'append' | 'replace', tree: Frontier): Promise<void> {
    this.#last = this.#last.then(() => this.#store(kind, tree));
    return this.#last;
  }

  async #store(kind: 'append' | 'replace', tree: Frontier): Promise<void> {
    const { size } = tree;
    if (size === (kind === 'append' ? this.#lasting : this.#newest)) return;
    const note = this.sign(size, tree.root());
    await this.#notes[kind](Buffer.from(`${note}\n`), size);
    if (kind === 'append') this.#lasting = size;
    this.#newest = size;
    this.#signed(note);
  }
}
