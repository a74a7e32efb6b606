import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, inType, isNotNull } from '../../plan/nodes.js';
import type { Aggregate, Expr, FromItem, SourceId } from '../../plan/plan.js';
import { leavesOf, mapChildren, someExpr, visitExpr } from '../../plan/walk.js';
import type { BindContext } from '../context.js';
import { aggregate } from './build.js';

/**
 * A value with aggregates, split so that its `inputs` can be computed first and aggregated later over any subset of
 * the rows.
 */
export interface DeferredAggregates {
  /** True if the inputs are partial aggregates over groups of rows. */
  readonly grouped: boolean;
  readonly inputs: readonly Expr[];
  /**
   * @param columns one column per input
   * @param taken condition that selects the rows to aggregate
   */
  value(columns: readonly Expr[], taken: Expr): Expr;
}

const TOGETHER: ReadonlyMap<string, string> = new Map([
  ['sum', 'sum'],
  ['count', 'sum'],
  ['min', 'min'],
  ['max', 'max'],
  ['bool_and', 'bool_and'],
  ['bool_or', 'bool_or'],
  ['every', 'every'],
]);

/**
 * Splits `value`, pre-aggregating if all of its aggregates are additive.
 *
 * @param grouped false to disable pre-aggregation
 */
export function deferAggregates(value: Expr, ctx: BindContext, grouped = true): DeferredAggregates {
  const aggregates = new Map<string, Aggregate>();
  visitExpr(value, (e) => {
    if (e.kind === 'aggregate') aggregates.set(fingerprint(e), e);
  });
  const all = [...aggregates.values()];
  return grouped && all.every(isAdditive) ? ofParts(value, all, ctx) : ofRows(value, all);
}

export function isAdditive(call: Aggregate): boolean {
  return !call.distinct && call.orderBy.length === 0 && TOGETHER.has(call.definition.name);
}

function ofParts(value: Expr, aggregates: readonly Aggregate[], ctx: BindContext): DeferredAggregates {
  const position = new Map(aggregates.map((a, i) => [fingerprint(a), i]));
  return {
    grouped: true,
    inputs: aggregates,
    value: (columns, taken) => {
      const outer = (e: Expr): Expr => {
        if (e.kind !== 'aggregate') return below(e, outer);
        const column = columns[position.get(fingerprint(e)) ?? -1];
        return column === undefined ? e : together(e, column, taken, ctx);
      };
      return outer(value);
    },
  };
}

function together(call: Aggregate, column: Expr, taken: Expr, ctx: BindContext): Expr {
  const name = TOGETHER.get(call.definition.name) ?? call.definition.name;
  const whole = inType(aggregate(name, [column], taken, ctx), call.type);
  if (call.definition.name !== 'count') return whole;
  const args = Object.freeze([whole, ctx.constant('0', 'int8')]);
  return Object.freeze({ kind: 'conditional', form: 'coalesce', args, type: call.type });
}

function ofRows(value: Expr, aggregates: readonly Aggregate[]): DeferredAggregates {
  const inputs: Expr[] = [];
  const position = new Map<string, number>();
  for (const call of aggregates) {
    for (const e of [...call.args, ...sortedBy(call), ...(call.filter === null ? [] : [call.filter])]) {
      if (readsRows(e) && !position.has(fingerprint(e))) position.set(fingerprint(e), inputs.push(e) - 1);
    }
  }
  return {
    grouped: false,
    inputs,
    value: (columns, taken) => {
      const input = (e: Expr): Expr => columns[position.get(fingerprint(e)) ?? -1] ?? e;
      const outer = (e: Expr): Expr => {
        if (e.kind !== 'aggregate') return below(e, outer);
        return Object.freeze({
          ...e,
          args: Object.freeze(e.args.map(input)),
          orderBy: Object.freeze(
            e.orderBy.map((k) => (typeof k.by === 'number' ? k : Object.freeze({ ...k, by: input(k.by) }))),
          ),
          filter: e.filter === null ? taken : allOf([taken, input(e.filter)]),
        });
      };
      return outer(value);
    },
  };
}

function sortedBy(call: Aggregate): readonly Expr[] {
  return call.orderBy.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by]));
}

function readsRows(expr: Expr): boolean {
  return someExpr(expr, (e) => e.kind === 'column');
}

function below(expr: Expr, f: (e: Expr) => Expr): Expr {
  return mapChildren(expr, f, (q) => q);
}

/** Aggregates that ignore NULLs. */
const SKIPPING: ReadonlySet<string> = new Set([
  'sum',
  'avg',
  'min',
  'max',
  'count',
  'stddev',
  'stddev_pop',
  'stddev_samp',
  'variance',
  'var_pop',
  'var_samp',
  'bool_and',
  'bool_or',
  'every',
]);

/** Excludes rows that an outer join filled with NULLs from all aggregates in `value`. */
export function overPresent(value: Expr, present: readonly Expr[]): Expr {
  const there = (e: Expr): Expr => {
    if (e.kind === 'aggregate') return skipsMissing(e) ? e : present.reduce(filterAggregates, e);
    return mapChildren(e, there, (q) => q);
  };
  return there(value);
}

function skipsMissing({ definition, args }: Aggregate): boolean {
  return SKIPPING.has(definition.name) && args[0]?.kind === 'column';
}

/**
 * Returns a condition that is true if the outer join in `from` found a row of `source`: its join column is not NULL.
 * Returns null if there is no such column.
 */
export function isPresent(from: FromItem, source: SourceId): Expr | null {
  if (from.kind !== 'join') return null;
  const inRight = leavesOf(from.right).some((l) => l.id === source);
  const optional = from.type === 'full' || (inRight && from.type === 'left');
  const below = isPresent(inRight ? from.right : from.left, source);
  if (below !== null || !optional || from.type === 'full') return below;
  for (const e of from.on) {
    if (e.kind !== 'operation' || e.definition.name !== '=') continue;
    for (const side of [e.left, e.right]) {
      if (side?.kind === 'column' && side.source === source) return isNotNull(side);
    }
  }
  return null;
}

export function filterAggregates(expr: Expr, filter: Expr): Expr {
  const below = mapChildren(
    expr,
    (e) => filterAggregates(e, filter),
    (q) => q,
  );
  if (below.kind !== 'aggregate') return below;
  const both = below.filter === null ? filter : allOf([below.filter, filter]);
  return Object.freeze({ ...below, filter: both } satisfies Aggregate);
}
