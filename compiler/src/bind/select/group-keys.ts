import { fingerprint } from '../../plan/fingerprint.js';
import type { Expr } from '../../plan/plan.js';
import { childrenOf } from '../../plan/walk.js';

/** A test of whether a value is one of `groupBy`. */
export function keyFinder(groupBy: readonly Expr[]): (expr: Expr) => boolean {
  const keys = new Set(groupBy.map(fingerprint));
  // Only a value as large as a key can be one: what a value is in words is written for those alone.
  const sizes = new Map<Expr, number>();
  const keySizes = new Set(groupBy.map((key) => sizeOf(key, sizes)));
  return (expr) => keySizes.has(sizeOf(expr, sizes)) && keys.has(fingerprint(expr));
}

/** Values that `expr` consists of, queries in it not entered. */
function sizeOf(expr: Expr, known: Map<Expr, number>): number {
  const children = childrenOf(expr);
  if (children.length === 0) return 1;
  const before = known.get(expr);
  if (before !== undefined) return before;
  let size = 1;
  for (const child of children) size += sizeOf(child, known);
  known.set(expr, size);
  return size;
}
