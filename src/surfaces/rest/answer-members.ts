import { type GovernedPlan, noticesOf } from 'osl-compiler';
import { asOfText } from '../../ask/data/freshness.js';
import type { Answer, Versions } from '../../ask/index.js';

/** What an answer says before its first row, whatever its layout. */
export interface AnswerHead {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly versions: Versions;
  /** For each output, true if something in it is redacted in some row. */
  readonly redacted: readonly boolean[];
}

/** What masks do to an answer, and what else its reader must know of it, as its plan knows. */
export function toldOf(plan: GovernedPlan) {
  const { redactedColumns, maskedColumns, partialColumns } = plan;
  const notices = noticesOf(plan);
  const conditions = maskedColumns.filter((name) => !redactedColumns.includes(name));
  return {
    redacted_columns: redactedColumns,
    ...(conditions.length === 0 ? {} : { redacted_conditions: conditions }),
    ...(partialColumns.length === 0 ? {} : { partial_columns: partialColumns }),
    ...(notices.length === 0 ? {} : { notices }),
  };
}

/** The members that are known after the last row. */
export function tailOf(answer: Answer) {
  const { plan, errors, indexes } = answer;
  return {
    row_count: answer.rows,
    truncated: answer.truncated || answer.clipped,
    ...toldOf(plan),
    redacted_fields: answer.redactedFields,
    ...(indexes.length === 0
      ? {}
      : { indexes: indexes.map(({ facet, indexedAt }) => ({ facet, indexed_at: indexedAt })) }),
    ...(errors.length === 0
      ? {}
      : { errors: errors.map(({ chunkId, reason }) => ({ chunk_id: chunkId, reason })) }),
    ...(answer.freshness === null
      ? {}
      : { freshness: { from: answer.freshness.from, as_of: asOfText(answer.freshness) } }),
    versions: answer.versions,
  };
}
