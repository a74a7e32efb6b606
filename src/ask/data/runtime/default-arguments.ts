import { assertNever, type OperatorName } from 'osl-compiler';

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

/** Derives default arguments for an operator from the query and its facet. @param labels declared by the facet */
export function defaultArguments(
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

/** The distinct words of a query as labels, or the whole query if it contains no words. */
function wordsOf(query: string): readonly string[] {
  const words = new Set(query.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []);
  const long = [...words].filter((word) => word.length >= SHORTEST_LABEL);
  const labels = long.length > 0 ? long : [...words];
  return labels.length > 0 ? labels.slice(0, MOST_LABELS) : [query];
}
