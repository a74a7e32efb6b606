import type { GovernedPlan } from 'osl-compiler';
import type { Answer, Versions } from '../spine/index.js';

/** What an answer says before its first row, whatever its layout. */
export interface AnswerHead {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly versions: Versions;
}

/** The members that are known after the last row. */
export function tailOf(answer: Answer) {
  const { plan, errors } = answer;
  return {
    row_count: answer.rows,
    truncated: answer.truncated || answer.clipped,
    redacted_columns: plan.redactedColumns,
    redacted_fields: answer.redactedFields,
    ...(plan.partialColumns.length === 0 ? {} : { partial_columns: plan.partialColumns }),
    ...(errors.length === 0
      ? {}
      : { errors: errors.map(({ chunkId, reason }) => ({ chunk_id: chunkId, reason })) }),
    versions: answer.versions,
  };
}
