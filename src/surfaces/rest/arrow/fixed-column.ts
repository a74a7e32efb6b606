import type { Data, DataType } from 'apache-arrow';
import { GrowingBytes, Validity } from './buffers.js';
import { type Column, dataOf, noValue } from './column.js';

/**
 * Writes the value at `source[start …)` in Arrow's byte order to `into[at …)`. Gives what the value is, such as
 * `infinity`, where Arrow has none like it.
 */
export type WriteFixed = (source: Buffer, start: number, into: Buffer, at: number) => string | undefined;

type View = new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayBufferView;

/** How values of one width lie in Arrow's memory. */
export interface Layout {
  readonly type: DataType;
  /** Bytes of a value. */
  readonly width: number;
  readonly view: View & { readonly BYTES_PER_ELEMENT: number };
  readonly write: WriteFixed;
}

/** Values of one width. */
export class FixedColumn implements Column {
  readonly type: DataType;
  readonly #layout: Layout;
  readonly #name: string;
  readonly #values: GrowingBytes;
  readonly #validity = new Validity();

  constructor(layout: Layout, name: string) {
    this.type = layout.type;
    this.#layout = layout;
    this.#name = name;
    this.#values = new GrowingBytes(256 * layout.width);
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

/** The `width` bytes of a number, which Postgres sends the other way round. */
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
