import { scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Counts of nulls; COALESCE, NULLIF, GREATEST and LEAST are grammar, not functions. */
export const CONDITIONAL_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('num_nulls', ['any'], 'int4', { variadic: 'any' }),
  scalar('num_nonnulls', ['any'], 'int4', { variadic: 'any' }),
]);
