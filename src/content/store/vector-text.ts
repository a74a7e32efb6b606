/** `vector` and `halfvec` text. */
export function vectorText(vector: Float32Array): string {
  let out = '[';
  for (let i = 0; i < vector.length; i++) {
    if (i > 0) out += ',';
    out += shortest(vector[i] ?? 0);
  }
  return `${out}]`;
}

/** Six decimals say an f32 of a unit vector well enough, and are a third of the text. */
function shortest(value: number): string {
  return Number.isInteger(value) ? `${value}` : `${Math.round(value * 1e6) / 1e6}`;
}

/** A `vector` as Postgres writes it. */
export function parseVector(text: string): Float32Array {
  return Float32Array.from(text.slice(1, -1).split(','), Number);
}

/** A Postgres array of integers. */
export function integersText(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}
