import type { Relation } from '../catalog/catalog.js';
import type { Expr, FromItem, Query, RecursionRef, SourceId } from './plan.js';
import { allLeaves, allQueries, childrenOf, exprsOf, leavesOf, someExpr } from './walk.js';

/** Returns the relations that a governed query scans, without those of its runtime steps. */
export function relationsRead(query: Query): readonly Relation[] {
  const found = new Map<string, Relation>();
  for (const leaf of allLeaves(query))
    if (leaf.kind === 'governed') found.set(leaf.relation.name, leaf.relation);
  return [...found.values()];
}

/** Returns the FROM item of a recursive table that reads the previous step; null if no item reads it. */
export function recursionIn(query: Query, table: number): RecursionRef | null {
  if (query.kind !== 'set_operation' || query.right.kind !== 'select') return null;
  const found = leavesOf(query.right.from).find((l) => l.kind === 'recursion' && l.table === table);
  return found?.kind === 'recursion' ? found : null;
}

/**
 * Returns the expressions from which column `index` of a recursive table is computed in any step; none of them reads
 * the previous step.
 *
 * @param outputsAt returns the expressions that define an output of a query
 */
export function stepValues(
  query: Query,
  recursion: RecursionRef,
  index: number,
  outputsAt: (query: Query, index: number) => readonly Expr[],
): readonly Expr[] {
  if (query.kind !== 'set_operation') return [];
  const found: Expr[] = [];
  const open = new Set([index]);
  const readsStep = (e: Expr): boolean =>
    someExpr(e, (x) => x.kind === 'column' && x.source === recursion.id);
  const collect = (e: Expr): void => {
    if (!readsStep(e)) found.push(e);
    else if (e.kind === 'column') open.add(Number(e.name.slice(1)) - 1);
    else childrenOf(e).forEach(collect);
  };
  // A Set also iterates over elements that are added during the iteration.
  for (const column of open) {
    found.push(...outputsAt(query.left, column));
    outputsAt(query.right, column).forEach(collect);
  }
  return found;
}

/** True if any expression of a statement, at any depth, may yield a different value each time it is evaluated. */
export function isVolatile(root: Query): boolean {
  return allQueries(root).some((query) => exprsOf(query).some(callsVolatile));
}

/** True if an expression, ignoring queries in it, may yield a different value each time it is evaluated. */
export function callsVolatile(expr: Expr): boolean {
  return someExpr(expr, (e) => e.kind === 'call' && e.definition.volatility === 'volatile');
}

/**
 * The collations of `pg_catalog` that COLLATE may name. All are deterministic, so equal texts have equal bytes. The
 * ICU collations exist only if the database was built with ICU.
 */
export const COLLATIONS: ReadonlySet<string> = new Set([
  'C',
  'POSIX',
  'default',
  'ucs_basic',
  'und-x-icu',
  'en-x-icu',
  'de-x-icu',
  'es-x-icu',
  'fr-x-icu',
]);

const known = new WeakMap<Expr, string | null>();

/** Returns the collation that COLLATE sets in `expr`: null without COLLATE, `several` if there are different ones. */
export function explicitCollation(expr: Expr): string | null {
  if (expr.kind === 'collate') return expr.collation;
  if (expr.kind === 'column' || expr.kind === 'parameter') return null;
  const before = known.get(expr);
  if (before !== undefined) return before;
  let found: string | null = null;
  for (const child of partsOf(expr)) {
    const own = explicitCollation(child);
    if (own !== null) found = found === null || found === own ? own : 'several';
  }
  known.set(expr, found);
  return found;
}

/** Returns the parts that determine an expression's collation: not conditions, sort keys or row comparison pairs. */
function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'case':
      return [...expr.arms.map((a) => a.result), expr.otherwise];
    case 'aggregate':
    case 'window':
      return expr.args;
    case 'and':
    case 'or':
    case 'not':
    case 'row_comparison':
      return [];
    default:
      return childrenOf(expr);
  }
}

/** Names of two FROM items: a row of `of` may match several rows of `by`. */
export interface FanOut {
  readonly of: string;
  readonly by: string;
}

/**
 * Finds a join in `from` that could repeat a row of `source`, which would inflate sums over it; null if no join can. A
 * join repeats no rows if its ON covers the primary key of the added item.
 */
export function fanOutOf(from: FromItem, source: SourceId): FanOut | null {
  if (from.kind !== 'join') return null;
  const inLeft = leavesOf(from.left).some((l) => l.id === source);
  const [mine, other] = inLeft ? [from.left, from.right] : [from.right, from.left];
  const below = fanOutOf(mine, source);
  if (below !== null) return below;
  const others = new Set(leavesOf(other).map((l) => l.id));
  // Equal to something in its own side or to a random value, a key does not tie a row to one of `source`.
  const isGiven = (e: Expr): boolean =>
    !callsVolatile(e) && !someExpr(e, (x) => x.kind === 'column' && others.has(x.source));
  const keyed = leavesOf(other).find(
    (leaf) => leaf.kind === 'entity' && keyIsJoined(leaf.id, leaf.relation, from, isGiven),
  );
  if (keyed === undefined)
    return { of: nameOf(mine, source), by: nameOf(other, leavesOf(other)[0]?.id ?? source) };
  return fanOutOf(other, keyed.id);
}

/** Returns `source` and the FROM items that have at most one row for each row of `source`. */
export function itemsMetOnce(from: FromItem, source: SourceId): ReadonlySet<SourceId> {
  if (from.kind !== 'join') return new Set([source]);
  const inLeft = leavesOf(from.left).some((l) => l.id === source);
  const [mine, other] = inLeft ? [from.left, from.right] : [from.right, from.left];
  const met = new Set(itemsMetOnce(mine, source));
  const isMet = (e: Expr): boolean => e.kind === 'column' && met.has(e.source);
  for (const leaf of leavesOf(other)) {
    if (leaf.kind !== 'entity' || met.has(leaf.id) || !keyIsJoined(leaf.id, leaf.relation, from, isMet))
      continue;
    for (const id of itemsMetOnce(other, leaf.id)) met.add(id);
  }
  return met;
}

/** True if an outer join may replace rows of `source` with NULLs. */
export function mayBeMissing(from: FromItem | undefined, source: SourceId): boolean {
  if (from?.kind !== 'join') return false;
  const inRight = leavesOf(from.right).some((l) => l.id === source);
  if (from.type === 'full' || (inRight && from.type === 'left')) return true;
  return mayBeMissing(inRight ? from.right : from.left, source);
}

/** True if ON equates every column of the primary key of `source` to a value for which `isPartner` is true. */
function keyIsJoined(
  source: SourceId,
  relation: Relation,
  join: Extract<FromItem, { kind: 'join' }>,
  isPartner: (e: Expr) => boolean,
): boolean {
  const joined = new Set<string>();
  for (const e of join.on) {
    if (e.kind !== 'operation' || e.definition.name !== '=') continue;
    for (const [key, partner] of [
      [e.left, e.right],
      [e.right, e.left],
    ] as const) {
      if (key?.kind === 'column' && key.source === source && partner !== null && isPartner(partner))
        joined.add(key.name);
    }
  }
  return relation.primaryKey.length > 0 && relation.primaryKey.every((k) => joined.has(k));
}

function nameOf(item: FromItem, source: SourceId): string {
  const leaf = leavesOf(item).find((l) => l.id === source);
  if (leaf?.kind === 'rows') return `rows of ${leaf.definition.name}`;
  return leaf?.kind === 'entity' ? leaf.relation.name : 'a derived table';
}
