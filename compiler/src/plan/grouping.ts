import type { Expr, Grouping } from './plan.js';

/** How many keys one `grouping(…)` takes: as many as the bits of an integer. */
export const MOST_GROUPED = 31;

/** Which of `keys` the grouping set of a row leaves out, in as many values as it takes. */
export function groupingOf(keys: readonly Expr[]): readonly Grouping[] {
  const calls: Grouping[] = [];
  for (let from = 0; from < keys.length; from += MOST_GROUPED) {
    const args = Object.freeze(keys.slice(from, from + MOST_GROUPED));
    calls.push(Object.freeze({ kind: 'grouping', args, type: 'int4' }));
  }
  return calls;
}
