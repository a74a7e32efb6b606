import { type Data, type DataType, Field, List } from 'apache-arrow';
import { ArrayReader, PORTION_BYTES } from '../json-values.js';
import {
  ArrowBytes,
  type ArrowColumn,
  dataOf,
  notRepresentable,
  Offsets,
  ValidityBitmap,
} from './buffers.js';

/**
 * Writes the value at `source[start …)` to `into[at …)` in Arrow's byte order. If Arrow cannot represent the value,
 * returns a description of it such as `infinity`.
 */
export type WriteFixed = (source: Buffer, start: number, target: Buffer, at: number) => string | undefined;

type ViewConstructor = new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayBufferView;

export interface ValueLayout {
  readonly type: DataType;
  readonly width: number;
  readonly view: ViewConstructor & { readonly BYTES_PER_ELEMENT: number };
  readonly write: WriteFixed;
}

export class FixedColumn implements ArrowColumn {
  readonly type: DataType;
  readonly #layout: ValueLayout;
  readonly #name: string;
  readonly #values: ArrowBytes;
  readonly #validity = new ValidityBitmap();

  constructor(layout: ValueLayout, name: string) {
    this.type = layout.type;
    this.#layout = layout;
    this.#name = name;
    this.#values = new ArrowBytes(256 * layout.width);
  }

  addValue(source: Buffer, start: number): void {
    const { width, write } = this.#layout;
    this.#values.reserve(width);
    const description = write(source, start, this.#values.bytes, this.#values.length);
    if (description !== undefined) throw notRepresentable(this.#name, description);
    this.#values.length += width;
    this.#validity.addValid();
  }

  addNull(): void {
    const { width } = this.#layout;
    this.#values.reserve(width);
    this.#values.bytes.fill(0, this.#values.length, this.#values.length + width);
    this.#values.length += width;
    this.#validity.addNull();
  }

  data(): Data {
    const { type, view: View } = this.#layout;
    const elements = this.#values.length / View.BYTES_PER_ELEMENT;
    return dataOf(type, this.#validity, undefined, new View(this.#values.bytes.buffer, 0, elements));
  }

  clear(): void {
    this.#values.clear();
    this.#validity.clear();
  }
}

/** Reverses the bytes of a number, since Postgres is big-endian and Arrow little-endian. */
export function reverseBytes(width: 2 | 4 | 8): WriteFixed {
  return (source, start, target, at) => {
    for (let n = 0; n < width; n++) target[at + n] = source[start + width - 1 - n] ?? 0;
    return undefined;
  };
}

export const copyBytes =
  (width: number): WriteFixed =>
  (source, start, target, at) => {
    source.copy(target, at, start, start + width);
    return undefined;
  };

const MAX_INT32 = 0x7fff_ffff;
const MIN_INT32 = -0x8000_0000;
const MAX_UINT32 = 0xffff_ffff;
const WORD = 0x1_0000_0000;

/** Days from 1970-01-01 to 2000-01-01, Postgres' epoch. */
const EPOCH_DAYS = 10_957;
/** EPOCH_DAYS in microseconds, and the high and low words of that number. */
const EPOCH_US = EPOCH_DAYS * 86_400_000_000;
const EPOCH_HIGH = Math.floor(EPOCH_US / WORD);
const EPOCH_LOW = EPOCH_US - EPOCH_HIGH * WORD;
const DAY_US = 86_400_000_000;

/** Converts days since 2000 to days since 1970. All finite dates fit. */
export const writeDate: WriteFixed = (source, start, target, at) => {
  const days = source.readInt32BE(start);
  if (days === MAX_INT32) return 'infinity';
  if (days === MIN_INT32) return '-infinity';
  target.writeInt32LE(days + EPOCH_DAYS, at);
  return undefined;
};

/** Converts microseconds since 2000 to microseconds since 1970; Arrow lacks the last 30 years of Postgres' range. */
export const writeTimestamp: WriteFixed = (source, start, target, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high === MAX_INT32 && low === MAX_UINT32) return 'infinity';
  if (high === MIN_INT32 && low === 0) return '-infinity';
  const sum = low + EPOCH_LOW;
  const carry = sum >= WORD ? 1 : 0;
  const total = high + EPOCH_HIGH + carry;
  if (total > MAX_INT32) return 'a time after 294247-01-10';
  target.writeUInt32LE(sum - carry * WORD, at);
  target.writeInt32LE(total, at + 4);
  return undefined;
};

/** Writes microseconds since midnight in Arrow's byte order; Arrow cannot represent 24:00:00. */
export const writeTime: WriteFixed = (source, start, target, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high * WORD + low >= DAY_US) return '24:00:00';
  target.writeUInt32LE(low, at);
  target.writeInt32LE(high, at + 4);
  return undefined;
};

const MAX_INT64 = 0x7fff_ffff_ffff_ffffn;

/** Converts microseconds, days and months to Arrow's months, days and nanoseconds. */
export const writeInterval: WriteFixed = (source, start, target, at) => {
  const us = source.readBigInt64BE(start);
  const days = source.readInt32BE(start + 8);
  const months = source.readInt32BE(start + 12);
  if (months === MAX_INT32 && days === MAX_INT32 && us === MAX_INT64) return 'infinity';
  if (months === MIN_INT32 && days === MIN_INT32 && us === -MAX_INT64 - 1n) return '-infinity';
  const ns = us * 1_000n;
  if (ns > MAX_INT64 || ns < -MAX_INT64 - 1n) return 'more than 292 years in hours';
  target.writeInt32LE(months, at);
  target.writeInt32LE(days, at + 4);
  target.writeBigInt64LE(ns, at + 8);
  return undefined;
};

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

  addValue(source: Buffer, start: number, end: number): void {
    this.#write(source, start, end, this.#values);
    this.#offsets.push(this.#values.length);
    this.#validity.addValid();
  }

  addNull(): void {
    this.#offsets.push(this.#values.length);
    this.#validity.addNull();
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

export function writeVerbatim(skip = 0): WriteBytes {
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

  addValue(source: Buffer, start: number): void {
    this.#push(source[start] === 0 ? 0 : 1);
    this.#validity.addValid();
  }

  addNull(): void {
    this.#push(0);
    this.#validity.addNull();
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
 * Sizes in bytes within a binary array: its header (number of dimensions, flags, element type) and the entry of a
 * dimension (size, lower bound).
 */
const ARRAY_HEADER_BYTES = 12;
const DIMENSION_BYTES = 8;

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
  readonly #addElements: AddElements;
  readonly #offsets = new Offsets();
  readonly #validity = new ValidityBitmap();
  #count = 0;

  constructor(items: ArrowColumn, name: string, addElements: AddElements) {
    this.type = new List(new Field('item', items.type, true));
    this.#name = name;
    this.#items = items;
    this.#addElements = addElements;
  }

  addValue(source: Buffer, start: number, end: number): void {
    for (const _ of this.addInPortions(source, start, end));
  }

  *addInPortions(source: Buffer, start: number, end: number): Generator<void> {
    this.#count += yield* this.#addElements(source, start, end, this.#items, this.#name);
    this.#offsets.push(this.#count);
    this.#validity.addValid();
  }

  addNull(): void {
    this.#offsets.push(this.#count);
    this.#validity.addNull();
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
export function* addBinaryElements(...[source, start, , items, name]: Parameters<AddElements>) {
  const dimensions = source.readInt32BE(start);
  if (dimensions > 1) throw notRepresentable(name, `an array of ${dimensions} dimensions`);
  if (dimensions === 0) return 0;
  const size = source.readInt32BE(start + ARRAY_HEADER_BYTES);
  let at = start + ARRAY_HEADER_BYTES + DIMENSION_BYTES;
  let nextYield = at + PORTION_BYTES;
  for (let n = 0; n < size; n++) {
    const length = source.readInt32BE(at);
    at += 4;
    if (length < 0) items.addNull();
    else items.addValue(source, at, at + length);
    at += Math.max(length, 0);
    if (at < nextYield) continue;
    nextYield = at + PORTION_BYTES;
    yield;
  }
  return size;
}

/** Adds array elements from Postgres' text format, such as `{10.0.0.1,NULL}`. */
export function* addTextElements(...[source, start, end, items, name]: Parameters<AddElements>) {
  const reader = new ArrayReader(source, start, end);
  let count = 0;
  let depth = 0;
  let nextYield = start + PORTION_BYTES;
  for (let token = reader.next(PORTION_BYTES); token !== null; token = reader.next(PORTION_BYTES)) {
    if (token === 'open') depth += 1;
    if (depth > 1) throw notRepresentable(name, 'an array of several dimensions');
    if (token === 'null') items.addNull();
    if (token === 'element') {
      const item = reader.element();
      items.addValue(item, 0, item.length);
    }
    if (token === 'null' || token === 'element') count += 1;
    if (reader.at < nextYield) continue;
    nextYield = reader.at + PORTION_BYTES;
    yield;
  }
  return count;
}
