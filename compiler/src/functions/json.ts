import { growing, STABLE, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

function ofBoth(json: 'json' | 'jsonb'): readonly FunctionDefinition[] {
  return [
    scalar(`${json}_typeof`, [json], 'text'),
    scalar(`${json}_array_length`, [json], 'int4'),
    scalar(`${json}_extract_path`, [json, 'text'], json, { variadic: 'text' }),
    scalar(`${json}_extract_path_text`, [json, 'text'], 'text', { variadic: 'text' }),
    scalar(`${json}_strip_nulls`, [json], json),

    scalar(`to_${json}`, ['anyelement'], json, STABLE),
    scalar(`${json}_build_array`, [], json, STABLE),
    scalar(`${json}_build_array`, ['any'], json, { stable: true, variadic: 'any' }),
    scalar(`${json}_build_object`, [], json, STABLE),
    scalar(`${json}_build_object`, ['any'], json, { stable: true, variadic: 'any' }),
    ...growing(`${json}_object`, ['text[]'], ['text[]'], json),
  ];
}

/** Functions whose second argument is a `jsonpath` in Postgres, written here as a text constant. */
export const PATH_FUNCTIONS: ReadonlySet<string> = new Set([
  'jsonb_path_exists',
  'jsonb_path_match',
  'jsonb_path_query',
  'jsonb_path_query_array',
  'jsonb_path_query_first',
]);

function ofAPath(name: string, result: 'bool' | 'jsonb'): readonly FunctionDefinition[] {
  return growing(name, ['jsonb', 'text'], ['jsonb', 'bool'], result);
}

/** JSON functions. `bind/expressions/whole-row.ts` turns whole rows into JSON objects. There is no type `jsonpath`. */
export const JSON_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...ofBoth('jsonb'),
  ...ofBoth('json'),
  ...growing('array_to_json', ['anyarray'], ['bool'], 'json', STABLE),

  ...growing('jsonb_set', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  ...growing('jsonb_set_lax', ['jsonb', 'text[]', 'jsonb'], ['bool', 'text'], 'jsonb'),
  ...growing('jsonb_insert', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  scalar('jsonb_pretty', ['jsonb'], 'text'),

  ...ofAPath('jsonb_path_exists', 'bool'),
  ...ofAPath('jsonb_path_match', 'bool'),
  ...ofAPath('jsonb_path_query_array', 'jsonb'),
  ...ofAPath('jsonb_path_query_first', 'jsonb'),
]);
