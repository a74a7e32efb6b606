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
import type { Embedder } from '../embed/embedder.js';
import { classify, type LabelVectors, tag } from './classify.js';
import { cluster } from './cluster.js';
import { dedup } from './dedup.js';
import { outlier } from './outlier.js';
import type { Passage } from './passage.js';
import { rank } from './rank.js';
import { similarity } from './similarity.js';

/** What encoder operators need beside the passages. */
export interface EncoderContext {
  /** The facet's: labels and references must lie in the space of the chunks. */
  readonly embedder: Embedder;
  /** The text of RETRIEVE's `query`. */
  readonly query: string;
  readonly signal?: AbortSignal;
}

/**
 * The column of one encoder operator: a value for each passage, in the order of `passages`, of the
 * signature's result type.
 *
 * @throws InvalidArgument; ContentError of the embedder
 */
export async function runEncoder(
  operator: EncoderName,
  passages: readonly Passage[],
  values: ArgumentValues,
  context: EncoderContext,
): Promise<readonly unknown[]> {
  const given = checkArguments(operator, values);
  switch (operator) {
    case 'SIMILARITY':
      return similarity(passages, await queryVector(context, text(given, 'reference')));
    case 'CLASSIFY':
      return classify(passages, await labelVectors(context, given), numberOrNull(given, 'min_score'));
    case 'TAG':
      return tag(passages, await labelVectors(context, given), number(given, 'threshold'));
    case 'RANK':
      return rank(passages, await queryVector(context, text(given, 'query')), number(given, 'lambda'));
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

async function queryVector(
  { embedder, query, signal }: EncoderContext,
  own: string | null,
): Promise<Float32Array> {
  const [vector] = await embedder.embed([own ?? query], 'query', signal);
  if (vector === undefined) throw new InvalidArgument('the operator', 'got no vector of its reference');
  return vector;
}

/** The prototypes of a label: its name with its description, and each example. */
export async function labelVectors(
  { embedder, signal }: Pick<EncoderContext, 'embedder' | 'signal'>,
  given: CheckedArguments,
): Promise<readonly LabelVectors[]> {
  const declared = labels(given);
  const texts = declared.map(({ label, description, examples }) => [
    labelText(label, description),
    ...examples,
  ]);
  const vectors = await embedder.embed(texts.flat(), 'document', signal);
  let next = 0;
  return declared.map(({ label }, i) => {
    const end = next + (texts[i]?.length ?? 0);
    const prototypes = vectors.slice(next, end);
    next = end;
    return { label, prototypes };
  });
}

/** `card_arrival` reads as words. */
function labelText(label: string, description: string | null): string {
  const words = label.replace(/[_-]+/g, ' ');
  return description === null ? words : `${words}: ${description}`;
}
