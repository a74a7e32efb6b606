import type { ConversionMetric } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { ascending, selectOf } from '../../plan/nodes.js';
import type { CommonTable, Expr, SortKey } from '../../plan/plan.js';
import { isComparable } from '../../types/types.js';
import type { BindContext } from '../context.js';
import {
  call,
  derivedRows,
  joinedOn,
  operation,
  type QueryRows,
  rowNumber,
  tableRows,
  unnamedOutputs,
} from './build.js';
import type { DeferredAggregates } from './partial.js';
import { interval } from './time.js';

/**
 * Conditions and values of one side of a conversion metric. Each conversion event is attributed to the latest base
 * event that is equal in all of `same` and not after it, within the window, so that each counts once. It counts in the
 * groups of that base event.
 */
export interface Events {
  readonly same: readonly Expr[];
  /** Time of the event, as a timestamp in UTC. */
  readonly at: Expr;
  readonly where: readonly Expr[];
}

/** Conversion events with the inputs of the metric's aggregates. */
export interface LaterEvents {
  /** Columns: `same…`, `at`, a row number, `inputs…`. */
  readonly table: CommonTable;
  readonly deferred: DeferredAggregates;
}

/** Conversion events joined to base events. */
export interface AttributedEvents {
  readonly rows: QueryRows;
  readonly where: Expr;
  readonly keys: readonly Expr[];
  readonly inputs: readonly Expr[];
}

/** @param bases base events: `same…`, `at`, and keys that break ties between events at the same time */
export function attributed(
  metric: ConversionMetric,
  bases: CommonTable,
  { table }: LaterEvents,
  ctx: BindContext,
): AttributedEvents {
  const width = metric.same.length;
  const base = tableRows(bases, ctx);
  const later = tableRows(table, ctx);
  const begun = base.columns[width];
  const [at, number, ...inputs] = later.columns.slice(width);
  if (begun === undefined || at === undefined || number === undefined)
    throw new InternalError('events have a time');
  const keys = base.columns.slice(width + 1);
  const on = [
    ...metric.same.map((_, i) => equality(base.columns[i] ?? begun, later.columns[i] ?? at, ctx)),
    call('isfinite', [begun], ctx),
    ...withinWindow(metric, begun, at, ctx),
  ];
  const latest: SortKey = Object.freeze({ by: begun, descending: true, nullsFirst: false });
  const order = [latest, ...keys.filter((k) => isComparable(k.type)).map(ascending)];
  const outputs = unnamedOutputs([...keys, ...inputs, rowNumber([number], order)]);
  const rows = derivedRows(selectOf({ from: joinedOn(base.item, later.item, on), outputs }), ctx);
  const place = rows.columns.at(-1) ?? number;
  return {
    rows,
    where: operation('=', place, ctx.constant('1', 'int8'), ctx),
    keys: rows.columns.slice(0, keys.length),
    inputs: rows.columns.slice(keys.length, -1),
  };
}

function withinWindow(metric: ConversionMetric, begun: Expr, at: Expr, ctx: BindContext): readonly Expr[] {
  const { window } = metric;
  const before = operation('<=', begun, at, ctx);
  if (window === null) return [before];
  const from = operation('-', at, interval(window.count, window.unit, ctx), ctx);
  return [before, operation('>', begun, from, ctx)];
}
/** Equality of columns of both events. @throws QueryError E0511 if their types differ */
export function equality(base: Expr, later: Expr, ctx: BindContext): Expr {
  const equal = operation('=', base, later, ctx);
  if (equal.kind === 'operation' && equal.left === base && equal.right === later) return equal;
  throw ctx.mismatch('what a conversion is equal in has two types', undefined);
}
