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
 * The rows of a conversion metric. A later event is attributed to the last base event that is equal in all of `same`
 * and not after it, within the window, so that each counts once. Its figures belong to the groups of that base event.
 */
export interface Events {
  /** Values that are equal in an event and the one that follows it. */
  readonly same: readonly Expr[];
  /** Time of the event, as a timestamp of UTC. */
  readonly at: Expr;
  /** Conditions under which a row is an event. */
  readonly where: readonly Expr[];
}

/** The later events, and what their figure is made of. */
export interface LaterEvents {
  /** Its columns are `same…`, `at`, a number of the event, `inputs…`. */
  readonly table: CommonTable;
  readonly deferred: DeferredAggregates;
}

/** The later events, each with the base event that it is attributed to. */
export interface AttributedEvents {
  readonly rows: QueryRows;
  /** True for the base event that it is attributed to. */
  readonly where: Expr;
  /** Further columns of the base event. */
  readonly keys: readonly Expr[];
  readonly inputs: readonly Expr[];
}

/** @param bases the base events: `same…`, `at`, and keys, which decide where two of one moment come before an event */
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
/** The equality of a column of an event with that of a later one. @throws QueryError E0511 for columns of two types */
export function equality(base: Expr, later: Expr, ctx: BindContext): Expr {
  const equal = operation('=', base, later, ctx);
  if (equal.kind === 'operation' && equal.left === base && equal.right === later) return equal;
  throw ctx.mismatch('what a conversion is equal in has two types', undefined);
}
