import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { splitHashes } from './format.js';

/**
 * Signed tree heads as C2SP tlog-checkpoint notes, one after another in the file `checkpoints`, each followed by
 * an empty line:
 *
 * ```
 * osl-audit/3f0c…                      origin, also the name of the key
 * 1024                                 tree size: records covered
 * 7Yk…=                                RFC 6962 root, base64
 * time 2026-01-02T03:04:05.678Z        extension line
 * sync kernel                          extension line, only if later records are synced after they are acknowledged
 *
 * — osl-audit/3f0c… <base64 of key hash (4 B) ‖ Ed25519 signature (64 B)>
 * ```
 */

export const CHECKPOINTS_FILE = 'checkpoints';
/**
 * File with the newest checkpoint, replaced every second while records are added; those in `checkpoints` are
 * permanent.
 */
export const LATEST_FILE = 'checkpoint.latest';
/** File with the signed notes that replaced deleted segments. The last one counts; an archive may need an earlier one. */
export const RETAINED_FILE = 'retained';
export const PUBLIC_KEY_FILE = 'checkpoint.vkey';
const ED25519 = 0x01;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const NOTE =
  /^(?<body>(?<origin>[^\n]+)\n(?<size>0|[1-9]\d{0,15})\n(?<root>[A-Za-z0-9+/]{43}=)\n(?<extensions>(?:[^\n]+\n)*))\n(?<signatures>(?:\u2014 [^\n]+\n)+)$/;

/** Point at which a record is acknowledged: once it is synced (`disk`), or once it is written (`kernel`). */
export type AuditSync = 'disk' | 'kernel';

export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  /** Timestamp from the `time` extension line, RFC 3339; null if the note has no such line. */
  readonly time: string | null;
  /** Point at which the records after this checkpoint were acknowledged. */
  readonly sync: AuditSync;
  /** Complete note including signatures. */
  readonly note: string;
}

/** Public half of the key that signs checkpoints. */
export interface VerifierKey {
  readonly name: string;
  /** First four bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ key), as defined by C2SP signed-note. */
  readonly id: Buffer;
  readonly key: KeyObject;
}

/** Formats a verifier key as `<name>+<key hash, hex>+<base64 of 0x01 ‖ public key>` (C2SP signed-note). */
export function formatVerifierKey(name: string, publicKey: Uint8Array): string {
  const typed = Buffer.concat([Buffer.of(ED25519), publicKey]);
  return `${name}+${keyId(name, typed).toString('hex')}+${typed.toString('base64')}`;
}

/** Parses the text written by `formatVerifierKey`. @throws TypeError if it is not one well-formed Ed25519 key */
export function parseVerifierKey(text: string): VerifierKey {
  const [, name = '', id = '', encoded = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)\s*$/.exec(text) ?? [];
  const typed = Buffer.from(encoded, 'base64');
  if (typed.length !== 33 || typed[0] !== ED25519 || keyId(name, typed).toString('hex') !== id) {
    throw new TypeError('the verifier key of the audit log is not well formed');
  }
  const spki = Buffer.concat([SPKI_PREFIX, typed.subarray(1)]);
  return {
    name,
    id: Buffer.from(id, 'hex'),
    key: createPublicKey({ key: spki, format: 'der', type: 'spki' }),
  };
}

function keyId(name: string, typedKey: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), typedKey]), 'buffer').subarray(0, 4);
}

/** Builds the text to be signed. @param more additional extension lines, each ending in a newline */
export function checkpointBody(origin: string, size: number, root: Buffer, time: string, more = ''): string {
  return `${origin}\n${size}\n${root.toString('base64')}\ntime ${time}\n${more}`;
}

export function formatSignature(name: string, id: Buffer, signature: Buffer): string {
  return `\u2014 ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/** Parses a note; null unless well formed, with origin `trusted` and one valid signature by that key. */
export function openCheckpoint(note: string, trusted: VerifierKey): Checkpoint | null {
  const groups = NOTE.exec(note)?.groups;
  if (!groups) return null;
  const { body = '', origin = '', size = '', root = '', extensions = '', signatures = '' } = groups;
  const own = signatures.split('\n').filter((line) => line.startsWith(`\u2014 ${trusted.name} `));
  if (origin !== trusted.name || own.length !== 1 || !signs(own[0] ?? '', body, trusted)) return null;
  const time = /^time (\S+)$/m.exec(extensions)?.[1] ?? null;
  const sync = /^sync kernel$/m.test(extensions) ? 'kernel' : 'disk';
  return { origin, size: Number(size), root: Buffer.from(root, 'base64'), time, sync, note };
}

function signs(line: string, body: string, trusted: VerifierKey): boolean {
  const encoded = line.slice(`\u2014 ${trusted.name} `.length);
  const blob = Buffer.from(encoded, 'base64');
  // Several base64 texts decode to the same bytes; accepting only the canonical one rules out altered copies of a note.
  if (blob.length !== 68 || blob.toString('base64') !== encoded) return false;
  if (!blob.subarray(0, 4).equals(trusted.id)) return false;
  return verify(null, Buffer.from(body), trusted.key, blob.subarray(4));
}

/**
 * Returns the number of records, from the start of the log, that were synced in order; `Infinity` unless the checkpoint
 * says `sync kernel`. Among the records after them, a power failure may have removed some and kept later ones.
 */
export function syncedBefore(newest: Checkpoint | null): number {
  return newest?.sync === 'kernel' ? newest.size : Number.POSITIVE_INFINITY;
}

/** Splits concatenated notes; `end` is the byte offset after the last complete note. */
export function splitNotes(file: Buffer): { notes: string[]; end: number } {
  const notes: string[] = [];
  let start = 0;
  for (;;) {
    // A note consists of a body, an empty line and signatures; the second empty line ends it.
    const bodyEnd = file.indexOf('\n\n', start);
    const end = bodyEnd === -1 ? -1 : file.indexOf('\n\n', bodyEnd + 2);
    if (end === -1) return { notes, end: start };
    notes.push(file.toString('utf8', start, end + 1));
    start = end + 2;
  }
}

/** Splits concatenated notes in a text; an incomplete note at the end is ignored. */
export function checkpointNotes(text: string): readonly string[] {
  return splitNotes(Buffer.from(text)).notes;
}

/**
 * Signed note that replaces deleted segments: a checkpoint of exactly the records before the first retained one, with
 * all state needed to verify the rest:
 *
 * ```
 * retained <first retained segment> <epoch before it> <chain hash before it, hex>
 * frontier <roots of the complete subtrees before it, base64>
 * ```
 */
export interface RetentionCheckpoint {
  readonly checkpoint: Checkpoint;
  /** First retained segment. */
  readonly segment: number;
  readonly epoch: number;
  readonly chain: Buffer;
  readonly frontier: readonly Buffer[];
}

const RETENTION_LINES =
  /^retained ([1-9]\d{0,7}) (0|[1-9]\d{0,14}) ([0-9a-f]{64})\nfrontier ([A-Za-z0-9+/]*={0,2})$/m;

export function retentionLines(
  segment: number,
  epoch: number,
  chain: Buffer,
  frontier: readonly Buffer[],
): string {
  const roots = Buffer.concat(frontier).toString('base64');
  return `retained ${segment} ${epoch} ${chain.toString('hex')}\nfrontier ${roots}\n`;
}

/** Parses the newest retention note; null if there is none. @throws TypeError if it is malformed or forged */
export function parseRetentionNote(notes: Buffer, key: VerifierKey): RetentionCheckpoint | null {
  const note = splitNotes(notes).notes.at(-1);
  if (note === undefined) return null;
  const checkpoint = openCheckpoint(note, key);
  const [, segment, epoch, chain = '', roots = ''] = RETENTION_LINES.exec(checkpoint?.note ?? '') ?? [];
  if (checkpoint === null || segment === undefined) {
    throw new TypeError('what was signed of records that are not kept is not validly signed');
  }
  return {
    checkpoint,
    segment: Number(segment),
    epoch: Number(epoch),
    chain: Buffer.from(chain, 'hex'),
    frontier: splitHashes(Buffer.from(roots, 'base64')),
  };
}
