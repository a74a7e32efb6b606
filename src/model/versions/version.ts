import { createHash } from 'node:crypto';
import { isObject } from '../../base/is-object.js';
import type { ManifestChange, RoleChange } from '../authoring/index.js';
import type { Overlay } from '../manifest/index.js';

/**
 * A published state, and how it came about. It is written once and never changed: its id is the hash of its bytes,
 * and it names its predecessor.
 */
export interface Version extends Overlay {
  /** SHA-256 over the bytes of its file, in hex. */
  readonly id: string;
  /** From 1. */
  readonly number: number;
  /** Id of its predecessor; null for the first. */
  readonly parent: string | null;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  /** Request id in the audit log. */
  readonly request_id: string;
  readonly action: 'publish' | 'deprecate' | 'withdraw' | 'rollback';
  /** Draft that was published; null if there was none. */
  readonly draft: string | null;
  /** Number of the version that a rollback restores; 0 is the manifest file alone. Null for other actions. */
  readonly restores: number | null;
  /** Versions of the manifest file, and of the manifest and policy that served with it. */
  readonly base: string;
  readonly manifest: string;
  readonly policy: string;
  /** Changes of the manifest and of access, as shown to the author. */
  readonly changes: readonly ManifestChange[];
  readonly access: readonly RoleChange[];
}

export type NewVersion = Omit<Version, 'id' | 'number' | 'parent'>;

/** A version as shown in lists. */
export type VersionSummary = Omit<Version, 'objects' | 'over' | 'changes' | 'access'>;

export function summaryOf(version: Version): VersionSummary {
  const { objects: _, over: __, changes: ___, access: ____, ...summary } = version;
  return Object.freeze(summary);
}

/** A new version with the bytes of its file, whose hash is its id. */
export function seal(content: NewVersion, parent: VersionSummary | null): readonly [Version, Buffer] {
  const numbered = { number: (parent?.number ?? 0) + 1, parent: parent?.id ?? null, ...content };
  const bytes = Buffer.from(`${JSON.stringify({ format: FORMAT, ...numbered })}\n`);
  return [Object.freeze({ id: idOf(bytes), ...numbered }), bytes];
}

const FORMAT = 1;

/** Reads a version from its file's bytes; null if they do not match `id`. */
export function unseal(id: string, bytes: Buffer): Version | null {
  if (idOf(bytes) !== id) return null;
  // The hash proves that we wrote it.
  const { format, ...content } = JSON.parse(bytes.toString('utf8'), withoutPrototype) as {
    format: unknown;
  } & Omit<Version, 'id'>;
  return format === FORMAT ? Object.freeze({ id, ...content }) : null;
}

/** Without a prototype, like documents, so that `__proto__` is an ordinary name. */
function withoutPrototype(_: string, value: unknown): unknown {
  return isObject(value) ? Object.assign(Object.create(null), value) : value;
}

export function isVersionId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

function idOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
