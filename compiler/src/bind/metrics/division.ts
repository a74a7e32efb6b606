import type { Expr } from '../../plan/plan.js';
import type { TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { type Bound, coerce } from '../expressions/coerce.js';
import { infix } from '../expressions/infix.js';

const INTEGERS: ReadonlySet<TypeName> = new Set<TypeName>(['int2', 'int4', 'int8']);

/** `left / right` as metrics divide: whole numbers give a fraction, and what is divided by zero is NULL. */
export function quotient(left: Bound, right: Bound, location: Location, ctx: BindContext): Expr {
  return infix('/', exact(left, ctx), nonZero(right, ctx), location, ctx);
}

/** `left % right`, NULL where `right` is zero. */
export function remainder(left: Bound, right: Bound, location: Location, ctx: BindContext): Expr {
  return infix('%', left, nonZero(right, ctx), location, ctx);
}

function exact(bound: Bound, ctx: BindContext): Bound {
  return bound.kind !== 'untyped' && INTEGERS.has(bound.type) ? coerce(bound, 'numeric', ctx) : bound;
}

function nonZero(bound: Bound, ctx: BindContext): Bound {
  if (bound.kind === 'untyped') return bound;
  if (ctx.literalIn(bound)?.holds((text) => Number(text) !== 0) === true) return bound;
  const zero = coerce(ctx.constant('0', 'int4'), bound.type, ctx);
  return Object.freeze({
    kind: 'conditional',
    form: 'nullif',
    args: Object.freeze([bound, zero]),
    type: bound.type,
  });
}
