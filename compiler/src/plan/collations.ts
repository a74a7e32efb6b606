import type { Expr } from './plan.js';
import { childrenOf } from './walk.js';

/**
 * The collations of `pg_catalog` that COLLATE may name. All are deterministic, so that equal texts have equal bytes.
 * Those of ICU exist if the database was built with it.
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

/** The collation that COLLATE gives a value, directly or in its parts: null for none, `several` if they differ. */
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

/** Parts that determine a value's collation: not conditions, nor sort keys. Each pair of rows has its own. */
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
