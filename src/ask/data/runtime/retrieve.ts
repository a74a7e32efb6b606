import { setImmediate } from 'node:timers/promises';
import {
  type GovernedRuntime,
  type GovernedStore,
  OPERATORS,
  type Position,
  queryError,
  type Retrieval,
  rowBounds,
} from 'osl-compiler';
import { stopError } from '../../../engine/index.js';
import type { OperatorCall, StoredPassage } from '../content-plane.js';
import { NOTHING, type RuntimeInput, type RuntimeRows } from '../parts.js';
import { constantValue, textValue, wholeNumber } from './constants.js';
import { defaultArguments } from './default-arguments.js';
import { aboveMinScore, type PageValues, pageValues, type ScoredPassage } from './page.js';
import { passagesJson } from './passage.js';
import { scoreParts, type WrittenQuery } from './score-parts.js';
import { best, bestOfBoth, indexName } from './search.js';
import { operatorCallerOf } from './step.js';

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
  if (store === null) return NOTHING;
  const { rerank } = relation;
  const from = rerank === null ? poolOf(page) : candidatesOf(page, rerank);
  const pool =
    lexical === null
      ? aboveMinScore(await best(store, query, from, input), from)
      : await bestOfBoth(relation, { dense: store, lexical }, query, from, input);
  const passages =
    rerank === null
      ? await diverse(pool, page, store, query, input)
      : await reranked(pool, page, rerank, query, input);
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

async function passageRows(
  relation: Retrieval,
  store: GovernedStore,
  passages: readonly ScoredPassage[],
  query: string,
  calls: readonly OperatorCall[],
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const errors: { chunkId: string; reason: string }[] = [];
  const sorted = [...passages].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content } = input.parts;
  const by = operatorCallerOf(input);
  const first = passages.slice(0, passagesWanted(relation, input));
  const wanted = new Set<StoredPassage>(first);
  const results = new Map(await askedColumns(relation, first, query, input));
  for (const call of calls) {
    const isDecoder = OPERATORS[call.use.operator].class === 'decoder';
    const read = isDecoder ? sorted.filter((p) => wanted.has(p)) : sorted;
    if (!isDecoder) input.spending.addEmbedded(...call.values.values());
    const result = await content.run(indexName(store), call, query, read, by);
    results.set(call.use.column, new Map(read.map((p, i) => [p.chunkId, result.values[i] ?? null])));
    errors.push(...result.errors);
  }
  return {
    json: await passagesJson(relation, store, passages, results),
    keys: (column) => [...new Set(passages.map((p) => p.fields.get(column) ?? null))],
    clip: null,
    redacted: new Set(passages.flatMap((p) => [...p.redactedFields, ...(p.isTextRedacted ? ['text'] : [])])),
    errors,
  };
}

function callOf(
  use: Retrieval['operators'][number],
  query: string,
  facet: string,
  input: RuntimeInput,
): OperatorCall {
  const values = new Map([...use.arguments].map(([name, e]) => [name, constantValue(e, input)]));
  const labels = input.caller.manifest.facets.get(facet)?.labels ?? [];
  for (const [name, value] of defaultArguments(use.operator, query, labels)) {
    if ((values.get(name) ?? null) === null) values.set(name, value);
  }
  return { use, values };
}

/** Number of passages that can appear in the answer; a model need not process any others. */
function passagesWanted({ source }: Retrieval, input: RuntimeInput): number {
  const rows = rowBounds(input.plan.query, source);
  if (rows === null) return Number.POSITIVE_INFINITY;
  const offset = rows.offset === null ? null : textValue(rows.offset, input);
  const wanted = wholeNumber(textValue(rows.limit, input)) + wholeNumber(offset ?? '0');
  // LIMIT NULL means no limit; the database rejects non-numbers.
  return Number.isNaN(wanted) ? Number.POSITIVE_INFINITY : wanted;
}

/** Number of characters processed between two yields to the event loop. */
const SLICE = 4_096;

const NOTHING_WRITTEN: WrittenQuery['written'] = new Map();

/**
 * `highlights` and `score_parts`, by column and chunk id. They are computed from the text shown to the caller and from
 * counts over permitted passages.
 */
async function askedColumns(
  { facet, asked, columns, page }: Retrieval,
  passages: readonly ScoredPassage[],
  query: string,
  input: RuntimeInput,
): Promise<ReadonlyMap<string, ReadonlyMap<string, unknown>>> {
  const used = asked.filter((name) => columns.some((c) => c.name === name));
  const found = new Map(used.map((name) => [name, new Map<string, unknown>()]));
  if (used.length === 0) return found;
  const lexical = await input.parts.content.lexicalQuery(facet.name, query);
  const written = used.includes('score_parts') ? await lexical.written() : NOTHING_WRITTEN;
  const words: WrittenQuery = { occurrences: (text) => lexical.occurrences(text), written };
  let looked = query.length;
  for (const passage of passages) {
    if (looked > SLICE) {
      looked = 0;
      await setImmediate();
      if (input.signal?.aborted === true) throw stopError(input.signal);
    }
    looked += passage.text.length;
    for (const [name, values] of found) values.set(passage.chunkId, askedValue(name, passage, words, page));
  }
  return found;
}

function askedValue(
  name: Retrieval['asked'][number],
  passage: ScoredPassage,
  query: WrittenQuery,
  { per }: Retrieval['page'],
): unknown {
  switch (name) {
    case 'highlights':
      return query.occurrences(passage.text).spans;
    case 'score_parts':
      return scoreParts(passage, query, per === 'document');
  }
}

type Rerank = NonNullable<Retrieval['rerank']>;

/**
 * The page of candidates for the reranker: the best passages of the search.
 *
 * @throws QueryError E0511 if the requested page extends beyond the candidates
 */
function candidatesOf(page: PageValues, { name, candidates }: Rerank): PageValues {
  if (page.skip + page.topK > candidates) {
    const detail = `\`skip\` and \`top_k\` are together ${candidates} at most where \`${name}\` orders the passages`;
    throw queryError('typeMismatch', { detail, hint: 'it is sent no more of the best passages' });
  }
  return { ...page, skip: 0, topK: candidates, minScore: null };
}

/**
 * Reorders `pool` by the reranker's scores (ties keep the search order) and takes the page. The reranker gets only
 * texts that the caller would see.
 */
async function reranked(
  pool: readonly ScoredPassage[],
  page: PageValues,
  { name }: Rerank,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (pool.length === 0) return pool;
  const { caller, signal, spending, parts } = input;
  const by = { subject: caller.identity.subject, signal, spend: spending.addReranked.bind(spending) };
  const texts = pool.map((p) => p.text);
  const scores = await parts.content.rerank(name, query, texts, by);
  const scored = pool.map((passage, i): ScoredPassage => {
    const found = { passage, rank: i + 1 };
    return { ...passage, score: scores[i] ?? 0, why: { by: 'reranker', reranker: name, found } };
  });
  const ordered = scored.sort((a, b) => b.score - a.score);
  return aboveMinScore(ordered, page).slice(page.skip, page.skip + page.topK);
}

/** Pool size for diversification: `each` times the number of passages wanted, but at least `least`. */
const POOL = { each: 4, least: 50 };
/** Limits the size of the page, since diversification takes quadratic time. */
const MOST_WANTED = 250;

/** The page to diversify. @throws QueryError E0511 if it would be too large */
function poolOf(page: PageValues): PageValues {
  if (page.diversity === null) return page;
  const wanted = page.skip + page.topK;
  if (wanted > MOST_WANTED) {
    const detail = `\`skip\` and \`top_k\` are together ${MOST_WANTED} at most where \`diversity\` is asked for`;
    throw queryError('typeMismatch', { detail, hint: null });
  }
  return { ...page, skip: 0, topK: Math.max(POOL.least, POOL.each * wanted) };
}

/** Reorders `pool` by RANK, which penalizes passages similar to earlier ones, and takes the page. */
async function diverse(
  pool: readonly ScoredPassage[],
  page: PageValues,
  store: GovernedStore,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (page.diversity === null || pool.length === 0) return pool;
  const sorted = [...pool].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content } = input.parts;
  const by = operatorCallerOf(input);
  const { values } = await content.run(indexName(store), rankCall(1 - page.diversity), query, sorted, by);
  const places = new Map(sorted.map((p, i) => [p, Number(values[i])]));
  return [...sorted]
    .sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))
    .slice(page.skip, page.skip + page.topK);
}

function rankCall(lambda: number): OperatorCall {
  const use = { operator: 'RANK', column: '#diverse', type: 'int4', arguments: new Map() } as const;
  return { use, values: new Map([['lambda', lambda]]) };
}
