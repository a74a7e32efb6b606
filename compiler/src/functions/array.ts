import { growing, STABLE, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Arrays; none that makes rows of one. */
export const ARRAY_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('array_length', ['anyarray', 'int4'], 'int4'),
  scalar('cardinality', ['anyarray'], 'int4'),
  scalar('array_ndims', ['anyarray'], 'int4'),
  scalar('array_dims', ['anyarray'], 'text'),
  scalar('array_lower', ['anyarray', 'int4'], 'int4'),
  scalar('array_upper', ['anyarray', 'int4'], 'int4'),

  ...growing('array_position', ['anycompatiblearray', 'anycompatible'], ['int4'], 'int4'),
  scalar('array_positions', ['anycompatiblearray', 'anycompatible'], 'int4[]'),

  scalar('array_append', ['anycompatiblearray', 'anycompatible'], 'anycompatiblearray'),
  scalar('array_prepend', ['anycompatible', 'anycompatiblearray'], 'anycompatiblearray'),
  scalar('array_cat', ['anycompatiblearray', 'anycompatiblearray'], 'anycompatiblearray'),

  scalar('array_remove', ['anycompatiblearray', 'anycompatible'], 'anycompatiblearray'),
  scalar('array_replace', ['anycompatiblearray', 'anycompatible', 'anycompatible'], 'anycompatiblearray'),
  scalar('trim_array', ['anyarray', 'int4'], 'anyarray'),

  ...growing('array_to_string', ['anyarray', 'text'], ['text'], 'text', STABLE),
]);
