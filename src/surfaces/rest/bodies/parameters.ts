import type { BoundValue } from '../../../engine/index.js';
import { malformed } from '../fault.js';
import { list, type Shape } from '../shape.js';

const SCALAR: Shape<string | number | boolean | null> = { type: ['string', 'number', 'boolean', 'null'] };

/** At most as many as the protocol can bind. */
export const PARAMETERS = list(
  SCALAR,
  'Values of `$1 …`. Numbers that JSON does not carry exactly are sent as strings.',
  { maxItems: 65_535 },
);

/**
 * Values of `$1 …` from a list of JSON scalars: text, numbers and booleans as Postgres reads them, null as NULL.
 * Numbers that JSON's readers round were refused with the body: they are sent as strings.
 *
 * @throws QueryError E0511
 */
export function boundParameters(list: readonly (string | number | boolean | null)[]): readonly BoundValue[] {
  return list.map((value, i) => ({ format: 0 as const, bytes: bytesOf(value, i + 1) }));
}

function bytesOf(value: string | number | boolean | null, n: number): Uint8Array | null {
  if (value === null) return null;
  if (typeof value === 'string' && value.includes('\0'))
    throw malformed(`parameter $${n} holds a NUL character`);
  return Buffer.from(`${value}`, 'utf8');
}
