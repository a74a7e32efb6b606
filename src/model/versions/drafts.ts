import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOf, namesIn, removeWhole, writeWhole } from '../../base/files.js';

/** A fragment that is stored until it is published. */
export interface StoredDraft {
  /** Hash of the text: drafts with the same text are the same draft. */
  readonly id: string;
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  readonly text: string;
  /** True if it was sent as YAML, so that positions in it are meaningful to the author. */
  readonly placed: boolean;
  /** Latest validation; null if it failed or never took place. */
  readonly validated: Validation | null;
}

interface Validation {
  readonly at: string;
  readonly by: string;
  readonly manifest: string;
  readonly policy: string;
}

/** Maximum number of drafts; once it is reached, new ones are refused until some are discarded. */
export const MAX_DRAFTS = 500;

/** Stores drafts in one file each. They are not served; losing a draft loses only its author's work. */
export class Drafts {
  readonly #dir: string;
  readonly #drafts: Map<string, StoredDraft>;
  readonly #changed: DraftChangeListener;

  private constructor(dir: string, drafts: Map<string, StoredDraft>, changed: DraftChangeListener) {
    this.#dir = dir;
    this.#drafts = drafts;
    this.#changed = changed;
  }

  /** Reads all drafts; other files are ignored. */
  static async open(dir: string, changed: DraftChangeListener = async () => undefined): Promise<Drafts> {
    const drafts = new Map<string, StoredDraft>();
    for (const name of [...(await namesIn(dir))].sort()) {
      const id = name.replace(/\.json$/, '');
      const draft = await draftIn(dir, id);
      if (draft !== null) drafts.set(id, draft);
    }
    return new Drafts(dir, drafts, changed);
  }

  get size(): number {
    return this.#drafts.size;
  }

  /** All drafts, oldest first. */
  all(): readonly StoredDraft[] {
    return [...this.#drafts.values()].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  }

  get(id: string): StoredDraft | null {
    return this.#drafts.get(id) ?? null;
  }

  async put(draft: StoredDraft): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await writeWhole(this.#fileOf(draft.id), Buffer.from(`${JSON.stringify(draft)}\n`));
    this.#drafts.set(draft.id, Object.freeze(draft));
    await this.#changed(draft.id);
  }

  async discard(id: string): Promise<void> {
    await removeWhole(this.#fileOf(id));
    this.#drafts.delete(id);
    await this.#changed(id);
  }

  /** Reloads a draft that another process has changed on disk. */
  async renew(id: string): Promise<void> {
    const draft = await draftIn(this.#dir, id);
    if (draft === null) this.#drafts.delete(id);
    else this.#drafts.set(id, draft);
  }

  /** INVARIANT: ids are generated here, so that no external name becomes part of a path. */
  #fileOf(id: string): string {
    if (!isDraftId(id)) throw new TypeError('no id of a draft');
    return join(this.#dir, `${id}.json`);
  }
}

/** Called after a draft has changed on disk. */
export type DraftChangeListener = (id: string) => Promise<void>;

async function draftIn(dir: string, id: string): Promise<StoredDraft | null> {
  const bytes = isDraftId(id) ? await bytesOf(join(dir, `${id}.json`)) : null;
  if (bytes === null) return null;
  const draft = JSON.parse(bytes.toString('utf8')) as StoredDraft; // our own file, checked by the hash in its name
  return draftId(draft.text) === id ? Object.freeze(draft) : null;
}

export function draftId(text: string): string {
  return `draft-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

function isDraftId(text: string): boolean {
  return /^draft-[0-9a-f]{32}$/.test(text);
}
