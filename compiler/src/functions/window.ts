import { windowed } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Functions that need OVER; every aggregate may have it too. */
export const WINDOW_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  windowed('row_number', [], 'int8'),
  windowed('rank', [], 'int8'),
  windowed('dense_rank', [], 'int8'),
  windowed('percent_rank', [], 'float8'),
  windowed('cume_dist', [], 'float8'),
  windowed('ntile', ['int4'], 'int4'),

  windowed('lag', ['anyelement'], 'anyelement'),
  windowed('lag', ['anyelement', 'int4'], 'anyelement'),
  windowed('lag', ['anycompatible', 'int4', 'anycompatible'], 'anycompatible'),
  windowed('lead', ['anyelement'], 'anyelement'),
  windowed('lead', ['anyelement', 'int4'], 'anyelement'),
  windowed('lead', ['anycompatible', 'int4', 'anycompatible'], 'anycompatible'),
  windowed('first_value', ['anyelement'], 'anyelement'),
  windowed('last_value', ['anyelement'], 'anyelement'),
  windowed('nth_value', ['anyelement', 'int4'], 'anyelement'),
]);
