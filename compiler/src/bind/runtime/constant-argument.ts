import { castTo } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { TypeName } from '../../types/types.js';
import { constantText, integerOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { type Environment, plainEnvironment } from '../environment.js';
import { coerce } from '../expressions/coerce.js';
import { bindExpression } from '../expressions/expression.js';
import { innerScope } from '../scope.js';
import { locationOf, type NamedArguments, refuseComputed, requiredArgument } from './named-arguments.js';

/** Where no column has a name. */
function constantEnvironment(ctx: BindContext): Environment {
  return plainEnvironment(ctx, innerScope(null, [], new Map()), 'an argument');
}

/** A literal or `$n`, as `type`. */
export function constantArgument(args: NamedArguments, name: string, type: TypeName, ctx: BindContext): Expr {
  const node = requiredArgument(args, name, ctx);
  const at = locationOf(node, args);
  const value = coerce(bindExpression(node, constantEnvironment(ctx)), type, ctx, at);
  refuseComputed(value, name, at, ctx);
  return value;
}

/** A whole number from `least` to `most`, or `$n`, of which only its value says whether it is one. */
export function requiredCount(
  args: NamedArguments,
  name: string,
  least: number,
  most: number,
  ctx: BindContext,
): Expr {
  const node = requiredArgument(args, name, ctx);
  if ('ParamRef' in node) return countParameter(args, name, ctx);
  const value = integerOf(node) ?? Number.NaN;
  if (!Number.isInteger(value) || value < least || value > most) {
    const detail = `\`${name}\` is a whole number from ${least} to ${most}`;
    throw ctx.mismatch(detail, locationOf(node, args));
  }
  return ctx.constant(String(value), 'int4');
}

/** `$n` as a count; drivers that declare it as another integer are taken at their word. */
function countParameter(args: NamedArguments, name: string, ctx: BindContext): Expr {
  const bound = bindExpression(requiredArgument(args, name, ctx), constantEnvironment(ctx));
  if (bound.kind === 'untyped' || (bound.type !== 'int2' && bound.type !== 'int8'))
    return constantArgument(args, name, 'int4', ctx);
  return castTo(bound, 'int4');
}

/** One of a few words that the plan depends on; `fallback` where it is not given. */
export function wordArgument<W extends string>(
  args: NamedArguments,
  name: string,
  words: readonly W[],
  fallback: W,
  ctx: BindContext,
): W {
  const node = args.byName.get(name);
  if (node === undefined) return fallback;
  const text = constantText(node);
  const word = words.find((w) => w === text);
  if (word !== undefined) return word;
  const listed = words.map((w) => `'${w}'`).join(', ');
  throw ctx.mismatch(`\`${name}\` is one of ${listed}`, locationOf(node, args));
}
