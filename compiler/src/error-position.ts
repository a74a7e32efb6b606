import type { Access } from './access/access.js';
import type { BoundPlan } from './bind/index.js';
import type { Catalog } from './catalog/catalog.js';
import { bindStatement, type CompileOptions } from './compile.js';
import { type Position, type QueryError, queryError } from './errors/errors.js';
import { NEGATIVE_COUNTS } from './errors/value-faults.js';
import type { Expr, Query, Slot } from './plan/plan.js';
import { allQueries, exprsOf, visitExpr } from './plan/walk.js';
import { parse } from './text/parse.js';
import { positionAt } from './text/text.js';
import type { TypeName } from './types/types.js';

/**
 * Adds a position in the query `text` to `error`, which the database raised for a value: the first place that uses
 * `slot` or, for a computed value, the only place that can have caused the error, if there is only one. This binds the
 * text again, so call it only after an error.
 *
 * @param slot the parameter whose value is at fault; null for a value that the statement computes
 */
export function withErrorPosition(
  error: QueryError,
  slot: Slot | null,
  text: string,
  catalog: Catalog,
  access: Access,
  options: CompileOptions,
): QueryError {
  const parsed = parse(text);
  const bound = bindStatement(parsed, catalog, access, options);
  if (slot !== null) {
    const index = bound.slots.findIndex((own) => isSame(own, slot));
    const written = [bound.literals.carried.get(index)?.[0] ?? []].flat().find((l) => l?.node != null);
    const location = written?.node?.location;
    return error.at(location === undefined ? placeOfSlot(bound, index) : positionAt(parsed.source, location));
  }
  const suspect = suspectOf(bound, error.sqlstate);
  if (suspect === null) return error;
  const place = bound.positionOf(suspect);
  return isZoneOf(suspect, error.sqlstate, bound) ? queryError('unknownZone', {}, place) : error.at(place);
}

/**
 * Returns the expression that raised `sqlstate`; null if no expression can have raised it, or if there are candidates
 * at several positions. An expression from the manifest has no position.
 */
function suspectOf(bound: BoundPlan, sqlstate: string): Expr | null {
  const offsetOf = (e: Expr): number | undefined => bound.positionOf(e)?.offset;
  // A cast without a position was added by type inference, so it cannot be pointed out to the caller.
  const suspects = suspectsOf(bound, sqlstate).filter((e) => e.kind !== 'cast' || offsetOf(e) !== undefined);
  const [first] = suspects;
  return first !== undefined && suspects.every((e) => offsetOf(e) === offsetOf(first)) ? first : null;
}

function isSame(a: Slot, b: Slot): boolean {
  if (a.kind === 'client') return b.kind === 'client' && a.index === b.index;
  return (
    a.kind === 'literal' &&
    b.kind === 'literal' &&
    a.type === b.type &&
    JSON.stringify(a.value) === JSON.stringify(b.value)
  );
}

function valuesIn(query: Query): readonly Expr[] {
  const values: Expr[] = [];
  for (const level of allQueries(query)) {
    for (const expr of exprsOf(level)) visitExpr(expr, (e) => values.push(e));
  }
  return values;
}

function placeOfSlot({ query, positionOf }: BoundPlan, slot: number): Position | null {
  for (const value of valuesIn(query)) {
    const place = value.kind === 'parameter' && value.slot === slot ? positionOf(value) : null;
    if (place !== null) return place;
  }
  return null;
}

function suspectsOf({ query }: BoundPlan, sqlstate: string): readonly Expr[] {
  const isSuspect = SUSPECTS.get(sqlstate);
  if (isSuspect !== undefined) return valuesIn(query).filter(isSuspect);
  const clause =
    sqlstate === NEGATIVE_COUNTS.LIMIT ? 'limit' : sqlstate === NEGATIVE_COUNTS.OFFSET ? 'offset' : null;
  if (clause === null) return [];
  return allQueries(query).flatMap((level) => (level.kind === 'values' ? [] : (level[clause] ?? [])));
}

function isZoneOf(expr: Expr, sqlstate: string, { slots }: BoundPlan): boolean {
  if (expr.kind !== 'call' || expr.definition.name !== 'timezone' || sqlstate !== '22023') return false;
  const [zone] = expr.args;
  const slot = zone?.kind === 'parameter' ? slots[zone.slot] : undefined;
  return zone?.type === 'text' && (slot?.kind === 'literal' || slot?.kind === 'client');
}

type Test = (expr: Expr) => boolean;

function named(...names: readonly string[]): Test {
  const known = new Set(names);
  return (e) =>
    (e.kind === 'call' || e.kind === 'operation' || e.kind === 'aggregate' || e.kind === 'window') &&
    known.has(e.definition.name);
}

/** Matches casts by source and target type; null stands for any type. */
function cast(from: readonly TypeName[] | null, to: readonly TypeName[] | null): Test {
  return (e) =>
    e.kind === 'cast' && (from === null || from.includes(e.arg.type)) && (to === null || to.includes(e.type));
}

function any(...tests: readonly Test[]): Test {
  return (e) => tests.some((test) => test(e));
}

const NUMBERS: readonly TypeName[] = ['int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'money'];
const MOMENTS: readonly TypeName[] = ['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval'];
const TEXTS: readonly TypeName[] = ['text', 'bpchar'];

const arithmetic: Test = (e) => named('+', '-', '*', '/', '^', '%', '@')(e) && NUMBERS.includes(e.type);
const temporal: Test = (e) =>
  (named('+', '-', '*', '/')(e) && MOMENTS.includes(e.type)) ||
  named(
    'make_date',
    'make_time',
    'make_timestamp',
    'make_timestamptz',
    'to_date',
    'to_timestamp',
    'timezone',
  )(e);
const patterns = named('~', '~*', '!~', '!~*');
const regexp: Test = (e) => e.kind === 'call' && /^(regexp_|substring$|similar_)/.test(e.definition.name);

/** The expressions that can raise each SQLSTATE. Other errors get no position. */
const SUSPECTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['21000', (e) => e.kind === 'scalar_query'],
  [
    '22003',
    any(
      arithmetic,
      cast(null, NUMBERS),
      named(
        'abs',
        'sum',
        'round',
        'trunc',
        'power',
        'exp',
        'percentile_cont',
        'percentile_disc',
        'lcm',
        'gcd',
        'to_number',
      ),
    ),
  ],
  ['22007', any(temporal, cast(TEXTS, MOMENTS))],
  ['22008', any(temporal, cast(null, MOMENTS), named('date_trunc', 'age'))],
  ['22011', named('substring', 'substr', 'overlay')],
  ['22012', named('/', '%', 'mod', 'div')],
  ['22014', named('ntile')],
  ['22016', named('nth_value')],
  ['22000', named('int4range', 'int8range', 'numrange', 'daterange', 'tsrange', 'tstzrange')],
  ['2201B', any(patterns, regexp)],
  ['2201E', named('ln', 'log', 'log10')],
  ['2201F', named('power', 'pow', 'sqrt', '^', '|/')],
  ['2201G', named('width_bucket')],
  [
    '22023',
    any(
      named(
        'timezone',
        'decode',
        'encode',
        'chr',
        'generate_series',
        'date_bin',
        'to_char',
        'make_interval',
        'regexp_replace',
        'regexp_matches',
        'regexp_split_to_array',
        'regexp_split_to_table',
        'split_part',
        'trim_array',
        'get_byte',
        'set_byte',
      ),
      cast(['jsonb'], null),
    ),
  ],
  ['22025', named('~~', '!~~', '~~*', '!~~*', 'like_escape', 'similar_to_escape')],
  ['22P02', any(cast(TEXTS, null), named('to_number'))],
  [
    '42601',
    named('to_tsquery', 'phraseto_tsquery', 'jsonb_path_query', 'jsonb_path_exists', 'jsonb_path_match'),
  ],
  ['54000', named('repeat', 'lpad', 'rpad', 'chr', '||', 'concat', 'replace', 'string_agg', 'array_agg')],
]);
