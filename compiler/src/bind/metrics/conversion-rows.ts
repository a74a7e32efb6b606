import type { ConversionMetric, Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, columnRef } from '../../plan/nodes.js';
import type { Aggregate, ColumnRef, CommonTable, Expr, SortKey, SourceId } from '../../plan/plan.js';
import { ascending, selectOf } from '../../plan/select-nodes.js';
import { mapChildren, someExpr } from '../../plan/walk.js';
import { isComparable } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import type { DeferredAggregates } from './aggregates.js';
import {
  call,
  derivedRows,
  joinedOn,
  materialized,
  operation,
  type QueryRows,
  rowNumber,
  tableRows,
  unnamedOutputs,
} from './build.js';
import type { Branch, JoinedRows } from './joined-rows.js';
import { interval } from './time.js';

/**
 * Conditions and values of one side of a conversion metric. Each conversion event is attributed to a single base
 * event, so that it counts once: the latest one that has equal values in `same`, is not later than the conversion, and
 * lies within the window. It then counts in the groups of that base event.
 */
export interface Events {
  readonly same: readonly Expr[];
  /** The time of the event, as a timestamp in UTC. */
  readonly at: Expr;
  readonly where: readonly Expr[];
}

/** Conversion events with the inputs of the metric's aggregates. */
export interface ConversionEvents {
  /** Its columns are `same…`, `at`, a row number, and `inputs…`. */
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

/** @param bases base events: `same…`, `at`, and tie-breakers for events at the same time */
export function attributeEvents(
  metric: ConversionMetric,
  bases: CommonTable,
  { table }: ConversionEvents,
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
/** Compares columns of both events for equality. @throws QueryError E0511 if their types differ */
export function equality(base: Expr, later: Expr, ctx: BindContext): Expr {
  const equal = operation('=', base, later, ctx);
  if (equal.kind === 'operation' && equal.left === base && equal.right === later) return equal;
  throw ctx.mismatch('what a conversion is equal in has two types', undefined);
}

/** A use of a conversion metric in a SELECT over its base events. */
export interface ConversionUse {
  /**
   * A placeholder source that no FROM contains. Its columns are the inputs of the metric's aggregates and a flag for
   * conversion events.
   */
  readonly placeholder: SourceId;
  readonly item: { readonly source: SourceId; readonly relation: Relation | null };
  readonly conversion: ConversionMetric;
  readonly events: Events;
  readonly later: ConversionEvents;
  /** The caller's FILTER, which applies to base events; null if there is none. */
  readonly filter: Expr | null;
  readonly metric: string;
  readonly location: Location;
}

/** Returns the metric's value, computed from the placeholder's columns. */
export function conversionValue({ placeholder, later }: Pick<ConversionUse, 'placeholder' | 'later'>): Expr {
  const columns = later.deferred.inputs.map((x, i) => columnRef(placeholder, `c${i + 1}`, x.type));
  return later.deferred.value(columns, columnRef(placeholder, 'taken', 'bool'));
}

/** Creates the branch of the union with the conversion events, grouped by keys of their base events. */
export function conversionBranch(converted: ConversionUse, rows: JoinedRows, ctx: BindContext): Branch {
  const { placeholder, conversion, events, later } = converted;
  const where = [...events.where, ...(converted.filter === null ? [] : [converted.filter])];
  const needed = [...events.same, events.at, ...where].map((e) => rows.columnOf(e));
  const conditions = needed.slice(events.same.length + 1);
  return {
    inputs: later.deferred.inputs,
    withinGroups: true,
    has: (call) => reads(call, placeholder),
    value: (call, columns, taken) => overUnion(call, converted, columns, taken),
    rows: (all, keys) => {
      const use = tableRows(all, ctx);
      const own = (e: Expr): Expr => rows.ofUse(e, use.item);
      const shown = use.columns.filter((c): c is ColumnRef => c.kind === 'column' && keys.has(c.name));
      const bases = materialized(
        selectOf({
          from: use.item,
          where: Object.freeze(conditions.map(own)),
          outputs: unnamedOutputs([...needed.slice(0, events.same.length + 1).map(own), ...shown]),
        }),
        ctx,
      );
      const found = attributeEvents(conversion, bases, later, ctx);
      return {
        from: found.rows.item,
        where: [found.where],
        keys: new Map(shown.map((c, i) => [c.name, found.keys[i] ?? c])),
        inputs: found.inputs,
        tables: [bases, later.table],
      };
    },
  };
}

function reads(expr: Expr, source: SourceId): boolean {
  return someExpr(expr, (x) => x.kind === 'column' && x.source === source);
}

/**
 * Rewrites `call` to read the union's columns. Drops the caller's FILTER, which has been applied to the base events.
 */
function overUnion(
  call: Aggregate,
  { placeholder, filter }: ConversionUse,
  columns: readonly Expr[],
  taken: ColumnRef,
): Expr {
  const isFilter = (e: Expr): boolean => filter !== null && fingerprint(e) === fingerprint(filter);
  const kept = (e: Expr): readonly Expr[] => {
    if (isFilter(e)) return [];
    return e.kind === 'and' ? e.args.flatMap(kept) : [e];
  };
  const own = (e: Expr): Expr => {
    if (e.kind !== 'column') return mapChildren(e, own, (q) => q);
    if (e.source !== placeholder) return e;
    return e.name === 'taken' ? taken : (columns[Number(e.name.slice(1)) - 1] ?? e);
  };
  const conditions = call.filter === null ? [] : kept(call.filter);
  return own(Object.freeze({ ...call, filter: allOf(conditions) }));
}
