import { type QueryError, queryError } from 'osl-compiler';
import type { BoundValue } from '../../engine/index.js';

/** As many as the protocol can bind. */
const MAX_PARAMETERS = 65_535;

/**
 * Values of `$1 …` from a list of JSON scalars: text, numbers and booleans as Postgres reads them, null as NULL.
 * Numbers that JSON's readers round are refused: they are sent as strings.
 *
 * @throws QueryError E0511
 */
export function boundParameters(list: unknown): readonly BoundValue[] {
  if (!Array.isArray(list)) throw fault('`parameters` must be an array');
  if (list.length > MAX_PARAMETERS) {
    throw queryError('tooLarge', { what: 'the number of parameters', limit: MAX_PARAMETERS });
  }
  return list.map((value: unknown, i) => ({ format: 0 as const, bytes: bytesOf(value, i + 1) }));
}

function bytesOf(value: unknown, n: number): Uint8Array | null {
  if (value === null) return null;
  switch (typeof value) {
    case 'string':
      if (value.includes('\0')) throw fault(`parameter $${n} holds a NUL character`);
      return Buffer.from(value, 'utf8');
    case 'boolean':
      return Buffer.from(value ? 'true' : 'false');
    case 'number':
      if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
        throw fault(`parameter $${n} is a number that JSON does not carry exactly: send it as a string`);
      }
      return Buffer.from(`${value}`);
    default:
      throw fault(`parameter $${n} must be a string, a number, a boolean or null`);
  }
}

function fault(detail: string): QueryError {
  return queryError('malformedBody', { detail });
}
