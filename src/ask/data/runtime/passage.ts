import { setImmediate } from 'node:timers/promises';
import {
  type GovernedStore,
  isStored,
  isVisibleFlag,
  MAX_SKIP,
  ORDINAL,
  queryError,
  REDACTED,
  type Retrieval,
  type StoredName,
  stored,
  type TypeName,
  visibleColumnName,
} from 'osl-compiler';
import type { StoredPassage } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { elements, jsonValue, textValue, wholeNumber } from './constants.js';
import type { TextRow } from './step.js';

export function passageOf(row: TextRow, store: GovernedStore): StoredPassage {
  const text = (name: StoredName): string => row.get(stored(name)) ?? '';
  const distance = Number(text('distance'));
  return {
    chunkId: text('chunk_id'),
    docId: text('doc_id'),
    source: text('source'),
    start: Number(text('start_char')),
    end: Number(text('end_char')),
    text: text('text'),
    sha256: text('sha256'),
    redactedFields: redactedIn(row, store),
    isTextRedacted: store.redacts && text('text').includes(REDACTED),
    score: store.counts === null ? 1 - distance : -distance,
    vector: row.get(stored('vector')) ?? null,
    fields: fieldsIn(row),
  };
}

/** Returns the entity key and metadata: all columns except the store's own and policy flags. */
function fieldsIn(row: TextRow): ReadonlyMap<string, string | null> {
  const fields = new Map<string, string | null>();
  for (const [name, value] of row) if (!isStored(name) && !isVisibleFlag(name)) fields.set(name, value);
  return fields;
}

/** Returns the known fields that are masked in this passage, by its redaction version or by policy. */
function redactedIn(row: TextRow, { fields }: GovernedStore): readonly string[] {
  const byVersion = new Set(elements(row.get(stored('redacted_fields')) ?? null));
  const isHidden = (name: string): boolean => (row.get(visibleColumnName(name)) ?? 't') !== 't';
  return fields.shown.filter((n) => fields.masked.has(n) || byVersion.has(n) || isHidden(n));
}

/** Returns a citation. Its offsets and hash refer to the served version of the document. */
export function citeOf(p: StoredPassage, store: GovernedStore) {
  return {
    source: p.source,
    doc_id: p.docId,
    chunk_id: p.chunkId,
    facet: store.facet.name,
    version: store.version,
    start: p.start,
    end: p.end,
    sha256: p.sha256,
  };
}

export function typeNamed(
  columns: readonly { readonly name: string; readonly type: TypeName }[],
  name: string,
): TypeName {
  return columns.find((c) => c.name === name)?.type ?? 'text';
}

/** Number of passages processed between two yields to the event loop. */
const SLICE = 250;

/**
 * Encodes passages as a JSON array for the statement, with the columns that it uses.
 *
 * @param results computed columns, by column and chunk id
 */
export async function passagesJson(
  { columns }: Retrieval,
  store: GovernedStore,
  passages: readonly StoredPassage[],
  results: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): Promise<string> {
  const slices: string[] = [];
  for (let from = 0; from < passages.length; from += SLICE) {
    if (from > 0) await setImmediate();
    const rows = passages.slice(from, from + SLICE).map((passage, i) => {
      const members = columns.map(
        (column) => `${JSON.stringify(column.name)}:${cellJson(column, passage, from + i, store, results)}`,
      );
      return `{${members.join()}}`;
    });
    slices.push(rows.join());
  }
  return `[${slices.join(',')}]`;
}

/** Encodes a cell as JSON. Metadata of type jsonb stays as it is, since parsing it would round large numbers. */
function cellJson(
  { name, type }: Retrieval['columns'][number],
  passage: StoredPassage,
  index: number,
  store: GovernedStore,
  results: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): string {
  const json = type === 'jsonb' && !results.has(name) ? (passage.fields.get(name) ?? null) : null;
  return json ?? JSON.stringify(cellOf(name, type, passage, index, store, results) ?? null);
}

function cellOf(
  name: string,
  type: TypeName,
  passage: StoredPassage,
  index: number,
  store: GovernedStore,
  results: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): unknown {
  switch (name) {
    case 'text':
      return passage.text;
    case 'score':
      return shownScore(passage.score);
    case 'cite':
      return citeOf(passage, store);
    case 'redacted_fields':
      return passage.redactedFields;
    case ORDINAL:
      return index + 1;
    default: {
      const computed = results.get(name);
      if (computed !== undefined) return computed.get(passage.chunkId) ?? null;
      return jsonValue(passage.fields.get(name) ?? null, type);
    }
  }
}

/** Values of the page arguments. */
export interface PageValues {
  readonly topK: number;
  readonly skip: number;
  readonly minScore: number | null;
  readonly ofDocuments: boolean;
  /** Weight of diversity, from 0 to 1; if null, passages are sorted by score only. */
  readonly diversity: number | null;
}

/** Reads the page arguments of a RETRIEVE. @throws QueryError E0511 */
export function pageValues({ topK, page, facet }: Retrieval, input: RuntimeInput): PageValues {
  const { per, skip, minScore, diversity } = page;
  return {
    topK: countIn('top_k', wholeNumber(textValue(topK, input)), 1, facet.maxTopK),
    skip: skip === null ? 0 : countIn('skip', wholeNumber(textValue(skip, input)), 0, MAX_SKIP),
    minScore: minScore === null ? null : numberIn('min_score', textValue(minScore, input)),
    ofDocuments: per === 'document',
    diversity: diversity === null ? null : shareIn('diversity', textValue(diversity, input)),
  };
}

function countIn(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  const detail = `\`${name}\` is a whole number from ${min} to ${max}`;
  throw queryError('typeMismatch', { detail, hint: null });
}

function numberIn(name: string, text: string | null): number {
  const value = text === null || text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw queryError('typeMismatch', { detail: `\`${name}\` is a number`, hint: null });
}

function shareIn(name: string, text: string | null): number {
  const value = numberIn(name, text);
  if (value >= 0 && value <= 1) return value;
  throw queryError('typeMismatch', { detail: `\`${name}\` is a number from 0 to 1`, hint: null });
}

/** Rounds a score to six decimals, as shown in answers. */
export function shownScore(score: number): number {
  return Number(score.toFixed(6));
}

/** Drops passages whose score, as the caller sees it, is below the minimum. */
export function aboveMinScore<P extends { readonly score: number }>(
  passages: readonly P[],
  { minScore }: PageValues,
): readonly P[] {
  return minScore === null ? passages : passages.filter((p) => shownScore(p.score) >= minScore);
}

export function byChunkId(a: StoredPassage, b: StoredPassage): number {
  return a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0;
}

export interface ScoredPassage extends StoredPassage {
  readonly explanation: ScoreExplanation;
}

type ScoreExplanation =
  | LexicalScore
  | { readonly by: 'dense' }
  | { readonly by: 'hybrid'; readonly fuse: 'rank' | 'score'; readonly legs: readonly LegShare[] }
  /** `before` is the passage before reranking, with its rank starting at 1. */
  | {
      readonly by: 'reranker';
      readonly reranker: string;
      readonly before: { readonly passage: ScoredPassage; readonly rank: number };
    };

export interface LexicalScore {
  readonly by: 'lexical';
  readonly words: readonly WeighedTerm[];
  /** The sparse vector stored for this passage; null if not requested. */
  readonly weights: string | null;
}

interface WeighedTerm {
  readonly term: number;
  /** The word's inverse document frequency among permitted passages. */
  readonly rarity: number;
}

export interface LegShare {
  readonly leg: 'lexical' | 'dense';
  readonly weight: number;
  /** The passage that this leg found for the result, or another of the same document; null if the leg found none. */
  readonly match: { readonly passage: ScoredPassage; readonly rank: number } | null;
  readonly share: number;
}
