import type { Relation } from '../catalog/catalog.js';
import type { Expr, Query, RecursionRef } from './plan.js';
import { allLeaves, allQueries, childrenOf, exprsOf, leavesOf, someExpr } from './walk.js';

/** Returns the relations that a governed query scans, without those of its runtime steps. */
export function relationsRead(query: Query): readonly Relation[] {
  const found = new Map<string, Relation>();
  for (const leaf of allLeaves(query))
    if (leaf.kind === 'governed') found.set(leaf.relation.name, leaf.relation);
  return [...found.values()];
}

/** Returns the FROM item of a recursive table's second operand that reads the previous step; null if there is none. */
export function recursionIn(query: Query, table: number): RecursionRef | null {
  if (query.kind !== 'set_operation' || query.right.kind !== 'select') return null;
  const found = leavesOf(query.right.from).find((l) => l.kind === 'recursion' && l.table === table);
  return found?.kind === 'recursion' ? found : null;
}

/**
 * Returns the expressions that column `index` of any earlier step comes from; none of them reads the previous step.
 *
 * @param outputsAt the expressions that define an output of a query
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

/** Returns the collation that COLLATE gives an expression or its parts: null if none, `several` if they differ. */
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
