import { wordOf } from '../answer/columns.js';
import type { Filter } from '../choice/choice.js';

/** Values that are named before the rest is counted. */
const NAMED = 3;

/** A condition in words: `customer__region is eu, us`. */
export function filterWords({ name, operator, values }: Filter): string {
  switch (operator) {
    case 'empty':
      return `${name} is empty`;
    case 'not_empty':
      return `${name} is not empty`;
    case 'is':
      return `${name} is ${listed(values)}`;
    case 'is_not':
      return `${name} is not ${listed(values)}`;
    default: {
      const unknown: never = operator;
      return unknown;
    }
  }
}

function listed(values: readonly unknown[]): string {
  const named = values.slice(0, NAMED).map(wordOf).join(', ');
  return values.length > NAMED ? `${named} and ${values.length - NAMED} more` : named;
}
