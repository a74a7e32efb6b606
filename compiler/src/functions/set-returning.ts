import type { TypeName } from '../types/types.js';
import { type FunctionDefinition, STABLE, scalar, scalars, setReturning, withOptional } from './define.js';

/** Array functions that do not return sets. */
export const ARRAY_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...scalars(['array_length', 'array_lower', 'array_upper'], ['anyarray', 'int4'], 'int4'),
  ...scalars(['cardinality', 'array_ndims'], ['anyarray'], 'int4'),
  scalar('array_dims', ['anyarray'], 'text'),

  ...withOptional('array_position', ['anycompatiblearray', 'anycompatible'], ['int4'], 'int4'),
  scalar('array_positions', ['anycompatiblearray', 'anycompatible'], 'int4[]'),

  scalar('array_append', ['anycompatiblearray', 'anycompatible'], 'anycompatiblearray'),
  scalar('array_prepend', ['anycompatible', 'anycompatiblearray'], 'anycompatiblearray'),
  scalar('array_cat', ['anycompatiblearray', 'anycompatiblearray'], 'anycompatiblearray'),

  scalar('array_remove', ['anycompatiblearray', 'anycompatible'], 'anycompatiblearray'),
  scalar('array_replace', ['anycompatiblearray', 'anycompatible', 'anycompatible'], 'anycompatiblearray'),
  scalar('trim_array', ['anyarray', 'int4'], 'anyarray'),

  ...withOptional('array_to_string', ['anyarray', 'text'], ['text'], 'text', STABLE),
]);

/** Functions that count nulls. COALESCE, NULLIF, GREATEST and LEAST are handled by the grammar. */
export const CONDITIONAL_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...scalars(['num_nulls', 'num_nonnulls'], ['any'], 'int4', { variadic: 'any' }),
]);

/** Overloads of `generate_series`. Bounds of type date are converted to timestamptz. */
const SERIES: readonly FunctionDefinition[] = [
  ...(['int4', 'int8', 'numeric'] as const).flatMap((type) => [
    setReturning('generate_series', [type, type], type),
    setReturning('generate_series', [type, type, type], type),
  ]),
  setReturning('generate_series', ['timestamp', 'timestamp', 'interval'], 'timestamp'),
  setReturning('generate_series', ['timestamptz', 'timestamptz', 'interval'], 'timestamptz', STABLE),
];

/** Set-returning functions. They are allowed in FROM, and in the select list if they have a single column. */
export const ROW_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...SERIES,
  setReturning('unnest', ['anyarray'], 'anyelement'),
  setReturning('generate_subscripts', ['anyarray', 'int4'], 'int4'),
  setReturning('generate_subscripts', ['anyarray', 'int4', 'bool'], 'int4'),

  setReturning('regexp_split_to_table', ['text', 'text'], 'text'),
  setReturning('regexp_split_to_table', ['text', 'text', 'text'], 'text'),
  setReturning('regexp_matches', ['text', 'text'], 'text[]'),
  setReturning('regexp_matches', ['text', 'text', 'text'], 'text[]'),
  setReturning('string_to_table', ['text', 'text'], 'text'),
  setReturning('string_to_table', ['text', 'text', 'text'], 'text'),

  ...(['jsonb', 'json'] as const).flatMap((json) => [
    setReturning(`${json}_each`, [json], json),
    setReturning(`${json}_each_text`, [json], 'text'),
    setReturning(`${json}_array_elements`, [json], json),
    setReturning(`${json}_array_elements_text`, [json], 'text'),
    setReturning(`${json}_object_keys`, [json], 'text'),
  ]),
  setReturning('jsonb_path_query', ['jsonb', 'text'], 'jsonb'),
  setReturning('jsonb_path_query', ['jsonb', 'text', 'jsonb'], 'jsonb'),
  setReturning('jsonb_path_query', ['jsonb', 'text', 'jsonb', 'bool'], 'jsonb'),
]);

/** A column of a set-returning function. `name` is null if the column is named after the alias or the function. */
interface RowColumn {
  readonly name: string | null;
  readonly type: TypeName;
}

const OF_A_MEMBER = /^jsonb?_each(?:_text)?$/;
const OF_AN_ELEMENT = /^jsonb?_array_elements(?:_text)?$/;

/** Returns the columns of a set-returning function whose result type is `result`. */
export function columnsOfRows({ name }: FunctionDefinition, result: TypeName): readonly RowColumn[] {
  const member = OF_A_MEMBER.test(name);
  const last = { name: member || OF_AN_ELEMENT.test(name) ? 'value' : null, type: result };
  return member ? [{ name: 'key', type: 'text' }, last] : [last];
}
