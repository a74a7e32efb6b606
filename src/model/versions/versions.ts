import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOf, namesIn, removeWhole, writeWhole } from '../../base/files.js';
import { isObject } from '../../base/is-object.js';
import { Serial } from '../../base/serial.js';
import type { ManifestChange, RoleChange } from '../authoring/index.js';
import type { Overlay } from '../manifest/index.js';
import type { ServedModel } from '../served-model.js';

/** The published version or its history was altered or is incomplete. */
export class PublishedDamaged extends Error {
  override readonly name = 'PublishedDamaged';
}

/**
 * Stores published versions in one directory: `versions/<id>.json`, and `head`, which names the newest version. A
 * version is on disk before `head` names it, and `head` is replaced atomically, so after a crash either the old or the
 * new version is published.
 */
export class VersionStore {
  readonly #dir: string;
  /** Versions, oldest first. */
  readonly #history: VersionSummary[];
  #head: Version | null;
  /** True if, after a failed write, it is unknown which version `head` names; no more versions are then published. */
  #broken = false;

  private constructor(dir: string, history: VersionSummary[], head: Version | null) {
    this.#dir = dir;
    this.#history = history;
    this.#head = head;
  }

  /**
   * Reads the history starting from its head, and checks every version against its id. Writes nothing.
   *
   * @throws PublishedDamaged
   */
  static async open(dir: string): Promise<VersionStore> {
    const head = await headIn(dir);
    const history: VersionSummary[] = [];
    for (let at = head; at !== null; at = at.parent === null ? null : await versionIn(dir, at.parent)) {
      const above = history.at(-1);
      if (above !== undefined && at.number !== above.number - 1) throw damaged(dir, `version ${at.id}`);
      history.push(summaryOf(at));
    }
    if (head !== null && history.at(-1)?.number !== 1) throw damaged(dir, `version ${head.id}`);
    return new VersionStore(dir, history.reverse(), head);
  }

  get head(): Version | null {
    return this.#head;
  }

  get history(): readonly VersionSummary[] {
    return this.#history;
  }

  /** Returns the first version for which `is` returns true; null if the history has none. @throws PublishedDamaged */
  async find(is: (version: VersionSummary) => boolean): Promise<Version | null> {
    const found = this.#history.find(is);
    if (found === undefined) return null;
    return found.id === this.#head?.id ? this.#head : versionIn(this.#dir, found.id);
  }

  /** Returns a version in the history with its file's bytes. @throws PublishedDamaged if it is missing or altered */
  async sealed(number: number): Promise<SharedVersion> {
    const { id, parent } = this.#history[number - 1] ?? { id: '', parent: null };
    const bytes = isVersionId(id) ? await bytesOf(fileOf(this.#dir, id)) : null;
    if (bytes === null || unseal(id, bytes) === null) throw damaged(this.#dir, `version ${id}`);
    return { number, id, parent, bytes };
  }

  /** Creates the next version from `content`, without writing it. */
  next(content: NewVersion): VersionFile {
    const [version, bytes] = seal(content, this.#head);
    return { version, bytes };
  }

  /**
   * Publishes a version.
   * @throws the system's error, after which the previous version stays published unless the state of `head` is unknown;
   * then PublishedDamaged for each further version
   */
  async append({ version, bytes }: VersionFile): Promise<VersionSummary> {
    if (this.#broken)
      throw new PublishedDamaged('an earlier version could not be written: start the server anew');
    if (version.parent !== (this.#head?.id ?? null)) throw new TypeError('it is not the next version');
    await mkdir(join(this.#dir, VERSIONS), { recursive: true, mode: 0o700 });
    await writeWhole(fileOf(this.#dir, version.id), bytes);
    try {
      await writeWhole(join(this.#dir, HEAD), Buffer.from(`${version.id}\n`));
    } catch (error) {
      this.#broken = true;
      throw error;
    }
    const summary = summaryOf(version);
    this.#head = version;
    this.#history.push(summary);
    return summary;
  }

  /** Reads versions that another process has published. @throws PublishedDamaged */
  async renew(): Promise<void> {
    const known = this.#head?.id ?? null;
    const head = await headIn(this.#dir);
    const newer: VersionSummary[] = [];
    for (let at = head; at !== null && at.id !== known; ) {
      newer.push(summaryOf(at));
      if (at.parent === null && known !== null) throw damaged(this.#dir, `version ${known}`);
      at = at.parent === null || at.parent === known ? null : await versionIn(this.#dir, at.parent);
    }
    this.#head = head;
    this.#history.push(...newer.reverse());
  }

  /** Removes files that are not in the history, left by processes that died. Only the directory's owner may do this. */
  async sweep(): Promise<void> {
    const known = new Set(this.#history.map((v) => `${v.id}.json`));
    const dir = join(this.#dir, VERSIONS);
    for (const name of await namesIn(dir)) if (!known.has(name)) await rm(join(dir, name), { force: true });
  }
}

export interface VersionFile {
  readonly version: Version;
  readonly bytes: Buffer;
}

/** A version in the form that gateways exchange. */
interface SharedVersion {
  readonly number: number;
  readonly id: string;
  readonly parent: string | null;
  readonly bytes: Buffer;
}

/**
 * Writes versions that another gateway has published, oldest first, and makes the last one the head. Processes that
 * have the directory open see them after `renew`.
 *
 * @throws PublishedDamaged if the bytes of a version do not match its id, number or parent; the head is then unchanged
 */
export async function writeVersions(dir: string, versions: readonly SharedVersion[]): Promise<void> {
  await mkdir(join(dir, VERSIONS), { recursive: true, mode: 0o700 });
  for (const { id, number, parent, bytes } of versions) {
    const version = isVersionId(id) ? unseal(id, bytes) : null;
    if (version === null || version.number !== number || version.parent !== parent)
      throw new PublishedDamaged(`version ${number} in the control database is not what was published`);
    await writeWhole(fileOf(dir, id), bytes);
  }
  const head = versions.at(-1);
  if (head !== undefined) await writeWhole(join(dir, HEAD), Buffer.from(`${head.id}\n`));
}

const HEAD = 'head';
const VERSIONS = 'versions';

/** Returns the published version in a directory; null if nothing is published there. @throws PublishedDamaged */
export async function headIn(dir: string): Promise<Version | null> {
  const bytes = await bytesOf(join(dir, HEAD));
  if (bytes === null) return null;
  return versionIn(dir, bytes.toString('utf8').trim());
}

async function versionIn(dir: string, id: string): Promise<Version> {
  const bytes = isVersionId(id) ? await bytesOf(fileOf(dir, id)) : null;
  const version = bytes === null ? null : unseal(id, bytes);
  if (version === null) throw damaged(dir, `version ${id.slice(0, 64)}`);
  return version;
}

function fileOf(dir: string, id: string): string {
  return join(dir, VERSIONS, `${id}.json`);
}

function damaged(dir: string, what: string): PublishedDamaged {
  return new PublishedDamaged(
    `${what} in ${dir} is missing or is not what was written: restore the directory, or remove it to serve the manifest file alone`,
  );
}

/**
 * A published state, with its author and origin. It is written once and never changed. Its id is the hash of the bytes
 * of its file, and `parent` names the previous version.
 */
export interface Version extends Overlay {
  /** SHA-256 of the bytes of its file, in hex. */
  readonly id: string;
  /** Sequence number, starting at 1. */
  readonly number: number;
  /** Id of the previous version; null for the first. */
  readonly parent: string | null;
  /** Time of publication: RFC 3339, in UTC. */
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  readonly request_id: string;
  readonly action: 'publish' | 'deprecate' | 'withdraw' | 'rollback';
  /** The draft that was published; null if there was none. */
  readonly draft: string | null;
  /** Number of the version that a rollback restores; 0 stands for the manifest file alone. Null for other actions. */
  readonly restores: number | null;
  /** Versions of the manifest file (`base`), and of the manifest and policy that were served with this version. */
  readonly base: string;
  readonly manifest: string;
  readonly policy: string;
  /** Changes to the manifest, and to the roles' access, as shown to the author. */
  readonly changes: readonly ManifestChange[];
  readonly access: readonly RoleChange[];
}

export type NewVersion = Omit<Version, 'id' | 'number' | 'parent'>;

/** A version as shown in lists. */
export type VersionSummary = Omit<Version, 'objects' | 'over' | 'changes' | 'access'>;

function summaryOf(version: Version): VersionSummary {
  const { objects: _, over: __, changes: ___, access: ____, ...summary } = version;
  return Object.freeze(summary);
}

/** Creates a new version with the bytes of its file, whose hash is its id. */
function seal(content: NewVersion, parent: VersionSummary | null): readonly [Version, Buffer] {
  const numbered = { number: (parent?.number ?? 0) + 1, parent: parent?.id ?? null, ...content };
  const bytes = Buffer.from(`${JSON.stringify({ format: FORMAT, ...numbered })}\n`);
  return [Object.freeze({ id: idOf(bytes), ...numbered }), bytes];
}

const FORMAT = 1;

/** Decodes a version from its file's bytes; null if they do not match `id` or have an unknown format. */
export function unseal(id: string, bytes: Buffer): Version | null {
  if (idOf(bytes) !== id) return null;
  // The hash proves that these bytes are what we wrote.
  const { format, ...content } = JSON.parse(bytes.toString('utf8'), withoutPrototype) as {
    format: unknown;
  } & Omit<Version, 'id'>;
  return format === FORMAT ? Object.freeze({ id, ...content }) : null;
}

/** JSON reviver that removes prototypes, as in documents, so that `__proto__` is an ordinary name. */
function withoutPrototype(_: string, value: unknown): unknown {
  return isObject(value) ? Object.assign(Object.create(null), value) : value;
}

function isVersionId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

function idOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export interface PublicationStore {
  readonly versions: VersionStore;
  readonly drafts: Drafts;
  /** Runs `work` after all earlier changes and reloads; nothing else changes while it runs. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Publishes to all other gateways, if there are any: `outdated` if one of them has published in the meantime or
   * serves a different policy; `unavailable` if they cannot be reached.
   */
  share(sealed: VersionFile): Promise<'shared' | 'outdated' | 'unavailable'>;
  /**
   * Replaces the served model; running queries keep the old one. Resolves once the change has been passed to lineage;
   * never rejects.
   */
  serve(model: ServedModel): Promise<void>;
}

/** Opens the published versions and drafts of `dir`. @throws PublishedDamaged */
export async function createPublishing(
  dir: string,
  {
    sweeps,
    alone,
    draftChanged,
    ...served
  }: {
    /** True if this process removes leftover files from the directory. */
    readonly sweeps: boolean;
    /** Runs `work` while no other process can change anything. */
    readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
    readonly draftChanged: DraftChangeListener;
    readonly share: PublicationStore['share'];
    readonly serve: (model: ServedModel) => Promise<void>;
  },
): Promise<PublicationStore> {
  const versions = await VersionStore.open(dir);
  if (sweeps) await versions.sweep();
  const drafts = await Drafts.open(join(dir, 'drafts'), draftChanged);
  const changes = new Serial();
  return Object.freeze({
    versions,
    drafts,
    exclusively: <T>(work: () => Promise<T>) => changes.run(() => alone(work)),
    ...served,
  });
}

/** A fragment that is stored until it is published. */
export interface StoredDraft {
  /** Hash of the text: drafts with the same text are the same draft. */
  readonly id: string;
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  readonly text: string;
  /** True if the draft was sent as YAML, so that lines and columns in `text` mean something to its author. */
  readonly placed: boolean;
  /** Latest validation; null if it failed or if the draft was never validated. */
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
type DraftChangeListener = (id: string) => Promise<void>;

async function draftIn(dir: string, id: string): Promise<StoredDraft | null> {
  const bytes = isDraftId(id) ? await bytesOf(join(dir, `${id}.json`)) : null;
  if (bytes === null) return null;
  let draft: unknown;
  try {
    draft = JSON.parse(bytes.toString('utf8'));
  } catch {
    return null; // damaged, or not written here
  }
  // Cast: the hash in its name shows that the file is our own.
  return isObject(draft) && draftId(String(draft['text'])) === id
    ? Object.freeze(draft as unknown as StoredDraft)
    : null;
}

export function draftId(text: string): string {
  return `draft-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

function isDraftId(text: string): boolean {
  return /^draft-[0-9a-f]{32}$/.test(text);
}
