import type { ConversionMetric, Relation } from '../../catalog/catalog.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, columnRef, selectOf } from '../../plan/nodes.js';
import type { Aggregate, ColumnRef, Expr, SourceId } from '../../plan/plan.js';
import { mapChildren, someExpr } from '../../plan/walk.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { attributed, type Events, type LaterEvents } from './attributed.js';
import { materialized, tableRows, unnamedOutputs } from './build.js';
import type { Branch, JoinedRows } from './joined-rows.js';

/** A conversion metric in a SELECT over its base events. */
export interface ConversionUse {
  /**
   * Placeholder source that is in no FROM. Its columns are the inputs of the metric's aggregates and a flag for
   * conversion events.
   */
  readonly placeholder: SourceId;
  readonly item: { readonly source: SourceId; readonly relation: Relation | null };
  readonly conversion: ConversionMetric;
  readonly events: Events;
  readonly later: LaterEvents;
  /** The caller's FILTER, which applies to base events, or null. */
  readonly filter: Expr | null;
  readonly metric: string;
  readonly location: Location;
}

/** Value of the metric over the placeholder's columns. */
export function valueOfLater({ placeholder, later }: Pick<ConversionUse, 'placeholder' | 'later'>): Expr {
  const columns = later.deferred.inputs.map((x, i) => columnRef(placeholder, `c${i + 1}`, x.type));
  return later.deferred.value(columns, columnRef(placeholder, 'taken', 'bool'));
}

/** Conversion events in the groups of their base events. */
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
      const found = attributed(conversion, bases, later, ctx);
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

/** `call` over the columns of the union, without the caller's FILTER, which was applied to base events. */
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
