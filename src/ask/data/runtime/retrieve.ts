import { type GovernedRuntime, type Position, queryError } from 'osl-compiler';
import type { StoredPassage } from '../content-plane.js';
import { NO_ROWS, type RuntimeInput, type RuntimeRows } from '../parts.js';
import { textValue } from './constants.js';
import { aboveMinScore, pageValues } from './passage.js';
import { callOf, passageRows } from './passage-rows.js';
import { candidatesOf, diversify, hybridSearch, poolOf, rerankPool, searchStore } from './search.js';

/**
 * Runs RETRIEVE: finds the passages, then applies the operators.
 *
 * @throws QueryError E0515 if the statement joins on a field that is redacted in a passage
 */
export async function retrieve(
  { relation, store, lexical, checkedKeys }: Extract<GovernedRuntime, { kind: 'retrieval' }>,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { content } = input.parts;
  const query = textValue(relation.query, input);
  if (query === null || query.trim() === '')
    throw queryError('typeMismatch', { detail: '`query` is empty', hint: null });
  if (query.length > LONGEST_QUERY)
    throw queryError('tooLarge', { what: 'the length of `query`', limit: LONGEST_QUERY });
  const page = pageValues(relation, input);
  const calls = relation.operators.map((use) => callOf(use, query, relation.facet.name, input));
  for (const call of calls) await content.check(call);
  if (store === null) return NO_ROWS;
  const { rerank } = relation;
  const searchPage = rerank === null ? poolOf(page) : candidatesOf(page, rerank);
  const pool =
    lexical === null
      ? aboveMinScore(await searchStore(store, query, searchPage, input), searchPage)
      : await hybridSearch(relation, { dense: store, lexical }, query, searchPage, input);
  const passages =
    rerank === null
      ? await diversify(pool, page, store, query, input)
      : await rerankPool(pool, page, rerank, query, input);
  requireClear(passages, checkedKeys);
  return passageRows(relation, store, passages, query, calls, input);
}

/** Maximum query length in UTF-16 code units. Longer ones would block the thread, and no model reads that far. */
const LONGEST_QUERY = 100_000;

/** Requires that join keys are not redacted: "cross-modal join execution order (2)" in the contract. */
function requireClear(passages: readonly StoredPassage[], keys: ReadonlyMap<string, Position | null>): void {
  for (const [column, position] of keys) {
    if (passages.some((p) => p.redactedFields.includes(column)))
      throw queryError('keyNotClear', { column }, position);
  }
}
