import { Data, type DataType } from 'apache-arrow';
import { queryError } from 'osl-compiler';

const MAX_RETAINED_BYTES = 4_194_304;

/** Growing buffer that starts at offset 0 of its ArrayBuffer, so that typed views of any width are aligned. */
export class ArrowBytes {
  readonly #initial: number;
  bytes: Buffer;
  length = 0;

  constructor(initial: number) {
    this.#initial = initial;
    this.bytes = allocate(initial);
  }

  reserve(additionalBytes: number): void {
    const needed = this.length + additionalBytes;
    if (needed <= this.bytes.length) return;
    const grown = allocate(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  clear(): void {
    this.length = 0;
    if (this.bytes.length > MAX_RETAINED_BYTES) this.bytes = allocate(this.#initial);
  }
}

function allocate(size: number): Buffer {
  return Buffer.from(new ArrayBuffer((size + 7) & ~7));
}

export class ValidityBitmap {
  readonly #bits = new ArrowBytes(1_024);
  #nulls = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get nulls(): number {
    return this.#nulls;
  }

  addValid(): void {
    if (this.#nulls > 0) this.#set(this.#length);
    this.#length += 1;
  }

  addNull(): void {
    if (this.#nulls === 0) for (let at = 0; at < this.#length; at++) this.#set(at);
    this.#nulls += 1;
    this.#growTo(this.#length);
    this.#length += 1;
  }

  bitmap(): Uint8Array {
    return this.#bits.bytes.subarray(0, (this.#length + 7) >> 3);
  }

  clear(): void {
    this.#bits.bytes.fill(0);
    this.#bits.clear();
    this.#nulls = 0;
    this.#length = 0;
  }

  #set(at: number): void {
    this.#growTo(at);
    const byte = at >> 3;
    this.#bits.bytes[byte] = (this.#bits.bytes[byte] ?? 0) | (1 << (at & 7));
  }

  #growTo(at: number): void {
    const missing = (at >> 3) + 1 - this.#bits.length;
    if (missing <= 0) return;
    this.#bits.reserve(missing);
    this.#bits.length += missing;
  }
}

export class Offsets {
  readonly #bytes = new ArrowBytes(4_096);

  constructor() {
    this.clear();
  }

  push(end: number): void {
    this.#bytes.reserve(4);
    this.#bytes.length = this.#bytes.bytes.writeInt32LE(end, this.#bytes.length);
  }

  view(): Int32Array {
    return new Int32Array(this.#bytes.bytes.buffer, 0, this.#bytes.length / 4);
  }

  clear(): void {
    this.#bytes.clear();
    this.push(0);
  }
}

/** Accumulates the values of one column for one record batch. */
export interface ArrowColumn {
  readonly type: DataType;
  /**
   * Adds the value at `source[start … end)`, in the wire format requested for the column.
   * @throws QueryError E4060 if Arrow cannot represent it
   */
  addValue(source: Buffer, start: number, end: number): void;
  addInPortions?(source: Buffer, start: number, end: number): Generator<void>;
  addNull(): void;
  /** Views of the accumulated data, valid until `clear`. */
  data(): Data;
  clear(): void;
}

/**
 * Builds column data with a validity bitmap. The buffers are in the order of `BufferType` in apache-arrow: offsets,
 * values, bitmap.
 */
export function dataOf(
  type: DataType,
  validity: ValidityBitmap,
  offsets: Int32Array | undefined,
  values: ArrayBufferView | undefined,
  children: Data[] = [],
): Data {
  const bitmap = validity.nulls === 0 ? undefined : validity.bitmap();
  // cast: the library's type for the buffers depends on the column's array type, which is not known here
  const buffers = [offsets, values, bitmap] as unknown as Data['buffers'];
  return new Data(type, 0, validity.length, validity.nulls, buffers, children);
}

export function notRepresentable(column: string, valueText: string) {
  return queryError('noArrowValue', { column, what: valueText });
}
