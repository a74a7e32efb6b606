import type { Node } from '@pgsql/types';
import { partsOf } from '../nodes.js';

/** Most alternatives of one policy; with more, its condition stays one filter. */
const MOST = 16;

/**
 * The alternatives of a condition, at least one of which must hold. Each becomes a grant of its own, so that a subject
 * without an attribute of one alternative keeps the others: a filter as a whole accepts no row if an attribute is missing.
 */
export function alternativesOf(node: Node): readonly Node[] {
  const found = expanded(node);
  return found.length > MOST ? [node] : found;
}

function expanded(node: Node): readonly Node[] {
  const either = partsOf(node, 'OR_EXPR');
  if (either.length > 1) return either.flatMap(expanded);
  const all = partsOf(node, 'AND_EXPR');
  if (all.length === 1) return [node];
  let found: readonly Node[] = [TRUE];
  for (const part of all) {
    const parts = expanded(part);
    if (found.length * parts.length > MOST) return [node];
    found = found.flatMap((one) => parts.map((other) => both(one, other)));
  }
  return found;
}

const TRUE: Node = { A_Const: { boolval: { boolval: true } } };

function both(one: Node, other: Node): Node {
  if (one === TRUE) return other;
  return {
    BoolExpr: { boolop: 'AND_EXPR', args: [...partsOf(one, 'AND_EXPR'), ...partsOf(other, 'AND_EXPR')] },
  };
}
