import { allOf, FALSE, TRUE } from '../plan/nodes.js';
import type { Expr } from '../plan/plan.js';
import { mapChildren, someExpr } from '../plan/walk.js';

/**
 * How many values one subject has of each attribute; `any` matches everything, and an attribute that is not here is
 * missing. One value is compared by `=`, which Postgres carries to the other side of a join; a list of it is not.
 */
export type AttributePattern = ReadonlyMap<string, 'any' | 'none' | 'one' | 'many'>;

/** The pattern of one subject's attributes. */
export function attributePattern(
  attributes: ReadonlyMap<string, 'any' | readonly string[]>,
): AttributePattern {
  const countOf = (value: 'any' | readonly string[]): 'any' | 'none' | 'one' | 'many' =>
    value === 'any' ? 'any' : value.length === 0 ? 'none' : value.length === 1 ? 'one' : 'many';
  return new Map([...attributes].map(([name, value]) => [name, countOf(value)] as const));
}

/**
 * Ties a predicate to a delegation chain, root first: it must hold for every subject, so a longer chain can only
 * see less. `any` matches everything; where an attribute is missing the whole predicate is false, so that a NOT
 * around it cannot turn that into everything.
 */
export function forChain(filter: Expr, chain: readonly AttributePattern[]): Expr {
  if (!mentionsAttribute(filter)) return filter;
  const each = chain.map((pattern, index) =>
    lacksAttribute(filter, pattern) ? FALSE : tieToSubject(filter, pattern, index),
  );
  return each.length === 0 ? FALSE : allOf(each);
}

function mentionsAttribute(filter: Expr): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match');
}

function lacksAttribute(filter: Expr, pattern: AttributePattern): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match' && !pattern.has(e.attribute));
}

function tieToSubject(expr: Expr, pattern: AttributePattern, index: number): Expr {
  if (expr.kind !== 'attribute_match') {
    return mapChildren(
      expr,
      (e) => tieToSubject(e, pattern, index),
      (q) => q,
    );
  }
  const values = pattern.get(expr.attribute) ?? 'none';
  if (values === 'any') return TRUE;
  if (values === 'none') return FALSE;
  return Object.freeze({ ...expr, subject: Object.freeze({ index, values }) });
}
