import { orderedSet } from './define.js';
import type { FunctionDefinition } from './definition.js';

/**
 * Where a row would stand among those that are aggregated: `rank(5) WITHIN GROUP (ORDER BY x)`. They take as many values
 * as there are keys, each of its key's type; in the table their names are those of window functions.
 */
export const HYPOTHETICAL: ReadonlyMap<string, FunctionDefinition> = new Map(
  (
    [
      ['rank', 'int8'],
      ['dense_rank', 'int8'],
      ['percent_rank', 'float8'],
      ['cume_dist', 'float8'],
    ] as const
  ).map(([name, result]) => [name, orderedSet(name, ['any', 'any'], result)]),
);

/** Whether `definition` is one of these, and not the window function of the same name. */
export function isHypothetical(definition: FunctionDefinition): boolean {
  return HYPOTHETICAL.get(definition.name) === definition;
}
