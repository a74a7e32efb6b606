import type { Expr } from './plan.js';
import { childrenOf } from './walk.js';

/**
 * The collations of `pg_catalog` that COLLATE may name: every one is deterministic, so that equal texts are the same
 * bytes. Those of ICU are there where the database was built with it.
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

/** The collation that COLLATE gives a value, be it in its parts: null for none, `several` where they differ. */
export function explicitCollation(expr: Expr): string | null {
  if (expr.kind === 'collate') return expr.collation;
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

/** The parts that determine the collation of a value: not conditions, nor sort keys. Pairs of rows have one each. */
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
