import type { Expr } from '../plan.js';
import { mapChildren } from '../walk.js';

/** What is known of one subject's attributes; an attribute that is not here is missing. */
export type AttributePattern = ReadonlyMap<string, 'any' | 'values'>;

/**
 * Ties a predicate to a delegation chain, root first: it must hold for every subject, so a longer chain can only
 * see less. A missing attribute matches nothing, `any` matches everything.
 */
export function forChain(filter: Expr, chain: readonly AttributePattern[]): Expr {
  if (!mentionsAttribute(filter)) return filter;
  const each = chain.map((pattern, subject) => tied(filter, pattern, subject));
  const [only] = each;
  if (only !== undefined && each.length === 1) return only;
  return Object.freeze({ kind: 'and', args: Object.freeze(each), type: 'bool' });
}

function mentionsAttribute(expr: Expr): boolean {
  return JSON.stringify(expr).includes('"attribute_match"');
}

function tied(expr: Expr, pattern: AttributePattern, subject: number): Expr {
  if (expr.kind !== 'attribute_match')
    return mapChildren(
      expr,
      (e) => tied(e, pattern, subject),
      (q) => q,
    );
  const known = pattern.get(expr.attribute);
  if (known === 'values') return Object.freeze({ ...expr, subject });
  return Object.freeze({ kind: 'boolean', value: known === 'any', type: 'bool' });
}
