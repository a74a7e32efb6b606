import { Data, type DataType } from 'apache-arrow';
import { queryError } from 'osl-compiler';
import type { ValidityBitmap } from './buffers.js';

/** The values of one column of one record batch, as they are gathered. */
export interface ArrowColumn {
  readonly type: DataType;
  /** One value in Postgres' binary format, in `source[start … end)`. @throws QueryError E4060 where Arrow has no such value */
  value(source: Buffer, start: number, end: number): void;
  /** As `value`, of a value that may be large and takes its time: stops after each portion of it. */
  portions?(source: Buffer, start: number, end: number): Generator<void>;
  null(): void;
  /** What was gathered; views, which hold until `clear`. */
  data(): Data;
  clear(): void;
}

/** A column's data with its validity. The order of the buffers is Arrow's: offsets, values, bitmap. */
export function dataOf(
  type: DataType,
  validity: ValidityBitmap,
  offsets: Int32Array | undefined,
  values: ArrayBufferView | undefined,
  children: Data[] = [],
): Data {
  const bitmap = validity.nulls === 0 ? undefined : validity.bitmap();
  // The library types these by the type's own array, which is not known here.
  const buffers = [offsets, values, bitmap] as unknown as Data['buffers'];
  return new Data(type, 0, validity.length, validity.nulls, buffers, children);
}

/** There is no value of the column's Arrow type for `what`, such as `infinity`. */
export function noValue(column: string, what: string) {
  return queryError('noArrowValue', { column, what });
}
