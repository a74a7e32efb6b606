import type { EncoderName } from 'osl-compiler';
import type { CheckedArguments } from '../../model/facets/arguments.js';
import { number } from '../../model/facets/arguments.js';

/** Maximum number of multiplications of one operator: a few seconds of the thread, which runs no other meanwhile. */
export const MOST_WORK = 4_000_000_000;

/** Cost of hashing one text, per dimension of its vector. */
const HASHING = 16;
/** Cost of hashing one character. */
const CHARACTER = 200;
/** Typical number of rounds of k-means. */
const ROUNDS = 3;

/** Number of multiplications of an operator, estimated before it runs. */
export function workOf(
  operator: EncoderName,
  given: CheckedArguments,
  { characters, ...size }: WorkSize,
): number {
  return workOfVectors(operator, given, size) + characters * CHARACTER;
}

export interface WorkSize {
  readonly passages: number;
  /** Texts to embed: labels and references. */
  readonly texts: number;
  readonly dimensions: number;
  /** Characters of passages without stored vectors. */
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
    default: {
      const unknown: never = operator;
      return unknown;
    }
  }
}
