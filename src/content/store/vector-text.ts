import { fromSql, toSql } from 'pgvector';

/** `vector` and `halfvec` text. Six decimals say an f32 of a unit vector well enough, and are a third of the text. */
export function vectorText(vector: Float32Array): string {
  return toSql(Array.from(vector, (x) => (Number.isInteger(x) ? x : Math.round(x * 1e6) / 1e6)));
}

/** A `vector` as Postgres writes it. */
export function parseVector(text: string): Float32Array {
  return Float32Array.from(fromSql(text));
}

/** A Postgres array of integers. */
export function integersText(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}
