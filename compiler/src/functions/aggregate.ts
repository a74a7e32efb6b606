import { INTEGERS, NUMBERS, type TypeName } from '../types/types.js';
import { aggregate, type FunctionDefinition, orderedSet, STABLE, windowed } from './define.js';

/** Types that MIN and MAX accept. */
const ORDERED = [
  ...NUMBERS,
  'text',
  'bpchar',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'interval',
  'inet',
  'money',
  'timetz',
  'anyarray',
] as const;

const OF_PAIRS = [
  'corr',
  'covar_pop',
  'covar_samp',
  'regr_avgx',
  'regr_avgy',
  'regr_count',
  'regr_intercept',
  'regr_r2',
  'regr_slope',
  'regr_sxx',
  'regr_sxy',
  'regr_syy',
] as const;

function within(name: string, types: readonly (TypeName | 'anyarray')[]): readonly FunctionDefinition[] {
  return types.map((type) => aggregate(name, [type], type));
}

function spread(type: (typeof NUMBERS)[number]): TypeName {
  return type === 'float4' || type === 'float8' ? 'float8' : 'numeric';
}

export const AGGREGATE_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  aggregate('count', ['any'], 'int8'),
  aggregate('sum', ['int2'], 'int8'),
  aggregate('sum', ['int4'], 'int8'),
  aggregate('sum', ['int8'], 'numeric'),
  aggregate('sum', ['float4'], 'float4'),
  aggregate('sum', ['float8'], 'float8'),
  aggregate('sum', ['numeric'], 'numeric'),
  aggregate('sum', ['interval'], 'interval'),
  aggregate('sum', ['money'], 'money'),
  ...NUMBERS.map((type) => aggregate('avg', [type], spread(type))),
  aggregate('avg', ['interval'], 'interval'),

  ...['min', 'max'].flatMap((name) => within(name, ORDERED)),

  aggregate('bool_and', ['bool'], 'bool'),
  aggregate('bool_or', ['bool'], 'bool'),
  aggregate('every', ['bool'], 'bool'),
  ...['bit_and', 'bit_or', 'bit_xor'].flatMap((name) => within(name, INTEGERS)),

  aggregate('string_agg', ['text', 'text'], 'text'),
  aggregate('string_agg', ['bytea', 'bytea'], 'bytea'),
  aggregate('array_agg', ['anyarray'], 'anyarray'),
  aggregate('array_agg', ['anynonarray'], 'anyarray'),
  aggregate('jsonb_agg', ['anyelement'], 'jsonb', STABLE),
  aggregate('jsonb_object_agg', ['any', 'any'], 'jsonb'),
  aggregate('json_agg', ['anyelement'], 'json', STABLE),
  aggregate('json_object_agg', ['any', 'any'], 'json', STABLE),

  ...['stddev', 'stddev_pop', 'stddev_samp', 'variance', 'var_pop', 'var_samp'].flatMap((name) =>
    NUMBERS.map((type) => aggregate(name, [type], spread(type))),
  ),

  ...OF_PAIRS.map((name) => aggregate(name, ['float8', 'float8'], name === 'regr_count' ? 'int8' : 'float8')),

  ...(['anyrange', 'anymultirange'] as const).flatMap((span) => [
    aggregate('range_agg', [span], 'anymultirange'),
    aggregate('range_intersect_agg', [span], span),
  ]),

  orderedSet('percentile_cont', ['float8', 'float8'], 'float8'),
  orderedSet('percentile_cont', ['float8', 'interval'], 'interval'),
  orderedSet('percentile_cont', ['float8[]', 'float8'], 'float8[]'),
  orderedSet('percentile_cont', ['float8[]', 'interval'], 'interval[]'),
  orderedSet('percentile_disc', ['float8', 'anyelement'], 'anyelement'),
  orderedSet('percentile_disc', ['float8[]', 'anyelement'], 'anyarray'),
  orderedSet('mode', ['anyelement'], 'anyelement'),
]);

/**
 * Hypothetical-set aggregates such as `rank(5) WITHIN GROUP (ORDER BY x)`. They take one direct argument per sort key,
 * of the key's type, and share their names with window functions.
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

/** True for a hypothetical-set aggregate, false for the window function of the same name. */
export function isHypothetical(definition: FunctionDefinition): boolean {
  return HYPOTHETICAL.get(definition.name) === definition;
}

/** Functions that require OVER. All aggregates accept it as well. */
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
