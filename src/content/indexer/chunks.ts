import { createHash } from 'node:crypto';
import { arrayText } from 'osl-compiler';
import type { WordRules } from '../../base/text/terms.js';
import { checkArguments, number } from '../../model/facets/arguments.js';
import type { DerivedAttributeSettings, Facet } from '../../model/manifest/index.js';
import { CodePoints, chunkSpans } from '../chunk.js';
import type { Embedder } from '../embed/embedder.js';
import { lexicalWeights, measuredLength, termsOf } from '../lexical/bm25.js';
import { wordRules } from '../lexical/languages/word-rules.js';
import { labelVectors } from '../operators/run.js';
import { atLeast, best, type LabelScore, scorer } from '../operators/similarity.js';
import { meanVector, round6 } from '../operators/vectors.js';
import type { Redactor } from '../redact/redactors.js';
import { integersText, vectorText } from '../store/control.js';
import type { ServedDocument } from './served-document.js';

/** Values for `storeColumns`, in COPY text format. */
export type ChunkRow = readonly (string | null)[];

const ORDINAL_DIGITS = 6;

/** Returns the id of a chunk, such as `doc_id#000012`. Ids sort by document, then by position, in the "C" collation. */
function chunkId(documentId: string, ordinal: number): string {
  return `${documentId}#${`${ordinal}`.padStart(ORDINAL_DIGITS, '0')}`;
}

interface Chunk {
  readonly fields: ChunkRow;
  readonly text: string;
}

/** A document's chunks in text order; `rows[i]` belongs to `vectors[i]`. */
export interface ChunkedDocument {
  readonly rows: readonly ChunkRow[];
  readonly vectors: readonly Float32Array[];
}

/** A served document with its redaction rules, which limit where it may be cut. */
export interface CuttableDocument {
  readonly document: ServedDocument;
  readonly redactor: Redactor;
}

/** Estimates the average document length, for BM25 in a new store, from the store's first documents. */
export async function lengthOf(facet: Facet, documents: readonly CuttableDocument[]): Promise<number> {
  const words = await wordRules(facet.language);
  const chunks = documents.flatMap(({ document, redactor }) => chunksOf(facet, document, redactor));
  const lengths = chunks.map(({ text }) => termsOf(text, words).length);
  return measuredLength(lengths, facet.chunking.maxChars);
}

/**
 * Cuts `documents` into chunks and embeds them, in order.
 *
 * @param average average document length of the store
 */
export async function chunkRows(
  facet: Facet,
  documents: readonly CuttableDocument[],
  embedder: Embedder,
  average: number,
  signal?: AbortSignal,
): Promise<readonly ChunkedDocument[]> {
  const chunks = documents.map(({ document, redactor }) => chunksOf(facet, document, redactor));
  const vectors = await embedder.embed(
    chunks.flat().map((c) => c.text),
    'document',
    signal,
  );
  const columns = vectorColumns(embedder, average, await wordRules(facet.language));
  let next = 0;
  return chunks.map((list) => {
    const own = list.map(() => vectors[next++] ?? new Float32Array());
    const rows = list.map(({ fields, text }, i) => [
      ...fields,
      ...columns(text, own[i] ?? new Float32Array()),
    ]);
    return { rows, vectors: own };
  });
}

function chunksOf(facet: Facet, document: ServedDocument, redactor: Redactor): readonly Chunk[] {
  const { text } = document;
  const points = new CodePoints(text);
  return chunkSpans(text, facet.chunking, (at, start) => redactor.mayCut(text, at, start)).map((span, i) => {
    const part = text.slice(span.start, span.end);
    const { start, end } = points.span(span);
    const place = [
      chunkId(document.id, i),
      document.id,
      facet.connector,
      document.key,
      `${i}`,
      `${start}`,
      `${end}`,
    ];
    const fields = [...place, part, sha256(part), ...document.metadata, arrayText(document.redactedFields)];
    return { fields, text: part };
  });
}

type VectorFields = (text: string, vector: Float32Array) => readonly string[];

function vectorColumns({ layout }: Embedder, average: number, words: WordRules): VectorFields {
  switch (layout.kind) {
    case 'lexical':
      return (text, vector) => {
        const terms = termsOf(text, words);
        return [
          `${terms.length}`,
          integersText(terms.ids),
          lexicalWeights(terms, average),
          vectorText(vector),
        ];
      };
    case 'dense':
      return (_, vector) => [vectorText(vector)];
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/**
 * Number of leading chunks from which attributes are derived, since a text states its topic at the beginning. Later
 * chunks (references, licences) are less reliable: see decision 19.
 */
const OPENING_CHUNKS = 4;

export interface Derivation {
  readonly attribute: string;
  /** Derives a value from a vector; null if no value is certain enough. */
  readonly derive: (vector: Float32Array) => { readonly value: unknown; readonly score: number } | null;
}

/** Embeds the labels of a facet's derived attributes on first use. */
export function derivationsOf(
  facet: Facet,
  embedder: Embedder,
  signal?: AbortSignal,
): () => Promise<readonly Derivation[]> {
  let opened: Promise<readonly Derivation[]> | null = null;
  return () => {
    opened ??= openDerivations(facet, embedder, signal);
    return opened;
  };
}

/** Prepares the derived attributes of `facet`. @throws ContentError if the embedder fails */
async function openDerivations(
  facet: Facet,
  embedder: Embedder,
  signal?: AbortSignal,
): Promise<readonly Derivation[]> {
  const stop = signal === undefined ? {} : { signal };
  const open = async (derived: DerivedAttributeSettings): Promise<Derivation> => {
    const given = checkArguments(derived.operator, derived.arguments);
    const scores = scorer(await labelVectors({ embedder, ...stop }, given));
    return {
      attribute: derived.name,
      derive: (vector) => found(derived.operator, scores({ vector }), given),
    };
  };
  return Promise.all(facet.derived.map(open));
}

type DerivationResult = ReturnType<Derivation['derive']>;

function found(
  operator: DerivedAttributeSettings['operator'],
  scores: readonly LabelScore[],
  given: ReadonlyMap<string, unknown>,
): DerivationResult {
  switch (operator) {
    case 'CLASSIFY': {
      const floor = number(given, 'min_score');
      const label = best(scores, Number.isNaN(floor) ? null : floor);
      return label === null ? null : { value: label.label, score: label.score };
    }
    case 'TAG': {
      const tags = atLeast(scores, number(given, 'threshold'));
      const [first] = tags;
      return first === undefined ? null : { value: tags.map((s) => s.label), score: first.score };
    }
  }
}

/** Returns rows of `DERIVED_COLUMNS`: for each derived attribute, one row per supporting chunk. */
export function derivedRows(
  { id, key }: ServedDocument,
  vectors: readonly Float32Array[],
  derivations: readonly Derivation[],
): readonly ChunkRow[] {
  const support = vectors.slice(0, OPENING_CHUNKS);
  const mean = meanVector(support.map(unit));
  if (mean === null) return [];
  return derivations.flatMap(({ attribute, derive }) => {
    const derived = derive(mean);
    if (derived === null) return [];
    const { value, score } = derived;
    return support.map((_, i) => [
      attribute,
      id,
      key,
      JSON.stringify(value),
      `${round6(score)}`,
      `${support.length}`,
      chunkId(id, i),
    ]);
  });
}

/** Scales a vector to unit norm, so that longer chunks have no greater weight in the mean. */
function unit(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const x of vector) squares += x * x;
  const norm = squares === 0 ? 1 : Math.sqrt(squares);
  return Float32Array.from(vector, (x) => x / norm);
}
