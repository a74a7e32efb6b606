import { allOf, FALSE, TRUE } from '../nodes.js';
import type { Expr } from '../plan.js';
import { mapChildren, someExpr } from '../walk.js';

/** What is known of one subject's attributes; an attribute that is not here is missing. */
export type AttributePattern = ReadonlyMap<string, 'any' | 'values'>;

/**
 * Ties a predicate to a delegation chain, root first: it must hold for every subject, so a longer chain can only
 * see less. `any` matches everything; where an attribute is missing the whole predicate is false, so that a NOT
 * around it cannot turn that into everything.
 */
export function forChain(filter: Expr, chain: readonly AttributePattern[]): Expr {
  if (!mentionsAttribute(filter)) return filter;
  const each = chain.map((pattern, subject) =>
    lacksAttribute(filter, pattern) ? FALSE : tieToSubject(filter, pattern, subject),
  );
  return each.length === 0 ? FALSE : allOf(each);
}

function mentionsAttribute(filter: Expr): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match');
}

function lacksAttribute(filter: Expr, pattern: AttributePattern): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match' && !pattern.has(e.attribute));
}

function tieToSubject(expr: Expr, pattern: AttributePattern, subject: number): Expr {
  if (expr.kind !== 'attribute_match') {
    return mapChildren(
      expr,
      (e) => tieToSubject(e, pattern, subject),
      (q) => q,
    );
  }
  if (pattern.get(expr.attribute) === 'values') return Object.freeze({ ...expr, subject });
  return TRUE;
}
