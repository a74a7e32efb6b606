import { createHash, type Hash } from 'node:crypto';
import type { RowOrder } from '../../../audit/index.js';
import type { BoundValue } from '../../engine/index.js';
import { type QuestionBody, statementOf } from '../request/request-target.js';

/**
 * Digests of a receipt, version 1; `docs/receipts.md` defines them for other implementations. The hashed bytes begin
 * with the name of the digest and the salt. A field is its length (4 bytes, big endian) and its bytes; NULL has the
 * length 2³² - 1.
 */

/** Length in bytes of the random salt of a receipt. */
export const SALT_BYTES = 16;

/** Digest of a question: its kind, its text, and the values of its parameters as the client sent them. */
export function questionDigest(
  salt: Uint8Array,
  body: QuestionBody,
  parameters: readonly BoundValue[],
): string {
  const hash = createHash('sha256').update('osl-receipt question v1\n').update(salt);
  addField(hash, Buffer.from(body.kind));
  addField(hash, Buffer.from(statementOf(body)));
  for (const { format, bytes } of parameters) {
    hash.update(Buffer.of(format));
    addField(hash, bytes);
  }
  return hash.digest('base64url');
}

function addField(hash: Hash, bytes: Uint8Array | null): void {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes?.length ?? 0xffff_ffff);
  hash.update(length);
  if (bytes !== null) hash.update(bytes);
}

/** Name and type of a column, as in the `columns` of a REST answer. */
export interface DigestedColumn {
  readonly name: string;
  readonly type: string;
}

/** Digest of the columns and rows of an answer, computed in constant memory. */
export interface RowDigest {
  readonly order: RowOrder;
  /** True if each call of `add` must pass exactly one row; false if it may pass pieces of any size. */
  readonly byRow: boolean;
  add(bytes: Uint8Array): void;
  /** Returns the digest in base64url. */
  digest(): string;
}

export function rowDigest(order: RowOrder, salt: Uint8Array, columns: readonly DigestedColumn[]): RowDigest {
  return order === 'sequence' ? new SequenceDigest(salt, columns) : new MultisetDigest(salt, columns);
}

/**
 * Starts a hash with the digest's name, the salt, the number of columns, and two fields per column: its name and type.
 */
function begun(name: string, salt: Uint8Array, columns: readonly DigestedColumn[]): Hash {
  const hash = createHash('sha256').update(`osl-receipt ${name} v1\n`).update(salt);
  const count = Buffer.alloc(4);
  count.writeUInt32BE(columns.length);
  hash.update(count);
  for (const column of columns)
    for (const text of [column.name, column.type]) addField(hash, Buffer.from(text));
  return hash;
}

/** SHA-256 of the rows in the order in which they were sent. */
class SequenceDigest implements RowDigest {
  readonly order = 'sequence';
  readonly byRow = false;
  readonly #hash: Hash;

  constructor(salt: Uint8Array, columns: readonly DigestedColumn[]) {
    this.#hash = begun('rows', salt, columns);
  }

  add(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  digest(): string {
    return this.#hash.digest('base64url');
  }
}

const LANES = 1_024;
/**
 * Maximum number of rows of a digest without order. INVARIANT: fewer than 2¹⁶, since the sums are modulo 2¹⁶, so that
 * 2¹⁶ copies of any row would add nothing to them.
 */
export const MOST_UNORDERED = 65_535;

/**
 * LtHash: each row is expanded to 1,024 numbers of 16 bits, which are added up, so that the order of the rows does not
 * matter. Source: Bellare and Micciancio, "A New Paradigm for Collision-free Hashing"; lattice parameters of
 * lthash16.
 */
class MultisetDigest implements RowDigest {
  readonly order = 'multiset';
  readonly byRow = true;
  readonly #salt: Uint8Array;
  readonly #columns: readonly DigestedColumn[];
  readonly #sum = new Uint16Array(LANES);
  #rows = 0;

  constructor(salt: Uint8Array, columns: readonly DigestedColumn[]) {
    this.#salt = salt;
    this.#columns = columns;
  }

  add(row: Uint8Array): void {
    const expanded = createHash('shake128', { outputLength: 2 * LANES })
      .update('osl-receipt row v1\n')
      .update(this.#salt)
      .update(row)
      .digest();
    const sum = this.#sum;
    for (let lane = 0; lane < LANES; lane++)
      sum[lane] = (sum[lane] ?? 0) + (expanded[2 * lane] ?? 0) + 256 * (expanded[2 * lane + 1] ?? 0);
    this.#rows += 1;
  }

  digest(): string {
    const state = Buffer.alloc(4 + 2 * LANES);
    state.writeUInt32BE(this.#rows);
    for (let lane = 0; lane < LANES; lane++) state.writeUInt16LE(this.#sum[lane] ?? 0, 4 + 2 * lane);
    return begun('multiset', this.#salt, this.#columns).update(state).digest('base64url');
  }
}
