import { type Data, type DataType, Field, List } from 'apache-arrow';
import { PORTION_BYTES } from '../json-bytes.js';
import { ArrayReader } from '../values.js';
import { ArrowBytes, type ArrowColumn, dataOf, noValue, Offsets, ValidityBitmap } from './buffers.js';

export type WriteBytes = (source: Buffer, start: number, end: number, out: ArrowBytes) => void;

export class BytesColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #write: WriteBytes;
  readonly #offsets = new Offsets();
  readonly #values = new ArrowBytes(4_096);
  readonly #validity = new ValidityBitmap();

  constructor(type: DataType, write: WriteBytes) {
    this.type = type;
    this.#write = write;
  }

  value(source: Buffer, start: number, end: number): void {
    this.#write(source, start, end, this.#values);
    this.#offsets.push(this.#values.length);
    this.#validity.valid();
  }

  null(): void {
    this.#offsets.push(this.#values.length);
    this.#validity.null();
  }

  data(): Data {
    const values = this.#values.bytes.subarray(0, this.#values.length);
    return dataOf(this.type, this.#validity, this.#offsets.view(), values);
  }

  clear(): void {
    this.#offsets.clear();
    this.#values.clear();
    this.#validity.clear();
  }
}

export function verbatim(skip = 0): WriteBytes {
  return (source, start, end, out) => {
    out.reserve(end - start);
    out.length += source.copy(out.bytes, out.length, start + skip, end);
  };
}

export class BoolColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #bits = new ArrowBytes(1_024);
  readonly #validity = new ValidityBitmap();

  constructor(type: DataType) {
    this.type = type;
  }

  value(source: Buffer, start: number): void {
    this.#push(source[start] === 0 ? 0 : 1);
    this.#validity.valid();
  }

  null(): void {
    this.#push(0);
    this.#validity.null();
  }

  data(): Data {
    return dataOf(this.type, this.#validity, undefined, this.#bits.bytes.subarray(0, this.#bits.length));
  }

  clear(): void {
    this.#bits.clear();
    this.#validity.clear();
  }

  #push(bit: 0 | 1): void {
    const { length } = this.#validity;
    if ((length & 7) === 0) {
      this.#bits.reserve(1);
      this.#bits.bytes[this.#bits.length++] = 0;
    }
    const byte = length >> 3;
    this.#bits.bytes[byte] = (this.#bits.bytes[byte] ?? 0) | (bit << (length & 7));
  }
}

/**
 * Size of a binary array's header: number of dimensions, flags and element type, then size and lower bound of the
 * dimension.
 */
const ARRAY_HEAD = 12;
const DIMENSION = 8;

/** Adds the elements of the array in `source[start … end)` to `items` and returns their number; yields after each portion. */
type AddElements = (
  source: Buffer,
  start: number,
  end: number,
  items: ArrowColumn,
  name: string,
) => Generator<void, number>;

/** Column of one-dimensional arrays. Multidimensional arrays are refused, since they need a different column type. */
export class ListColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #name: string;
  readonly #items: ArrowColumn;
  readonly #add: AddElements;
  readonly #offsets = new Offsets();
  readonly #validity = new ValidityBitmap();
  #count = 0;

  constructor(items: ArrowColumn, name: string, add: AddElements) {
    this.type = new List(new Field('item', items.type, true));
    this.#name = name;
    this.#items = items;
    this.#add = add;
  }

  value(source: Buffer, start: number, end: number): void {
    for (const _ of this.portions(source, start, end));
  }

  *portions(source: Buffer, start: number, end: number): Generator<void> {
    this.#count += yield* this.#add(source, start, end, this.#items, this.#name);
    this.#offsets.push(this.#count);
    this.#validity.valid();
  }

  null(): void {
    this.#offsets.push(this.#count);
    this.#validity.null();
  }

  data(): Data {
    return dataOf(this.type, this.#validity, this.#offsets.view(), undefined, [this.#items.data()]);
  }

  clear(): void {
    this.#offsets.clear();
    this.#validity.clear();
    this.#items.clear();
    this.#count = 0;
  }
}

/** Adds array elements from Postgres' binary format. Lower bounds are dropped, as in JSON. */
export function* binaryElements(...[source, start, , items, name]: Parameters<AddElements>) {
  const dimensions = source.readInt32BE(start);
  if (dimensions > 1) throw noValue(name, `an array of ${dimensions} dimensions`);
  if (dimensions === 0) return 0;
  const size = source.readInt32BE(start + ARRAY_HEAD);
  let at = start + ARRAY_HEAD + DIMENSION;
  let due = at + PORTION_BYTES;
  for (let n = 0; n < size; n++) {
    const length = source.readInt32BE(at);
    at += 4;
    if (length < 0) items.null();
    else items.value(source, at, at + length);
    at += Math.max(length, 0);
    if (at < due) continue;
    due = at + PORTION_BYTES;
    yield;
  }
  return size;
}

/** Adds array elements from Postgres' text format, such as `{10.0.0.1,NULL}`. */
export function* textElements(...[source, start, end, items, name]: Parameters<AddElements>) {
  const reader = new ArrayReader(source, start, end);
  let count = 0;
  let depth = 0;
  let due = start + PORTION_BYTES;
  for (let token = reader.next(PORTION_BYTES); token !== null; token = reader.next(PORTION_BYTES)) {
    if (token === 'open') depth += 1;
    if (depth > 1) throw noValue(name, 'an array of several dimensions');
    if (token === 'null') items.null();
    if (token === 'element') {
      const item = reader.element();
      items.value(item, 0, item.length);
    }
    if (token === 'null' || token === 'element') count += 1;
    if (reader.at < due) continue;
    due = reader.at + PORTION_BYTES;
    yield;
  }
  return count;
}
