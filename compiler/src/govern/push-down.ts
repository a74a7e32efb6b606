import { InternalError } from '../errors/errors.js';
import { enumEquality } from '../plan/key-equality.js';
import type { Expr, FromItem, GovernedScan, Query, Select, SourceId } from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { mapChildren, visitExpr } from '../plan/walk.js';

/**
 * Moves harmless conjuncts over one fenced scan inside its fence, next to the filter, where they can use an index. A
 * conjunct over the nullable side of an outer join is not moved, since inside the scan it would have another meaning.
 */
export function pushPredicates(root: Query, isHarmless: (condition: Expr) => boolean): Query {
  return mapQuery(root, {
    query: (q) => (q.kind === 'select' ? pushed(q, (scan) => scan.fenced, isHarmless) : q),
  });
}

/**
 * Moves equalities between an enum and a value next to the filter of its scan: only there does the column have its
 * original type, which an index on it needs. Equality of enums and of texts never fails.
 */
export function pushEnumEqualities(root: Query): Query {
  return mapQuery(root, {
    query: (q) => (q.kind === 'select' && q.where.length > 0 ? pushed(q, hasEnum, comparesEnum) : q),
  });
}

function hasEnum({ columns, minimum }: GovernedScan): boolean {
  return (
    minimum === null && columns.some(({ expr }) => expr.kind === 'base' && expr.stored?.startsWith('enum '))
  );
}

function comparesEnum(condition: Expr, scan: GovernedScan): boolean {
  if (condition.kind !== 'operation' || condition.definition.name !== '=') return false;
  const asked = overBase(condition, scan);
  return asked.kind === 'operation' && enumEquality(asked) !== null;
}

function pushed(
  query: Select,
  into: (scan: GovernedScan) => boolean,
  isMoved: (condition: Expr, scan: GovernedScan) => boolean,
): Select {
  const scans = new Map(
    strictScans(query.from)
      .filter(into)
      .map((s) => [s.id, s]),
  );
  if (scans.size === 0) return query;
  const moved = new Map<SourceId, Expr[]>();
  const kept = query.where.filter((c) => {
    const scan = soleScan(c, scans);
    if (scan === null || !isMoved(c, scan)) return true;
    moved.set(scan.id, [...(moved.get(scan.id) ?? []), overBase(c, scan)]);
    return false;
  });
  const from = (item: FromItem): FromItem => {
    if (item.kind === 'join')
      return Object.freeze({ ...item, left: from(item.left), right: from(item.right) });
    const mine = item.kind === 'governed' ? moved.get(item.id) : undefined;
    return item.kind === 'governed' && mine !== undefined
      ? Object.freeze({ ...item, pushed: Object.freeze([...item.pushed, ...mine]) })
      : item;
  };
  return Object.freeze({
    ...query,
    where: Object.freeze(kept),
    from: query.from === null ? null : from(query.from),
  });
}

/** Returns the scans in FROM that WHERE filters directly: not those whose rows an outer join may replace by NULLs. */
function strictScans(item: FromItem | null): readonly GovernedScan[] {
  if (item === null) return [];
  if (item.kind === 'join') {
    if (item.type === 'full') return [];
    return [...strictScans(item.left), ...(item.type === 'inner' ? strictScans(item.right) : [])];
  }
  return item.kind === 'governed' ? [item] : [];
}

function soleScan(expr: Expr, scans: ReadonlyMap<SourceId, GovernedScan>): GovernedScan | null {
  const sources = new Set<SourceId>();
  let plain = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') sources.add(e.source);
    if (e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query') plain = false;
  });
  const [only] = sources;
  return plain && sources.size === 1 && only !== undefined ? (scans.get(only) ?? null) : null;
}

/** Returns `expr` rewritten over the scan's base columns, each as this caller sees it. */
function overBase(expr: Expr, scan: GovernedScan): Expr {
  if (expr.kind !== 'column')
    return mapChildren(
      expr,
      (e) => overBase(e, scan),
      (q) => q,
    );
  const column = scan.columns.find((c) => c.name === expr.name);
  if (column === undefined)
    throw new InternalError(`scan of ${scan.relation.name} has no column ${expr.name}`);
  return column.expr;
}
