import { RANGES } from '../types/types.js';
import { type FunctionDefinition, STABLE, scalar, scalars, type Traits, withOptional } from './define.js';

const NAMES = [
  'arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish',
  'italian lithuanian nepali norwegian portuguese romanian russian serbian simple spanish swedish tamil turkish yiddish',
].flatMap((line) => line.split(' '));

/** Built-in text search configurations. Custom configurations of a database are not supported. */
export const CONFIGURATIONS: ReadonlySet<string> = new Set(NAMES.flatMap((n) => [n, `pg_catalog.${n}`]));

const CONFIGURED: Traits = Object.freeze({ unit: CONFIGURATIONS });

/** True if the first argument is a text search configuration (`regconfig`). */
export function isConfigured(definition: FunctionDefinition): boolean {
  return definition.structural.get(0) === CONFIGURATIONS;
}

/** Defines overloads with and without a configuration. Without one, the database's default applies. */
function either(
  name: string,
  args: Parameters<typeof scalar>[1],
  result: Parameters<typeof scalar>[2],
): readonly FunctionDefinition[] {
  return [scalar(name, args, result, STABLE), scalar(name, ['text', ...args], result, CONFIGURED)];
}

const SEARCH_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...['plainto_tsquery', 'phraseto_tsquery', 'websearch_to_tsquery', 'to_tsquery'].flatMap((name) =>
    either(name, ['text'], 'tsquery'),
  ),
  ...either('to_tsvector', ['text'], 'tsvector'),
  ...either('ts_headline', ['text', 'tsquery'], 'text'),
  ...either('ts_headline', ['text', 'tsquery', 'text'], 'text'),
  ...['ts_rank', 'ts_rank_cd'].flatMap((name) => [
    ...withOptional(name, ['tsvector', 'tsquery'], ['int4'], 'float4'),
    ...withOptional(name, ['float4[]', 'tsvector', 'tsquery'], ['int4'], 'float4'),
  ]),
  scalar('numnode', ['tsquery'], 'int4'),
  scalar('querytree', ['tsquery'], 'text'),
  scalar('strip', ['tsvector'], 'tsvector'),
  scalar('length', ['tsvector'], 'int4'),
]);

const ADDRESSES: readonly FunctionDefinition[] = [
  ...scalars(['host', 'abbrev'], ['inet'], 'text'),
  scalar('abbrev', ['cidr'], 'text'),
  ...scalars(['family', 'masklen'], ['inet'], 'int4'),
  scalar('network', ['inet'], 'cidr'),
  ...scalars(['netmask', 'broadcast', 'hostmask'], ['inet'], 'inet'),
  scalar('set_masklen', ['inet', 'int4'], 'inet'),
  scalar('set_masklen', ['cidr', 'int4'], 'cidr'),
];

const ENDS: readonly FunctionDefinition[] = (['anyrange', 'anymultirange'] as const).flatMap((span) => [
  scalar('lower', [span], 'anyelement'),
  scalar('upper', [span], 'anyelement'),
  ...scalars(['isempty', 'lower_inc', 'upper_inc', 'lower_inf', 'upper_inf'], [span], 'bool'),
]);

/** Range constructors. Postgres raises an error if the lower bound exceeds the upper one. */
const MADE: readonly FunctionDefinition[] = RANGES.flatMap(({ range, element }) =>
  withOptional(range, [element, element], ['text'], range),
);

const MERGED: readonly FunctionDefinition[] = [
  scalar('range_merge', ['anyrange', 'anyrange'], 'anyrange'),
  scalar('range_merge', ['anymultirange'], 'anyrange'),
  scalar('multirange', ['anyrange'], 'anymultirange'),
];

export const PLACE_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...ADDRESSES,
  ...ENDS,
  ...MADE,
  ...MERGED,
  ...SEARCH_FUNCTIONS,
]);

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
    ...withOptional(`${json}_object`, ['text[]'], ['text[]'], json),
  ];
}

/** Functions whose second argument is a `jsonpath` in Postgres, and a text constant here. */
export const PATH_FUNCTIONS: ReadonlySet<string> = new Set([
  'jsonb_path_exists',
  'jsonb_path_match',
  'jsonb_path_query',
  'jsonb_path_query_array',
  'jsonb_path_query_first',
]);

function ofAPath(name: string, result: 'bool' | 'jsonb'): readonly FunctionDefinition[] {
  return withOptional(name, ['jsonb', 'text'], ['jsonb', 'bool'], result);
}

/** JSON functions. Whole rows become JSON objects in `bind/expressions/row.ts`. There is no type `jsonpath`. */
export const JSON_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...ofBoth('jsonb'),
  ...ofBoth('json'),
  ...withOptional('array_to_json', ['anyarray'], ['bool'], 'json', STABLE),

  ...withOptional('jsonb_set', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  ...withOptional('jsonb_set_lax', ['jsonb', 'text[]', 'jsonb'], ['bool', 'text'], 'jsonb'),
  ...withOptional('jsonb_insert', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  scalar('jsonb_pretty', ['jsonb'], 'text'),

  ...ofAPath('jsonb_path_exists', 'bool'),
  ...ofAPath('jsonb_path_match', 'bool'),
  ...ofAPath('jsonb_path_query_array', 'jsonb'),
  ...ofAPath('jsonb_path_query_first', 'jsonb'),
]);
