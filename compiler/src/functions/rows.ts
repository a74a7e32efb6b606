import type { TypeName } from '../types/types.js';
import { makingRows, STABLE } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Whole numbers, numbers and moments, each with its step; dates count as moments of the session's zone. */
const SERIES: readonly FunctionDefinition[] = [
  ...(['int4', 'int8', 'numeric'] as const).flatMap((type) => [
    makingRows('generate_series', [type, type], type),
    makingRows('generate_series', [type, type, type], type),
  ]),
  makingRows('generate_series', ['timestamp', 'timestamp', 'interval'], 'timestamp'),
  makingRows('generate_series', ['timestamptz', 'timestamptz', 'interval'], 'timestamptz', STABLE),
];

/** Functions that make rows: they stand in FROM, and those of one column in the select list. */
export const ROW_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...SERIES,
  makingRows('unnest', ['anyarray'], 'anyelement'),
  makingRows('generate_subscripts', ['anyarray', 'int4'], 'int4'),
  makingRows('generate_subscripts', ['anyarray', 'int4', 'bool'], 'int4'),

  makingRows('regexp_split_to_table', ['text', 'text'], 'text'),
  makingRows('regexp_split_to_table', ['text', 'text', 'text'], 'text'),
  makingRows('regexp_matches', ['text', 'text'], 'text[]'),
  makingRows('regexp_matches', ['text', 'text', 'text'], 'text[]'),
  makingRows('string_to_table', ['text', 'text'], 'text'),
  makingRows('string_to_table', ['text', 'text', 'text'], 'text'),

  ...(['jsonb', 'json'] as const).flatMap((json) => [
    makingRows(`${json}_each`, [json], json),
    makingRows(`${json}_each_text`, [json], 'text'),
    makingRows(`${json}_array_elements`, [json], json),
    makingRows(`${json}_array_elements_text`, [json], 'text'),
    makingRows(`${json}_object_keys`, [json], 'text'),
  ]),
  makingRows('jsonb_path_query', ['jsonb', 'text'], 'jsonb'),
  makingRows('jsonb_path_query', ['jsonb', 'text', 'jsonb'], 'jsonb'),
  makingRows('jsonb_path_query', ['jsonb', 'text', 'jsonb', 'bool'], 'jsonb'),
]);

/** One column of the rows that a function makes; without a name it takes that of the alias, or of the function. */
export interface RowColumn {
  readonly name: string | null;
  readonly type: TypeName;
}

const OF_A_MEMBER = /^jsonb?_each(?:_text)?$/;
const OF_AN_ELEMENT = /^jsonb?_array_elements(?:_text)?$/;

/** The columns of the rows that a call of `definition` makes, where it yields `result`. */
export function columnsOfRows({ name }: FunctionDefinition, result: TypeName): readonly RowColumn[] {
  const member = OF_A_MEMBER.test(name);
  const last = { name: member || OF_AN_ELEMENT.test(name) ? 'value' : null, type: result };
  return member ? [{ name: 'key', type: 'text' }, last] : [last];
}
