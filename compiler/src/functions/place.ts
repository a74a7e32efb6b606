import { RANGES } from '../types/types.js';
import { growing, STABLE, scalar, type Traits } from './define.js';
import type { FunctionDefinition } from './definition.js';

const NAMES = [
  'arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish',
  'italian lithuanian nepali norwegian portuguese romanian russian serbian simple spanish swedish tamil turkish yiddish',
].flatMap((line) => line.split(' '));

/** Built-in text search configurations. Custom ones of a database are not available. */
export const CONFIGURATIONS: ReadonlySet<string> = new Set(NAMES.flatMap((n) => [n, `pg_catalog.${n}`]));

const CONFIGURED: Traits = Object.freeze({ unit: CONFIGURATIONS });

/** True if the first argument is a text search configuration (`regconfig`). */
export function isConfigured(definition: FunctionDefinition): boolean {
  return definition.structural.get(0) === CONFIGURATIONS;
}

/** Overloads with and without a configuration; without one the database's default applies. */
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
    ...growing(name, ['tsvector', 'tsquery'], ['int4'], 'float4'),
    ...growing(name, ['float4[]', 'tsvector', 'tsquery'], ['int4'], 'float4'),
  ]),
  scalar('numnode', ['tsquery'], 'int4'),
  scalar('querytree', ['tsquery'], 'text'),
  scalar('strip', ['tsvector'], 'tsvector'),
  scalar('length', ['tsvector'], 'int4'),
]);

const ADDRESSES: readonly FunctionDefinition[] = [
  scalar('host', ['inet'], 'text'),
  scalar('abbrev', ['inet'], 'text'),
  scalar('abbrev', ['cidr'], 'text'),
  scalar('family', ['inet'], 'int4'),
  scalar('masklen', ['inet'], 'int4'),
  scalar('network', ['inet'], 'cidr'),
  scalar('netmask', ['inet'], 'inet'),
  scalar('broadcast', ['inet'], 'inet'),
  scalar('hostmask', ['inet'], 'inet'),
  scalar('set_masklen', ['inet', 'int4'], 'inet'),
  scalar('set_masklen', ['cidr', 'int4'], 'cidr'),
];

const ENDS: readonly FunctionDefinition[] = (['anyrange', 'anymultirange'] as const).flatMap((span) => [
  scalar('lower', [span], 'anyelement'),
  scalar('upper', [span], 'anyelement'),
  ...['isempty', 'lower_inc', 'upper_inc', 'lower_inf', 'upper_inf'].map((name) =>
    scalar(name, [span], 'bool'),
  ),
]);

/** Range constructors; Postgres fails if the lower bound exceeds the upper one. */
const MADE: readonly FunctionDefinition[] = RANGES.flatMap(({ range, element }) =>
  growing(range, [element, element], ['text'], range),
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
