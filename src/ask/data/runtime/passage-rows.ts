import { setImmediate } from 'node:timers/promises';
import {
  assertNever,
  type GovernedStore,
  OPERATORS,
  type OperatorName,
  type Retrieval,
  rowBounds,
} from 'osl-compiler';
import { stopError } from '../../../engine/index.js';
import type { OperatorCall, QueryTerms, StoredPassage } from '../content-plane.js';
import type { RuntimeInput, RuntimeRows } from '../parts.js';
import { constantValue, textValue, wholeNumber } from './constants.js';
import {
  byChunkId,
  type LegShare,
  type LexicalScore,
  passagesJson,
  type ScoredPassage,
  shownScore,
} from './passage.js';
import { indexName } from './search.js';
import { operatorCallerOf } from './step.js';

export async function passageRows(
  relation: Retrieval,
  store: GovernedStore,
  passages: readonly ScoredPassage[],
  query: string,
  calls: readonly OperatorCall[],
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const errors: { chunkId: string; reason: string }[] = [];
  const sorted = [...passages].sort(byChunkId);
  const { content } = input.parts;
  const caller = operatorCallerOf(input);
  const top = passages.slice(0, neededPassages(relation, input));
  const needed = new Set<StoredPassage>(top);
  const results = new Map(await requestedColumns(relation, top, query, input));
  for (const call of calls) {
    const isDecoder = OPERATORS[call.use.operator].class === 'decoder';
    const inputs = isDecoder ? sorted.filter((p) => needed.has(p)) : sorted;
    if (!isDecoder) input.usage.addEmbedded(...call.values.values());
    const result = await content.run(indexName(store), call, query, inputs, caller);
    results.set(call.use.column, new Map(inputs.map((p, i) => [p.chunkId, result.values[i] ?? null])));
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

export function callOf(
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

/** Returns the number of passages that can appear in the answer; a model need not process any others. */
function neededPassages({ source }: Retrieval, input: RuntimeInput): number {
  const rows = rowBounds(input.plan.query, source);
  if (rows === null) return Number.POSITIVE_INFINITY;
  const offset = rows.offset === null ? null : textValue(rows.offset, input);
  const count = wholeNumber(textValue(rows.limit, input)) + wholeNumber(offset ?? '0');
  // LIMIT NULL means no limit; the database rejects non-numbers.
  return Number.isNaN(count) ? Number.POSITIVE_INFINITY : count;
}

/** Number of characters processed between two yields to the event loop. */
const SLICE = 4_096;

const NO_SPELLINGS: TokenizedQuery['spellings'] = new Map();

/**
 * Computes `highlights` and `score_parts`, by column and chunk id, from the text shown to the caller and from counts
 * over permitted passages.
 */
async function requestedColumns(
  { facet, asked: requested, columns, page }: Retrieval,
  passages: readonly ScoredPassage[],
  query: string,
  input: RuntimeInput,
): Promise<ReadonlyMap<string, ReadonlyMap<string, unknown>>> {
  const used = requested.filter((name) => columns.some((c) => c.name === name));
  const byColumn = new Map(used.map((name) => [name, new Map<string, unknown>()]));
  if (used.length === 0) return byColumn;
  const lexical = await input.parts.content.lexicalQuery(facet.name, query);
  const spellings = used.includes('score_parts') ? await lexical.spellings() : NO_SPELLINGS;
  const words: TokenizedQuery = { occurrences: (text) => lexical.occurrences(text), spellings };
  let processed = query.length;
  for (const passage of passages) {
    if (processed > SLICE) {
      processed = 0;
      await setImmediate();
      if (input.signal?.aborted === true) throw stopError(input.signal);
    }
    processed += passage.text.length;
    for (const [name, values] of byColumn)
      values.set(passage.chunkId, requestedValue(name, passage, words, page));
  }
  return byColumn;
}

function requestedValue(
  name: Retrieval['asked'][number],
  passage: ScoredPassage,
  query: TokenizedQuery,
  { per }: Retrieval['page'],
): unknown {
  switch (name) {
    case 'highlights':
      return query.occurrences(passage.text).spans;
    case 'score_parts':
      return scoreParts(passage, query, per === 'document');
  }
}

/** The tokenized query. */
interface TokenizedQuery {
  readonly occurrences: QueryTerms['occurrences'];
  readonly spellings: Awaited<ReturnType<QueryTerms['spellings']>>;
}

/** Breaks down the score of `passage`; at each level the parts add up to the shown score. */
function scoreParts(passage: ScoredPassage, query: TokenizedQuery, ofDocuments: boolean): object {
  const { explanation } = passage;
  const score = shownScore(passage.score);
  switch (explanation.by) {
    case 'lexical':
      return { mode: explanation.by, score, terms: termParts(passage, explanation, query) };
    case 'dense':
      return { mode: explanation.by, score, similarity: score };
    case 'hybrid': {
      const parts = roundToTotal(
        explanation.legs.map(({ share }) => share),
        score,
      );
      const legs = explanation.legs.map((leg, i) => legPart(leg, parts[i] ?? 0, query, ofDocuments));
      return { mode: explanation.by, score, fuse: explanation.fuse, legs };
    }
    case 'reranker': {
      const { passage: passageBefore, rank } = explanation.before;
      const search = { rank, ...scoreParts(passageBefore, query, ofDocuments) };
      return { mode: 'reranked', score, reranker: explanation.reranker, search };
    }
    default:
      return assertNever(explanation);
  }
}

function legPart(
  { leg, weight, match }: LegShare,
  part: number,
  query: TokenizedQuery,
  ofDocuments: boolean,
) {
  if (match === null) return { leg, weight, rank: null, score: null, part };
  const { passage, rank } = match;
  const { explanation } = passage;
  return {
    leg,
    weight,
    rank,
    score: shownScore(passage.score),
    part,
    // The two legs (lexical and dense search) may have found different passages of a document.
    ...(ofDocuments ? { chunk_id: passage.chunkId } : {}),
    ...(explanation.by === 'lexical' ? { terms: termParts(passage, explanation, query) } : {}),
  };
}

/** Returns the matched query words, sorted by contribution in descending order, then in query order. */
function termParts({ text, score }: ScoredPassage, { words, weights }: LexicalScore, query: TokenizedQuery) {
  const inPassage = weightsOf(weights ?? '');
  const rarities = new Map(words.map(({ term, rarity }) => [term, rarity]));
  const { counts } = query.occurrences(text);
  const matched = [...query.spellings].flatMap(([id, { term, times }]) => {
    const [weight, rarity] = [inPassage.get(id), rarities.get(id)];
    if (weight === undefined || rarity === undefined) return [];
    return [{ term, query_tf: times, idf: rarity, tf: counts.get(id) ?? 0, part: times * rarity * weight }];
  });
  const parts = roundToTotal(
    matched.map(({ part }) => part),
    shownScore(score),
  );
  return matched
    .map((m, i) => ({ ...m, idf: shownScore(m.idf), part: parts[i] ?? 0 }))
    .sort((a, b) => b.part - a.part);
}

/** Parses the components of a sparse vector in pgvector's text format, `{1:0.5,7:2}/9`. */
function weightsOf(text: string): ReadonlyMap<number, number> {
  return new Map([...text.matchAll(/(\d+):([^,}]+)/g)].map(([, id, weight]) => [Number(id), Number(weight)]));
}

/** Rounds the parts to six decimals; the largest part absorbs the rounding error. */
function roundToTotal(parts: readonly number[], total: number): readonly number[] {
  const millionths = parts.map(inMillionths);
  const roundingError = inMillionths(total) - millionths.reduce((sum, part) => sum + part, 0);
  const largest = millionths.indexOf(Math.max(...millionths));
  return millionths.map((part, i) => shownScore((i === largest ? part + roundingError : part) / 1e6));
}

function inMillionths(score: number): number {
  return Math.round(shownScore(score) * 1e6);
}

const MAX_ARGUMENT_LENGTH = 4_000;
/** Matches a trailing high surrogate, left over when truncation splits a surrogate pair. */
const TRAILING_SURROGATE = /[\ud800-\udbff]$/;
const MAX_LABELS = 64;
/** Minimum length of a word used as a label; shorter ones rarely describe a text. */
const MIN_LABEL_LENGTH = 3;

const FOUR_FIELDS = Object.freeze({
  type: 'object',
  properties: {
    who: { type: 'string' },
    what: { type: 'string' },
    when: { type: 'string' },
    where: { type: 'string' },
  },
});

/** Derives the default arguments of an operator from the query. @param labels the labels that the facet declares */
function defaultArguments(
  operator: OperatorName,
  query: string,
  labels: readonly unknown[],
): readonly (readonly [name: string, value: unknown])[] {
  const question = query.trim().slice(0, MAX_ARGUMENT_LENGTH).replace(TRAILING_SURROGATE, '');
  switch (operator) {
    case 'CLASSIFY':
    case 'TAG':
      return [['labels', labels.length > 0 ? labels : wordsOf(question)]];
    case 'EXTRACT':
      return [['schema', FOUR_FIELDS]];
    case 'SCORE':
      return [['rubric', `How well does the passage answer this: ${question}`]];
    case 'GENERATE':
      return [['instruction', `Answer this with what the passage says, and nothing else: ${question}`]];
    case 'COMPLETE':
      return [['prompt', `${question}\n\n{text}`]];
    case 'SIMILARITY':
    case 'RANK':
    case 'DEDUP':
    case 'OUTLIER':
    case 'CLUSTER':
    case 'SUMMARIZE':
      return [];
    default:
      return assertNever(operator);
  }
}

/** Returns the distinct words of a query as labels, or the whole query if it contains no words. */
function wordsOf(query: string): readonly string[] {
  const words = new Set(query.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []);
  const long = [...words].filter((word) => word.length >= MIN_LABEL_LENGTH);
  const labels = long.length > 0 ? long : [...words];
  return labels.length > 0 ? labels.slice(0, MAX_LABELS) : [query];
}
