import { type Retrieval, wantedRows } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { textValue, wholeNumber } from './constants.js';

/** How many passages, best first, can stand in the answer, so that no model need be asked about the others. */
export function passagesWanted({ source }: Retrieval, input: RuntimeInput): number {
  const rows = wantedRows(input.plan.query, source);
  if (rows === null) return Number.POSITIVE_INFINITY;
  const offset = rows.offset === null ? null : textValue(rows.offset, input);
  const wanted = wholeNumber(textValue(rows.limit, input)) + wholeNumber(offset ?? '0');
  // LIMIT NULL is no limit, and what is no number the database refuses.
  return Number.isNaN(wanted) ? Number.POSITIVE_INFINITY : wanted;
}
