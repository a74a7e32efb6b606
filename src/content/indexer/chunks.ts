import { createHash } from 'node:crypto';
import { arrayText } from 'osl-compiler';
import type { WordRules } from '../../base/text/terms.js';
import type { Facet } from '../../model/manifest/index.js';
import { chunkSpans } from '../chunk.js';
import type { Embedder } from '../embed/embedder.js';
import { lexicalWeights, measuredLength } from '../lexical/bm25.js';
import { wordRules } from '../lexical/languages/word-rules.js';
import { termsOf } from '../lexical/terms.js';
import { CodePoints } from '../offsets.js';
import type { Redactor } from '../redact/redactor.js';
import { integersText, vectorText } from '../store/control.js';
import type { ServedDocument } from './served-document.js';

/** Values for `storeColumns`, in COPY text format. */
export type ChunkRow = readonly (string | null)[];

const ORDINAL_DIGITS = 6;

/** `doc_id#000012`: ids sort by document, then by position, in the "C" collation. */
export function chunkId(documentId: string, ordinal: number): string {
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

/** Estimates the average document length for BM25 of a new store from its first documents. */
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
