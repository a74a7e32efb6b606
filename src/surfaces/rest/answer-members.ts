import { emit, explain, type GovernedPlan, mayBeRedacted, noticesOf, type OutputColumn } from 'osl-compiler';
import { explainPlan, type UpstreamDetail } from '../../ask/data/explain.js';
import { asOfText } from '../../ask/data/query-answer.js';
import {
  type AnswerParts,
  type DataQuestion,
  type QueryAnswer,
  type ServedVersions,
  versionsOf,
} from '../../ask/index.js';
import {
  columnsOf,
  type IssuedReceipt,
  ReceiptRequest,
  shownType,
} from '../../ask/receipts/receipt-request.js';
import type { Manifest } from '../../model/manifest/index.js';
import { malformed } from './request-errors.js';

export interface AnswerHead {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly versions: ServedVersions;
  /** For each output, true if it is redacted in any row. */
  readonly redacted: readonly boolean[];
}

function noticeMembers(plan: GovernedPlan) {
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

/** @param receipt the receipt of the answer; null if none was requested */
export function trailerOf(answer: QueryAnswer, receipt: IssuedReceipt | null) {
  const { plan, errors, indexes } = answer;
  return {
    row_count: answer.rows,
    truncated: answer.truncated || answer.clipped,
    ...noticeMembers(plan),
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
    ...receiptMember(receipt),
  };
}

function deprecatedIn(
  objects: readonly string[],
  { deprecated, bridges }: Manifest,
): { readonly deprecated?: readonly { readonly object: string; readonly reason: string }[] } {
  const found = objects.flatMap((object) => {
    const reason = deprecated.get(pathOf(object, bridges));
    return reason === undefined ? [] : [{ object, reason }];
  });
  return found.length === 0 ? {} : { deprecated: found };
}

/**
 * Converts a full name such as `osl.entities.<name>`, `osl.facets.<name>` or `osl.metrics.<name>` to its manifest path
 * (`section.name`).
 */
function pathOf(object: string, bridges: Manifest['bridges']): string {
  const [, section, name = ''] = object.split('.');
  return `${bridges.has(name) ? 'bridges' : section}.${name}`;
}

export async function explainQuestion(
  service: AnswerParts,
  question: DataQuestion,
  wanted: UpstreamDetail | null,
  signal: AbortSignal,
): Promise<object> {
  const { plan, caller, upstream } = await explainPlan(service, question, wanted, signal);
  const mayReadSql = caller.access.adminRoles.size > 0;
  return {
    request_id: question.requestId,
    form: plan.form,
    plan: explain(plan),
    objects: plan.objects,
    grants: plan.grants,
    columns: columnsOf(plan).map((c) => columnDescription(c, mayBeRedacted(c))),
    ...noticeMembers(plan),
    ...deprecatedIn(plan.objects, caller.manifest),
    ...(mayReadSql ? { sql: emit(plan).sql } : {}),
    ...(upstream !== null ? { upstream } : {}),
    versions: versionsOf(caller),
  };
}

/**
 * Describes a column in JSON. The key of a passage is always a string in JSON, whatever its type.
 *
 * @param redacted true if the column is redacted in any row
 */
export function columnDescription(column: OutputColumn, redacted: boolean) {
  const { name, source, format } = column;
  const shown = format === null ? {} : { format };
  return { name, type: shownType(column), source, redacted, ...shown };
}

/**
 * Reads the preference `receipt` of the header `Prefer` (RFC 7240): `receipt`, or `receipt=multiset` for a digest of
 * the rows that does not depend on their order.
 *
 * @returns null if no receipt is wanted
 * @throws QueryError E0511
 */
export function preferredReceipt(prefer: string | readonly string[] | undefined): ReceiptRequest | null {
  for (const preference of [prefer ?? []].flat().join(',').split(',')) {
    const [token = ''] = preference.split(';');
    const end = token.indexOf('=');
    const name = (end < 0 ? token : token.slice(0, end)).trim();
    if (name.toLowerCase() !== 'receipt') continue;
    const order = end < 0 ? 'sequence' : unquoted(token.slice(end + 1).trim());
    if (order === 'sequence' || order === 'multiset') return new ReceiptRequest(order);
    throw malformed('the preference `receipt` is `sequence` or `multiset`');
  }
  return null;
}

function unquoted(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

/** The receipt of an answer as a member of its trailer. */
function receiptMember(receipt: IssuedReceipt | null) {
  return receipt === null ? {} : { receipt };
}
