import { InternalError } from '../errors.js';
import type { Expr, Form, FromItem, GovernedScan, Query, Slot, SourceId } from '../plan.js';
import { allQueries, childrenOf, columnsOf, exprsOf, leavesOf, queryOf } from '../walk.js';
import { verifyBarrier } from './verify-barrier.js';
import { verifyMinima } from './verify-minimum.js';

/**
 * The last check before a plan may run: every scan is governed, every id resolves to something in scope, every
 * parameter has its slot, nothing that only policy may hold is left, and nothing can fail on a row that is hidden.
 *
 * @throws InternalError; a caller's mistake cannot cause one
 */
export function verify(root: Query, slots: readonly Slot[], form: Form): void {
  if (form !== 'sql') verifyJoins(root, form);
  verifyQuery(root, slots, new Map(), new Map());
  verifyMinima(root, slots);
  verifyBarrier(root, slots);
}

/** Raw SQL joins freely, a metrics question what it has already grouped; no form of OSL-SQL does. */
function verifyJoins(root: Query, form: Form): void {
  const sound = (item: FromItem | null): boolean =>
    item?.kind !== 'join' ||
    ((item.sealed || (form === 'metrics' && leavesOf(item).every((l) => COMPUTED.has(l.kind)))) &&
      sound(item.left) &&
      sound(item.right));
  if (!allQueries(root).every((q) => q.kind !== 'select' || sound(q.from)))
    throw new InternalError('a join on no sealed key');
}

/** What is made of scans, and is none. */
const COMPUTED: ReadonlySet<FromItem['kind']> = new Set<FromItem['kind']>(['derived', 'cte', 'spine']);

type Offered = ReadonlyMap<SourceId, ReadonlySet<string>>;
type Tables = ReadonlyMap<number, Query>;

function verifyQuery(query: Query, slots: readonly Slot[], outer: Offered, around: Tables): void {
  const tables = new Map(around);
  if (query.kind !== 'values') {
    for (const t of query.with) {
      verifyQuery(t.query, slots, new Map(), tables);
      tables.set(t.id, t.query);
    }
  }
  const offered = new Map(outer);
  if (query.kind === 'set_operation') {
    verifyQuery(query.left, slots, outer, tables);
    verifyQuery(query.right, slots, outer, tables);
  }
  if (query.kind === 'select') {
    for (const leaf of leavesOf(query.from)) offered.set(leaf.id, verifyLeaf(leaf, slots, tables));
  }
  for (const expr of exprsOf(query)) verifyExpr(expr, slots, offered, tables);
}

function verifyLeaf(
  leaf: Exclude<FromItem, { kind: 'join' }>,
  slots: readonly Slot[],
  tables: Tables,
): ReadonlySet<string> {
  switch (leaf.kind) {
    case 'entity':
      throw new InternalError(`scan of ${leaf.relation.name} is not governed`);
    case 'governed':
      return verifyScan(leaf, slots);
    case 'derived':
      verifyQuery(leaf.query, slots, new Map(), tables);
      return positions(leaf.query);
    case 'cte': {
      const table = tables.get(leaf.table);
      if (table === undefined) throw new InternalError(`common table ${leaf.table} is not in scope`);
      return positions(table);
    }
    case 'spine':
      verifyQuery(leaf.bounds, slots, new Map(), tables);
      return new Set(['c1']);
    case 'runtime':
      return new Set(leaf.columns.map((c) => c.name));
    default: {
      const unknown: never = leaf;
      throw new InternalError(`unexpected FROM item ${String(unknown)}`);
    }
  }
}

function positions(query: Query): ReadonlySet<string> {
  return new Set(columnsOf(query).map((_, i) => `c${i + 1}`));
}

function verifyScan(scan: GovernedScan, slots: readonly Slot[]): ReadonlySet<string> {
  const physical = new Set(scan.relation.columns.map((c) => c.physical));
  const inside = (e: Expr): void => {
    const stored = e.kind === 'distance' || e.kind === 'stored_vector';
    if (stored && scan.relation.kind !== 'facet')
      throw new InternalError(`${scan.relation.name} has no vectors`);
    if (e.kind === 'base' && !physical.has(e.column))
      throw new InternalError(`${scan.relation.name} has no column ${e.column}`);
    if (e.kind === 'column' || queryOf(e) !== null)
      throw new InternalError(`scan of ${scan.relation.name} looks outside itself`);
    verifyLeafExpr(e, slots);
    childrenOf(e).forEach(inside);
  };
  for (const e of [
    ...scan.columns.map((c) => c.expr),
    ...scan.pushed,
    ...(scan.filter === null ? [] : [scan.filter]),
  ])
    inside(e);
  return new Set(scan.columns.map((c) => c.name));
}

function verifyExpr(expr: Expr, slots: readonly Slot[], offered: Offered, tables: Tables): void {
  if (expr.kind === 'distance' || expr.kind === 'stored_vector')
    throw new InternalError('a vector outside a governed scan');
  if (expr.kind === 'base') throw new InternalError(`base column ${expr.column} outside a governed scan`);
  if (expr.kind === 'column' && offered.get(expr.source)?.has(expr.name) !== true) {
    throw new InternalError(`column ${expr.name} of source ${expr.source} is not in scope`);
  }
  verifyLeafExpr(expr, slots);
  const inner = queryOf(expr);
  if (inner !== null) verifyQuery(inner, slots, offered, tables);
  for (const child of childrenOf(expr)) verifyExpr(child, slots, offered, tables);
}

function verifyLeafExpr(expr: Expr, slots: readonly Slot[]): void {
  if (expr.kind === 'literal' || expr.kind === 'attribute_match')
    throw new InternalError(`${expr.kind} was not grounded`);
  if (expr.kind === 'parameter' && slots[expr.slot]?.type !== expr.type)
    throw new InternalError(`parameter ${expr.slot} has no slot`);
}
