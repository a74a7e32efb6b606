import type { OperatorDefinition } from '../../functions/define.js';
import { resolveOperator } from '../../functions/index.js';
import { operationNode } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import { isInteger, type TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BoundExpression, coerce, typeOfBound } from './coerce.js';

export function prefix(name: string, right: BoundExpression, location: Location, ctx: BindContext): Expr {
  if (name === '+') return coerce(right, typeOfBound(right) ?? 'float8', ctx);
  const found = resolveOperator(name, undefined, typeOfBound(right));
  if (found === 'none' || found === 'ambiguous') {
    throw ctx.error('unknownOperator', { signature: `${name} ${typeOfBound(right) ?? 'unknown'}` }, location);
  }
  const arg = coerce(right, found.argumentTypes[0] ?? 'text', ctx);
  return ctx.at(operationNode(found.definition, null, arg, found.result), location);
}

export function infix(
  name: string,
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  const found = operatorFor(name, typeOfBound(left), typeOfBound(right), location, ctx);
  const [leftType = 'text', rightType = 'text'] = found.argumentTypes;
  const sides = [coerce(left, leftType, ctx, location), coerce(right, rightType, ctx, location)] as const;
  return ctx.at(operationNode(found.definition, ...sides, found.result), location);
}

/** Resolves an infix operator by its operand types. Null means an untyped literal. */
export function operatorFor(
  name: string,
  left: TypeName | null,
  right: TypeName | null,
  location: Location,
  ctx: BindContext,
) {
  const found = resolveOperator(name, left, right);
  if (found === 'ambiguous') {
    throw ctx.error(
      'ambiguous',
      { what: 'operator', name: `${left ?? 'unknown'} ${name} ${right ?? 'unknown'}` },
      location,
    );
  }
  if (found === 'none') {
    throw ctx.error(
      'unknownOperator',
      { signature: `${left ?? 'unknown'} ${name} ${right ?? 'unknown'}` },
      location,
    );
  }
  return found;
}

export function equalityOf(type: TypeName, location: Location, ctx: BindContext): OperatorDefinition {
  return operatorFor('=', type, type, location, ctx).definition;
}

/** Divides as metrics do: integers yield a fraction, and a zero divisor yields NULL. */
export function quotient(
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  return infix('/', exact(left, ctx), nonZero(right, ctx), location, ctx);
}

export function remainder(
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  return infix('%', left, nonZero(right, ctx), location, ctx);
}

function exact(bound: BoundExpression, ctx: BindContext): BoundExpression {
  return bound.kind !== 'untyped' && isInteger(bound.type) ? coerce(bound, 'numeric', ctx) : bound;
}

function nonZero(bound: BoundExpression, ctx: BindContext): BoundExpression {
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
