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
 * Computes `highlights` and `score_parts`, by column and chunk id, from the text shown to the caller and from counts
 * over permitted passages.
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

/** The tokenized query. */
interface WrittenQuery {
  readonly occurrences: QueryTerms['occurrences'];
  readonly written: Awaited<ReturnType<QueryTerms['written']>>;
}

/** Breaks down the score of `passage`; at each level the parts add up to the shown score. */
function scoreParts(passage: ScoredPassage, query: WrittenQuery, ofDocuments: boolean): object {
  const { why } = passage;
  const score = shownScore(passage.score);
  switch (why.by) {
    case 'lexical':
      return { mode: why.by, score, terms: termParts(passage, why, query) };
    case 'dense':
      return { mode: why.by, score, similarity: score };
    case 'hybrid': {
      const parts = addingUp(
        why.legs.map(({ share }) => share),
        score,
      );
      const legs = why.legs.map((leg, i) => legPart(leg, parts[i] ?? 0, query, ofDocuments));
      return { mode: why.by, score, fuse: why.fuse, legs };
    }
    case 'reranker': {
      const { passage: found, rank } = why.found;
      const search = { rank, ...scoreParts(found, query, ofDocuments) };
      return { mode: 'reranked', score, reranker: why.reranker, search };
    }
    default:
      return assertNever(why);
  }
}

function legPart({ leg, weight, found }: LegShare, part: number, query: WrittenQuery, ofDocuments: boolean) {
  if (found === null) return { leg, weight, rank: null, score: null, part };
  const { passage, rank } = found;
  const { why } = passage;
  return {
    leg,
    weight,
    rank,
    score: shownScore(passage.score),
    part,
    // The two legs (lexical and dense search) may have found different passages of a document.
    ...(ofDocuments ? { chunk_id: passage.chunkId } : {}),
    ...(why.by === 'lexical' ? { terms: termParts(passage, why, query) } : {}),
  };
}

/** Returns the matched query words, sorted by contribution in descending order, then in query order. */
function termParts({ text, score }: ScoredPassage, { words, weights }: LexicalScore, query: WrittenQuery) {
  const inPassage = weightsOf(weights ?? '');
  const rarities = new Map(words.map(({ term, rarity }) => [term, rarity]));
  const { counts } = query.occurrences(text);
  const matched = [...query.written].flatMap(([id, { term, times }]) => {
    const [weight, rarity] = [inPassage.get(id), rarities.get(id)];
    if (weight === undefined || rarity === undefined) return [];
    return [{ term, query_tf: times, idf: rarity, tf: counts.get(id) ?? 0, part: times * rarity * weight }];
  });
  const parts = addingUp(
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
function addingUp(parts: readonly number[], total: number): readonly number[] {
  const millionths = parts.map(inMillionths);
  const rest = inMillionths(total) - millionths.reduce((sum, part) => sum + part, 0);
  const largest = millionths.indexOf(Math.max(...millionths));
  return millionths.map((part, i) => shownScore((i === largest ? part + rest : part) / 1e6));
}

function inMillionths(score: number): number {
  return Math.round(shownScore(score) * 1e6);
}

const LONGEST_ARGUMENT = 4_000;
/** Matches a trailing high surrogate, left over when truncation splits a surrogate pair. */
const HALF_A_PAIR = /[\ud800-\udbff]$/;
const MOST_LABELS = 64;
/** Minimum length of a word used as a label; shorter ones rarely describe a text. */
const SHORTEST_LABEL = 3;

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
  const asked = query.trim().slice(0, LONGEST_ARGUMENT).replace(HALF_A_PAIR, '');
  switch (operator) {
    case 'CLASSIFY':
    case 'TAG':
      return [['labels', labels.length > 0 ? labels : wordsOf(asked)]];
    case 'EXTRACT':
      return [['schema', FOUR_FIELDS]];
    case 'SCORE':
      return [['rubric', `How well does the passage answer this: ${asked}`]];
    case 'GENERATE':
      return [['instruction', `Answer this with what the passage says, and nothing else: ${asked}`]];
    case 'COMPLETE':
      return [['prompt', `${asked}\n\n{text}`]];
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
  const long = [...words].filter((word) => word.length >= SHORTEST_LABEL);
  const labels = long.length > 0 ? long : [...words];
  return labels.length > 0 ? labels.slice(0, MOST_LABELS) : [query];
}
