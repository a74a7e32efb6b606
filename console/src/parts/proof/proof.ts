/**
 * Checks a proof that a record is in the log covered by a signed checkpoint: C2SP tlog-proof, tlog-checkpoint and
 * signed-note with Ed25519, using WebCrypto. It is written from docs/audit.md and shares no code with the server, so
 * that a server that forges its log does not also supply the code that checks it.
 */

/** Result of a check, step by step. The check ends with the first failed step. */
export interface ProofCheck {
  readonly ok: boolean;
  readonly steps: readonly ProofStep[];
  readonly record: Readonly<Record<string, unknown>> | null;
  readonly checkpoint: ProofCheckpoint | null;
}

interface ProofStep {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
}

interface ProofCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly time: string | null;
}

/** Thrown if a text is not a valid proof or key; the message says why. */
class NotAProof extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotAProof';
  }
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

interface Proof {
  readonly record: Bytes;
  readonly index: number;
  readonly path: readonly Bytes[];
  readonly note: Note;
}

interface Note {
  /** The text that is signed. */
  readonly body: string;
  readonly checkpoint: ProofCheckpoint;
  readonly root: Bytes;
  readonly signatures: readonly { readonly name: string; readonly blob: Bytes }[];
}

/** A verifier key, `name+hash+base64`. */
interface LogKey {
  readonly name: string;
  readonly id: Bytes;
  readonly key: Bytes;
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Splits the content of a file into the proofs that it contains. */
export function proofsIn(text: string): readonly string[] {
  return text
    .replaceAll('\r\n', '\n')
    .split(/^(?=c2sp\.org\/tlog-proof@v1$)/m)
    .filter((part) => part.trim() !== '');
}

/** Checks a proof. @param keys verifier keys, one per line; the key of the log named in the proof is used */
export async function checkProof(text: string, keys: string): Promise<ProofCheck> {
  const steps: ProofStep[] = [];
  const verdict = (ok: boolean, proof: Proof | null): ProofCheck => ({
    ok,
    steps,
    record: ok && proof !== null ? recordOf(proof.record) : null,
    checkpoint: proof?.note.checkpoint ?? null,
  });
  let proof: Proof | null = null;
  try {
    proof = parsed(text);
    const { size, origin } = proof.note.checkpoint;
    steps.push({ what: 'It is a proof', ok: true, detail: `of record ${proof.index} of ${origin}` });
    const key = await keyFor(keys, origin);
    const signed = await isSigned(proof.note, key);
    steps.push({
      what: 'The checkpoint is signed',
      ok: signed,
      detail: signed ? `by ${key.name}` : `not by ${key.name}: it was changed, or another key signed it`,
    });
    if (!signed) return verdict(false, proof);
    const leaf = await sha256(joined([Uint8Array.of(0), proof.record]));
    const root = await rootOf(leaf, proof.index, size, proof.path);
    const leads = root !== null && isSame(root, proof.note.root);
    steps.push({
      what: 'The record leads to the signed root',
      ok: leads,
      detail: leads
        ? `by ${proof.path.length} hashes, in a tree of ${size} records`
        : 'the record, its place or its path is not what was signed',
    });
    return verdict(leads, proof);
  } catch (error) {
    if (!(error instanceof NotAProof)) throw error;
    steps.push({ what: proof === null ? 'It is a proof' : 'The key', ok: false, detail: error.message });
    return verdict(false, proof);
  }
}

function parsed(text: string): Proof {
  const end = text.indexOf('\n\n');
  const [first, extra = '', index = '', ...path] = (end === -1 ? text : text.slice(0, end)).split('\n');
  if (first !== FIRST_LINE) throw new NotAProof(`a proof begins with ${FIRST_LINE}`);
  if (end === -1) throw new NotAProof('it has no checkpoint');
  const record = /^extra ([A-Za-z0-9+/]+={0,2})$/.exec(extra)?.[1];
  const place = /^index (0|[1-9]\d{0,15})$/.exec(index)?.[1];
  if (record === undefined || place === undefined)
    throw new NotAProof('its record or its index cannot be read');
  return {
    record: bytesOf(record),
    index: Number(place),
    path: path.map((line) => hashOf(line)),
    note: noteIn(text.slice(end + 2)),
  };
}

function noteIn(text: string): Note {
  const end = text.indexOf('\n\n');
  if (end === -1) throw new NotAProof('the checkpoint is not signed');
  const body = text.slice(0, end + 1);
  const [origin = '', size = '', root = '', ...extensions] = body.slice(0, -1).split('\n');
  if (origin === '' || !/^(0|[1-9]\d{0,15})$/.test(size))
    throw new NotAProof('the checkpoint cannot be read');
  const lines = text
    .slice(end + 2)
    .split('\n')
    .filter((line) => line !== '');
  const signatures = lines.map((line) => {
    const [, name = '', blob = ''] = /^\u2014 (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? [];
    if (name === '') throw new NotAProof('a signature cannot be read');
    return { name, blob: bytesOf(blob) };
  });
  const time = extensions.find((line) => line.startsWith('time '))?.slice(5) ?? null;
  return { body, checkpoint: { origin, size: Number(size), time }, root: hashOf(root), signatures };
}

async function keyFor(keys: string, origin: string): Promise<LogKey> {
  const lines = keys.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) throw new NotAProof('there is no key to check it with');
  for (const line of lines) {
    const key = await keyIn(line.trim());
    if (key.name === origin) return key;
  }
  throw new NotAProof(`no key is that of ${origin}`);
}

async function keyIn(line: string): Promise<LogKey> {
  const [, name = '', id = '', encoded = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(line) ?? [];
  const typed = encoded === '' ? Uint8Array.of() : bytesOf(encoded);
  const hashed = await sha256(joined([utf8(`${name}\n`), typed]));
  const isWell = typed.length === 33 && typed[0] === 1 && hex(hashed.slice(0, 4)) === id;
  if (!isWell) throw new NotAProof('the verifier key is not well formed');
  return { name, id: hashed.slice(0, 4), key: typed.slice(1) };
}

async function isSigned({ body, signatures }: Note, { name, id, key }: LogKey): Promise<boolean> {
  const own = signatures.filter(
    (s) => s.name === name && s.blob.length === 68 && isSame(s.blob.slice(0, 4), id),
  );
  if (own.length === 0) return false;
  const imported = await subtle()
    .importKey('raw', key, { name: 'Ed25519' }, false, ['verify'])
    .catch(() => {
      throw new NotAProof('this browser cannot read an Ed25519 key');
    });
  for (const { blob } of own)
    if (await subtle().verify({ name: 'Ed25519' }, imported, blob.slice(4), utf8(body))) return true;
  return false;
}

/** Computes the root hash from a leaf and its path (RFC 9162, section 2.1.3.2); null if path and index do not fit. */
async function rootOf(
  leaf: Bytes,
  index: number,
  size: number,
  path: readonly Bytes[],
): Promise<Bytes | null> {
  if (index >= size) return null;
  let at = BigInt(index);
  let last = BigInt(size - 1);
  let root = leaf;
  for (const sibling of path) {
    if (last === 0n) return null;
    if (at % 2n === 1n || at === last) {
      root = await node(sibling, root);
      while (at % 2n === 0n && at !== 0n) {
        at >>= 1n;
        last >>= 1n;
      }
    } else root = await node(root, sibling);
    at >>= 1n;
    last >>= 1n;
  }
  return last === 0n ? root : null;
}

function node(left: Bytes, right: Bytes): Promise<Bytes> {
  return sha256(joined([Uint8Array.of(1), left, right]));
}

function recordOf(bytes: Bytes): Readonly<Record<string, unknown>> {
  const read: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof read !== 'object' || read === null) throw new NotAProof('the record is not an object');
  return read as Readonly<Record<string, unknown>>; // each member is checked before it is shown
}

/** Returns the WebCrypto API. @throws NotAProof outside secure contexts, where browsers do not provide it */
function subtle(): SubtleCrypto {
  const { subtle: found } = globalThis.crypto;
  if (found === undefined) throw new NotAProof('this browser checks nothing on a page without HTTPS');
  return found;
}

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await subtle().digest('SHA-256', bytes));
}

function hashOf(text: string): Bytes {
  const bytes = /^[A-Za-z0-9+/]{43}=$/.test(text) ? bytesOf(text) : Uint8Array.of();
  if (bytes.length !== 32) throw new NotAProof('a hash cannot be read');
  return bytes;
}

/** Decodes canonical base64; other encodings of the same bytes are rejected. */
function bytesOf(text: string): Bytes {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    throw new NotAProof('it is not base64');
  }
  if (btoa(binary) !== text) throw new NotAProof('it is not base64');
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

function joined(parts: readonly Bytes[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function isSame(a: Bytes, b: Bytes): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function hex(bytes: Bytes): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
