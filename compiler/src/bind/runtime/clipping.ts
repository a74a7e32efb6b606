import type { CommonTable, Expr, FromItem, Query, Select, SourceId } from '../../plan/plan.js';
import { allQueries, exprsOf, leavesOf, someExpr } from '../../plan/walk.js';

/**
 * Handling of a cap that leaves out rows of a step. Rows shown one by one are still right, and the answer says that
 * some are missing. Anything computed from several rows is a figure, and would be wrong.
 */

/**
 * True if each row of the answer is one row of FROM item `source`, whatever others there are: no aggregate, DISTINCT,
 * window, join, set operation or subquery over it, and no LIMIT of an order that the caller asked for.
 *
 * @param inOwnOrder true if the rows of a SELECT have the order of the step itself, because the caller named none
 */
export function answersRowByRow(
  query: Query,
  source: SourceId,
  inOwnOrder: (select: Select) => boolean,
): boolean {
  const levels = levelsDownTo(query, source);
  if (levels === null) return false;
  const ordered = levels.some((s) => s.orderBy.length > 0 && !inOwnOrder(s));
  const limited = levels.some((s) => s.limit !== null || s.offset !== null);
  return levels.every(isRowByRow) && !(ordered && limited);
}

/** The SELECTs from `query` down to the one that reads `source`, each alone in the FROM of the one above; else null. */
function levelsDownTo(query: Query, source: SourceId): readonly Select[] | null {
  const tables = new Map(tablesIn(query).map((t) => [t.id, t]));
  const references = allQueries(query).flatMap(itemsOf);
  const levels: Select[] = [];
  for (let at: Query | undefined = query; at !== undefined; ) {
    if (at.kind !== 'select') return null;
    levels.push(at);
    const items = leavesOf(at.from);
    // A walk brings the entity that it leads to, and so two items of its own.
    if (items.some((i) => i.kind === 'runtime' && i.id === source)) return items.length === 2 ? levels : null;
    const [item, ...more] = items;
    if (item === undefined || more.length > 0) return null;
    if (item.kind === 'derived') at = item.query;
    else if (item.kind === 'cte') {
      const uses = references.filter((i) => i.kind === 'cte' && i.table === item.table);
      at = uses.length === 1 ? tables.get(item.table)?.query : undefined;
    } else return null;
  }
  return null;
}

function tablesIn(query: Query): readonly CommonTable[] {
  return allQueries(query).flatMap((q) => (q.kind === 'values' ? [] : q.with));
}

function itemsOf(query: Query): readonly FromItem[] {
  return query.kind === 'select' ? leavesOf(query.from) : [];
}

function isRowByRow({ grouped, distinct, distinctOn, outputs, orderBy }: Select): boolean {
  const shown = [
    ...outputs.map((o) => o.expr),
    ...orderBy.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by])),
  ];
  return (
    !grouped &&
    !distinct &&
    distinctOn.length === 0 &&
    !shown.some((e) => someExpr(e, (x) => x.kind === 'window'))
  );
}

/**
 * True if column `name` of FROM item `source` reaches the answer unchanged: nothing is computed from it, or filtered,
 * joined, grouped, made distinct or ordered by it. Then the answer can say which of its cells are incomplete.
 */
export function isOnlyShown(query: Query, source: SourceId, name: string): boolean {
  const isIt = (e: Expr): boolean => e.kind === 'column' && e.source === source && e.name === name;
  for (const level of allQueries(query)) {
    const bare = level.kind === 'select' ? level.outputs.map((o) => o.expr).filter(isIt) : [];
    if (exprsOf(level).some((e) => !bare.includes(e) && someExpr(e, isIt))) return false;
    if (level.kind !== 'select' || bare.length === 0) continue;
    const places = level.outputs.flatMap((o, i) => (isIt(o.expr) ? [i + 1] : []));
    const sorted = level.orderBy.some((k) => typeof k.by === 'number' && places.includes(k.by));
    if (level.distinct || sorted) return false;
    if (level === query) continue;
    const readers = readersOf(level, query);
    if (readers === null) return false;
    if (!readers.every((id) => places.every((place) => isOnlyShown(query, id, `c${place}`)))) return false;
  }
  return true;
}

/** The FROM items that read the rows of `inner`; null where a set operation or a subquery in a value does. */
function readersOf(inner: Query, query: Query): readonly SourceId[] | null {
  const table = tablesIn(query).find((t) => t.query === inner);
  const readers = allQueries(query)
    .flatMap(itemsOf)
    .flatMap((i) =>
      (i.kind === 'derived' && i.query === inner) || (i.kind === 'cte' && i.table === table?.id)
        ? [i.id]
        : [],
    );
  return readers.length === 0 ? null : readers;
}
