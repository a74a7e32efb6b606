import type { AnswerColumn } from '../../api/ask.js';
import type { Described } from './useAnswer.js';

/**
 * Full names of what a masked column of an answer rests on: its own column, or for one that was worked out all that are
 * masked in the answer. Null where the column is not masked.
 */
export function whyObjects(
  column: AnswerColumn | undefined,
  { redacted_columns }: Pick<Described, 'redacted_columns'>,
): readonly string[] | null {
  if (column === undefined || !column.redacted) return null;
  if (column.source !== null) return [column.source];
  return redacted_columns.map((name) => `osl.entities.${name}`);
}
