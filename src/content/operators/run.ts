import type { EncoderName } from 'osl-compiler';
import {
  type ArgumentValues,
  type CheckedArguments,
  checkArguments,
  InvalidArgument,
  labels,
  number,
  text,
} from '../../model/facets/arguments.js';
import type { Embedder, TextRole } from '../embed/embedder.js';
import { cluster } from './cluster.js';
import { classify, dedup, type LabelVectors, outlier, rank, similarity, tag } from './similarity.js';
import type { OperatorPassage } from './vectors.js';

/** Returns the texts that an operator compares with passages, and their role, to be embedded before it runs. */
export function encoderTexts(
  operator: EncoderName,
  given: CheckedArguments,
  query: string,
): { readonly texts: readonly string[]; readonly role: TextRole } {
  switch (operator) {
    case 'SIMILARITY':
      return { texts: [text(given, 'reference') ?? query], role: 'query' };
    case 'RANK':
      return { texts: [text(given, 'query') ?? query], role: 'query' };
    case 'CLASSIFY':
    case 'TAG':
      return { texts: textsOfLabels(given).flat(), role: 'document' };
    case 'DEDUP':
    case 'OUTLIER':
    case 'CLUSTER':
      return { texts: [], role: 'document' };
  }
}

/** The texts of each label: its name with its description, and its examples. */
function textsOfLabels(given: CheckedArguments): readonly (readonly string[])[] {
  return labels(given).map(({ label, description, examples }) => [
    labelText(label, description),
    ...examples,
  ]);
}

/** A label as readable text: `card_arrival` becomes `card arrival`. */
function labelText(label: string, description: string | null): string {
  const words = label.replace(/[_-]+/g, ' ');
  return description === null ? words : `${words}: ${description}`;
}

export interface EncoderContext {
  /** The facet's embedder, because labels and references must be in the vector space of the chunks. */
  readonly embedder: Pick<Embedder, 'embed'>;
  readonly query: string;
  readonly signal?: AbortSignal;
}

/**
 * Computes the column of an encoder operator: one value of the signature's result type per passage, in order.
 *
 * @throws InvalidArgument; ContentError of the embedder
 */
export async function runEncoder(
  operator: EncoderName,
  passages: readonly OperatorPassage[],
  values: ArgumentValues,
  { embedder, query, signal }: EncoderContext,
): Promise<readonly unknown[]> {
  const given = checkArguments(operator, values);
  const { texts, role } = encoderTexts(operator, given, query);
  const vectors = texts.length === 0 ? [] : await embedder.embed(texts, role, signal);
  const reference = (): Float32Array => {
    const [vector] = vectors;
    if (vector === undefined) throw new InvalidArgument('the operator', 'got no vector of its reference');
    return vector;
  };
  switch (operator) {
    case 'SIMILARITY':
      return similarity(passages, reference());
    case 'CLASSIFY':
      return classify(passages, byLabel(given, vectors), numberOrNull(given, 'min_score'));
    case 'TAG':
      return tag(passages, byLabel(given, vectors), number(given, 'threshold'));
    case 'RANK':
      return rank(passages, reference(), number(given, 'lambda'));
    case 'DEDUP':
      return dedup(passages, number(given, 'threshold'));
    case 'OUTLIER':
      return outlier(passages, number(given, 'k'));
    case 'CLUSTER':
      return cluster(passages, number(given, 'k'));
  }
}

function numberOrNull(given: CheckedArguments, name: string): number | null {
  const value = number(given, name);
  return Number.isNaN(value) ? null : value;
}

export async function labelVectors(
  { embedder, signal }: Pick<EncoderContext, 'embedder' | 'signal'>,
  given: CheckedArguments,
): Promise<readonly LabelVectors[]> {
  return byLabel(given, await embedder.embed(textsOfLabels(given).flat(), 'document', signal));
}

function byLabel(given: CheckedArguments, vectors: readonly Float32Array[]): readonly LabelVectors[] {
  let next = 0;
  return labels(given).map(({ label, examples }) => {
    const from = next;
    next += 1 + examples.length;
    return { label, prototypes: vectors.slice(from, next) };
  });
}

/**
 * Maximum number of multiplications per operator: a few seconds of work in a thread that runs one operator at a time.
 */
export const MOST_WORK = 4_000_000_000;

/** Estimated cost of hashing one text, in multiplications per dimension of its vector. */
const HASHING = 16;
const CHARACTER = 200;
/** Typical number of k-means rounds. */
const ROUNDS = 3;

/** Estimates the number of multiplications of an operator before it runs. */
export function workOf(
  operator: EncoderName,
  given: CheckedArguments,
  { characters, ...size }: WorkSize,
): number {
  return workOfVectors(operator, given, size) + characters * CHARACTER;
}

export interface WorkSize {
  readonly passages: number;
  /** Number of texts to embed: labels and references. */
  readonly texts: number;
  readonly dimensions: number;
  /** Number of characters in passages without stored vectors. */
  readonly characters: number;
}

function workOfVectors(
  operator: EncoderName,
  given: CheckedArguments,
  { passages, texts, dimensions }: Omit<WorkSize, 'characters'>,
): number {
  const hashed = texts * HASHING;
  switch (operator) {
    case 'SIMILARITY':
    case 'CLASSIFY':
    case 'TAG':
      return (hashed + passages * texts) * dimensions;
    case 'RANK':
      return (hashed + passages + (number(given, 'lambda') < 1 ? passages ** 2 : 0)) * dimensions;
    case 'DEDUP':
    case 'OUTLIER':
      return ((passages ** 2 - passages) / 2) * dimensions;
    case 'CLUSTER':
      return passages * Math.min(passages, number(given, 'k')) * ROUNDS * dimensions;
  }
}
