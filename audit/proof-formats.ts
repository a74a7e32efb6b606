import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { openCheckpoint, type VerifierKey } from './checkpoint.js';

/**
 * Inclusion proofs as C2SP tlog-proof text. The `extra` line holds the record:
 *
 * ```
 * c2sp.org/tlog-proof@v1
 * extra <record, base64>
 * index <index of the record in the log>
 * <sibling, base64>                     one line for each level of the tree, lowest first
 *
 * <checkpoint note>
 * ```
 */

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const PROOF =
  /^c2sp\.org\/tlog-proof@v1\nextra (?<extra>[A-Za-z0-9+/]+={0,2})\nindex (?<index>0|[1-9]\d{0,15})\n(?<path>(?:[A-Za-z0-9+/]{43}=\n)*)\n(?<note>[\s\S]+)$/;

/** The parts of a proof that was parsed but not verified. */
interface ProofParts {
  readonly record: Buffer;
  readonly index: number;
  readonly path: readonly Buffer[];
  readonly note: string;
}

export function proofText(record: Buffer, index: number, path: readonly Buffer[], note: string): string {
  const siblings = path.map((hash) => `${hash.toString('base64')}\n`).join('');
  return `${FIRST_LINE}\nextra ${record.toString('base64')}\nindex ${index}\n${siblings}\n${note}`;
}

/** Parses a proof; null if the text is not a proof, or is not spelled exactly as `proofText` writes it. */
export function parseProof(text: string): ProofParts | null {
  const groups = PROOF.exec(text)?.groups;
  if (groups === undefined) return null;
  const { extra = '', index = '', path = '', note = '' } = groups;
  const parts = {
    record: Buffer.from(extra, 'base64'),
    index: Number(index),
    path: path
      .split('\n')
      .slice(0, -1)
      .map((line) => Buffer.from(line, 'base64')),
    note,
  };
  return proofText(parts.record, parts.index, parts.path, note) === text ? parts : null;
}

/** CBOR values (RFC 8949) that receipts need. Map entries must be in the order of their encoded keys. */
type Cbor = number | string | Uint8Array | null | readonly Cbor[] | ReadonlyMap<number, Cbor>;

/** Labels and values of COSE (RFC 9052, RFC 9053) and of COSE receipts (RFC 9942). */
const LABEL = { algorithm: 1, keyId: 4, tree: 395, proofs: 396, inclusion: -1 } as const;
const EDDSA = -8;
const RFC9162_SHA256 = 1;
/** Encoding of CBOR tag 18, which marks a COSE message with a single signer (COSE_Sign1). */
const SIGN1_TAG = 0xd2;

export interface CoseReceipt {
  readonly receipt: Buffer;
  /** The log entry that the receipt proves: the record as canonical JSON. */
  readonly entry: Buffer;
}

/**
 * Converts an inclusion proof to a COSE receipt: the record's path in the tree, and a signature over the root. The
 * receipt does not contain the root; verifiers compute it.
 *
 * @param proof C2SP tlog-proof whose checkpoint `trusted` has signed
 * @param key private half of `trusted`
 * @throws RangeError if the text is not such a proof, or the keys do not form a pair
 */
export function coseReceipt(proof: string, trusted: VerifierKey, key: KeyObject): CoseReceipt {
  const parts = parseProof(proof);
  const checkpoint = parts === null ? null : openCheckpoint(parts.note, trusted);
  if (parts === null || checkpoint === null)
    throw new RangeError('the text is not a proof that the key has signed');
  if (!createPublicKey(key).equals(trusted.key))
    throw new RangeError('the signing key does not belong to the verifier key');
  const headers = encoded(
    new Map<number, Cbor>([
      [LABEL.algorithm, EDDSA],
      [LABEL.keyId, Buffer.from(trusted.name)],
      [LABEL.tree, RFC9162_SHA256],
    ]),
  );
  const inclusion = encoded([checkpoint.size, parts.index, parts.path]);
  const signature = sign(null, encoded(['Signature1', headers, Buffer.alloc(0), checkpoint.root]), key);
  const proofs = new Map([[LABEL.proofs, new Map([[LABEL.inclusion, [inclusion]]])]]);
  const message = encoded([headers, proofs, null, signature]);
  return { receipt: Buffer.concat([Buffer.from([SIGN1_TAG]), message]), entry: parts.record };
}

function encoded(value: Cbor): Buffer {
  if (value === null) return Buffer.from([0xf6]);
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  if (value instanceof Map)
    return Buffer.concat([head(5, value.size), ...[...value].flat().map((item: Cbor) => encoded(item))]);
  if (!isList(value)) throw new TypeError('not a value in CBOR');
  return Buffer.concat([head(4, value.length), ...value.map(encoded)]);
}

function isList(value: Cbor): value is readonly Cbor[] {
  return Array.isArray(value);
}

/** Encodes the head of a CBOR item: its major type, and its value or length. */
function head(major: number, argument: number): Buffer {
  const type = major << 5;
  if (argument < 24) return Buffer.from([type | argument]);
  const bytes = Buffer.alloc(9);
  bytes.writeBigUInt64BE(BigInt(argument), 1);
  const [width, code] =
    argument < 2 ** 8 ? [1, 24] : argument < 2 ** 16 ? [2, 25] : argument < 2 ** 32 ? [4, 26] : [8, 27];
  bytes[8 - width] = type | code;
  return bytes.subarray(8 - width);
}
