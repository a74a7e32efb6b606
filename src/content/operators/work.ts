import type { EncoderName } from 'osl-compiler';
import type { CheckedArguments } from '../../model/facets/arguments.js';
import { number } from '../../model/facets/arguments.js';

/** Numbers that one operator may multiply: some seconds of a thread, in which no other operator runs. */
export const MOST_WORK = 4_000_000_000;

/** Cost of hashing one text, for each dimension of its vector. */
const HASHING = 16;
/** Cost of hashing one character, in a text of any length. */
const CHARACTER = 200;
/** Rounds that groups usually take until they stay. */
const ROUNDS = 3;

/** Number of multiplications of an operator, known before it begins. */
export function workOf(
  operator: EncoderName,
  given: CheckedArguments,
  { characters, ...size }: WorkSize,
): number {
  return workOfVectors(operator, given, size) + characters * CHARACTER;
}

/** Input of an operator. */
export interface WorkSize {
  readonly passages: number;
  /** Texts that are made vectors of for it, labels and references. */
  readonly texts: number;
  readonly dimensions: number;
  /** Of passages that no store has vectors of. */
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
