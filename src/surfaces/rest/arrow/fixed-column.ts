import type { Data, DataType } from 'apache-arrow';
import { ArrowBytes, type ArrowColumn, dataOf, noValue, ValidityBitmap } from './buffers.js';

/**
 * Writes the value at `source[start …)` to `into[at …)` in Arrow's byte order. If Arrow cannot represent the value,
 * returns a description of it such as `infinity`.
 */
export type WriteFixed = (source: Buffer, start: number, into: Buffer, at: number) => string | undefined;

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

  value(source: Buffer, start: number): void {
    const { width, write } = this.#layout;
    this.#values.reserve(width);
    const unfit = write(source, start, this.#values.bytes, this.#values.length);
    if (unfit !== undefined) throw noValue(this.#name, unfit);
    this.#values.length += width;
    this.#validity.valid();
  }

  null(): void {
    const { width } = this.#layout;
    this.#values.reserve(width);
    this.#values.bytes.fill(0, this.#values.length, this.#values.length + width);
    this.#values.length += width;
    this.#validity.null();
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
export function reverse(width: 2 | 4 | 8): WriteFixed {
  return (source, start, into, at) => {
    for (let n = 0; n < width; n++) into[at + n] = source[start + width - 1 - n] ?? 0;
    return undefined;
  };
}

export const copy =
  (width: number): WriteFixed =>
  (source, start, into, at) => {
    source.copy(into, at, start, start + width);
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
export const date: WriteFixed = (source, start, into, at) => {
  const days = source.readInt32BE(start);
  if (days === MAX_INT32) return 'infinity';
  if (days === MIN_INT32) return '-infinity';
  into.writeInt32LE(days + EPOCH_DAYS, at);
  return undefined;
};

/** Converts microseconds since 2000 to microseconds since 1970; Arrow lacks the last 48 years of Postgres' range. */
export const timestamp: WriteFixed = (source, start, into, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high === MAX_INT32 && low === MAX_UINT32) return 'infinity';
  if (high === MIN_INT32 && low === 0) return '-infinity';
  const sum = low + EPOCH_LOW;
  const carry = sum >= WORD ? 1 : 0;
  const total = high + EPOCH_HIGH + carry;
  if (total > MAX_INT32) return 'a time after 294247-01-10';
  into.writeUInt32LE(sum - carry * WORD, at);
  into.writeInt32LE(total, at + 4);
  return undefined;
};

/** Converts microseconds since midnight; Arrow cannot represent 24:00:00. */
export const time: WriteFixed = (source, start, into, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high * WORD + low >= DAY_US) return '24:00:00';
  into.writeUInt32LE(low, at);
  into.writeInt32LE(high, at + 4);
  return undefined;
};

const MAX_INT64 = 0x7fff_ffff_ffff_ffffn;

/** Converts microseconds, days and months to Arrow's months, days and nanoseconds. */
export const interval: WriteFixed = (source, start, into, at) => {
  const us = source.readBigInt64BE(start);
  const days = source.readInt32BE(start + 8);
  const months = source.readInt32BE(start + 12);
  if (months === MAX_INT32 && days === MAX_INT32 && us === MAX_INT64) return 'infinity';
  if (months === MIN_INT32 && days === MIN_INT32 && us === -MAX_INT64 - 1n) return '-infinity';
  const ns = us * 1_000n;
  if (ns > MAX_INT64 || ns < -MAX_INT64 - 1n) return 'more than 292 years in hours';
  into.writeInt32LE(months, at);
  into.writeInt32LE(days, at + 4);
  into.writeBigInt64LE(ns, at + 8);
  return undefined;
};
