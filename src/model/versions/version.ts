import { createHash } from 'node:crypto';
import { isObject } from '../../base/is-object.js';
import type { ManifestChange, RoleChange } from '../authoring/index.js';
import type { Overlay } from '../manifest/index.js';

/**
 * One state of all that is published by API, and how it came about. A version is written once and never changed: its
 * id is the hash of its own bytes, and it names the one before it.
 */
export interface Version extends Overlay {
  /** SHA-256 over the bytes of its file, in hex. */
  readonly id: string;
  /** From 1. */
  readonly number: number;
  /** Id of the version before it; null for the first. */
  readonly parent: string | null;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly author: { readonly subject: string; readonly chain: readonly string[] };
  /** The call in the audit log. */
  readonly request_id: string;
  readonly action: 'publish' | 'deprecate' | 'withdraw' | 'rollback';
  /** The draft that was published. */
  readonly draft: string | null;
  /** Number of the version that a rollback restores; 0 is the manifest file alone. Null for other actions. */
  readonly restores: number | null;
  /** Versions of the manifest file, and of the manifest and policy that served with this. */
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

/** The bytes of a version's file, and the version with the id that they give it. */
export function seal(content: NewVersion, parent: VersionSummary | null): readonly [Version, Buffer] {
  const numbered = { number: (parent?.number ?? 0) + 1, parent: parent?.id ?? null, ...content };
  const bytes = Buffer.from(`${JSON.stringify({ format: FORMAT, ...numbered })}\n`);
  return [Object.freeze({ id: idOf(bytes), ...numbered }), bytes];
}

const FORMAT = 1;

/** Reads a version from its file's bytes; null if they do not match `id`. */
export function unseal(id: string, bytes: Buffer): Version | null {
  if (idOf(bytes) !== id) return null;
  // The hash says that we wrote it.
  const { format, ...content } = JSON.parse(bytes.toString('utf8'), withoutPrototype) as {
    format: unknown;
  } & Omit<Version, 'id'>;
  return format === FORMAT ? Object.freeze({ id, ...content }) : null;
}

/** Objects are as a manifest's document has them, so that `__proto__` is a name like any other. */
function withoutPrototype(_: string, value: unknown): unknown {
  return isObject(value) ? Object.assign(Object.create(null), value) : value;
}

export function isVersionId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

function idOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
