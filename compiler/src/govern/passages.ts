import { InternalError } from '../errors/errors.js';
import { columnRef, FALSE, selectOf, TRUE } from '../plan/nodes.js';
import {
  type ColumnRef,
  type DerivedTable,
  type Expr,
  type FromItem,
  type GovernedScan,
  type PlanOutput,
  SHOWN,
  type SourceId,
} from '../plan/plan.js';
import { mapChildren } from '../plan/walk.js';

/** The visible passages, as the rest of a statement reads them. */
export interface Passages {
  readonly from: FromItem;
  readonly where: readonly Expr[];
  readonly ref: (column: string) => ColumnRef;
}

/**
 * The passages of `scan` that meet `where`, which decides what the caller may see, and the caller's own `filters`.
 *
 * A passage is hidden by the row filter of its facet or by that of its entity, and whether the entity exists is not a
 * column of the passage, so no guard can test it. Filters that might fail therefore run behind a fence, in a separate
 * level.
 *
 * @param zero the parameter 0
 */
export function passagesOf(
  scan: GovernedScan,
  where: readonly Expr[],
  filters: { readonly harmless: readonly Expr[]; readonly others: readonly Expr[] },
  id: SourceId,
  zero: Expr,
): Passages {
  const own = (name: string): ColumnRef => {
    const column = scan.columns.find((c) => c.name === name);
    if (column === undefined) throw new InternalError(`the store has no column ${name}`);
    return columnRef(scan.id, name, column.type);
  };
  const visible = [...filters.harmless, ...where];
  if (filters.others.length === 0) return { from: scan, where: visible, ref: own };

  const shown: PlanOutput = { name: SHOWN, expr: TRUE };
  const outputs = [...scan.columns.map(({ name }): PlanOutput => ({ name, expr: own(name) })), shown];
  const query = selectOf({ from: scan, where: visible, outputs, offset: zero });
  const from: DerivedTable = { kind: 'derived', id, query };
  const ref = (name: string): ColumnRef => {
    const index = outputs.findIndex((o) => o.name === name);
    const output = outputs[index];
    if (output === undefined) throw new InternalError(`the store has no column ${name}`);
    return columnRef(id, `c${index + 1}`, output.expr.type);
  };
  return { from, where: filters.others.map((f) => whereShown(above(f, scan.id, ref), ref(SHOWN))), ref };
}

/** Rewrites `expr` to read the columns of the fenced level. */
function above(expr: Expr, source: SourceId, ref: (column: string) => ColumnRef): Expr {
  if (expr.kind === 'column') return expr.source === source ? ref(expr.name) : expr;
  return mapChildren(
    expr,
    (e) => above(e, source, ref),
    (q) => q,
  );
}

/** A fence does not keep the planner from trying a condition on column statistics; a CASE does. */
function whereShown(condition: Expr, shown: Expr): Expr {
  return {
    kind: 'case',
    arms: [{ when: shown, result: condition }],
    otherwise: FALSE,
    type: 'bool',
  };
}
