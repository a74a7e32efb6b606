import { Data, type DataType } from 'apache-arrow';
import { queryError } from 'osl-compiler';
import type { ValidityBitmap } from './buffers.js';

/** Accumulates the values of one column for one record batch. */
export interface ArrowColumn {
  readonly type: DataType;
  /**
   * Adds a value in Postgres' binary format from `source[start … end)`. @throws QueryError E4060 if Arrow cannot
   * represent it
   */
  value(source: Buffer, start: number, end: number): void;
  /** Like `value` for a large value: yields after each portion. */
  portions?(source: Buffer, start: number, end: number): Generator<void>;
  null(): void;
  /** Views of the accumulated data, valid until `clear`. */
  data(): Data;
  clear(): void;
}

/** Column data with validity. The order of buffers is Arrow's: offsets, values, bitmap. */
export function dataOf(
  type: DataType,
  validity: ValidityBitmap,
  offsets: Int32Array | undefined,
  values: ArrayBufferView | undefined,
  children: Data[] = [],
): Data {
  const bitmap = validity.nulls === 0 ? undefined : validity.bitmap();
  // The library types buffers by the column's array type, which is not known here.
  const buffers = [offsets, values, bitmap] as unknown as Data['buffers'];
  return new Data(type, 0, validity.length, validity.nulls, buffers, children);
}

/** Error for a value without Arrow equivalent, such as `infinity`. */
export function noValue(column: string, what: string) {
  return queryError('noArrowValue', { column, what });
}
