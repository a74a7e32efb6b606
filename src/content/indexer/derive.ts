import { checkArguments, number } from '../../model/facets/arguments.js';
import type { DerivedAttributeSettings, Facet } from '../../model/manifest/index.js';
import type { Embedder } from '../embed/embedder.js';
import { labelVectors } from '../operators/run.js';
import { atLeast, best, type LabelScore, scorer } from '../operators/similarity.js';
import { meanVector, round6 } from '../operators/vectors.js';
import { type ChunkRow, chunkId } from './chunks.js';
import type { ServedDocument } from './served-document.js';

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

/** Rows of `DERIVED_COLUMNS`: for each derived attribute, one row per supporting chunk. */
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
