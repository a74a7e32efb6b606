import type { FuncCall, Node } from '@pgsql/types';
import type { Expr } from '../../plan/plan.js';
import { nearest } from '../../text/text.js';
import { constantText, integerOf, type Location } from '../ast.js';
import type { BindContext } from '../context.js';

/** The arguments of a table function. All are named, and no name is repeated. */
export interface NamedArguments {
  readonly function: string;
  readonly takes: string;
  readonly location: Location;
  readonly byName: ReadonlyMap<string, Node>;
}

/**
 * Parses the arguments `name => value, ...`.
 *
 * @param more further allowed arguments, not listed in the hint for an unnamed or missing argument
 * @throws QueryError E0511 for unnamed, unknown or repeated arguments
 */
export function namedArguments(
  name: string,
  call: FuncCall,
  shown: readonly string[],
  ctx: BindContext,
  more: readonly string[] = [],
): NamedArguments {
  const byName = new Map<string, Node>();
  const allowed = [...shown, ...more];
  const takes = shown.map((a) => `${a} => …`).join(', ');
  for (const arg of call.args ?? []) {
    if (!('NamedArgExpr' in arg)) {
      throw ctx.mismatch(`\`${name}\` takes its arguments by name`, call.location, takes);
    }
    const { name: key = '', arg: value, location } = arg.NamedArgExpr;
    if (!allowed.includes(key)) {
      const near = nearest(key, allowed);
      const hint = near === null ? `it takes ${allowed.join(', ')}` : `perhaps you meant \`${near}\``;
      throw ctx.mismatch(`\`${name}\` has no argument \`${key}\``, location, hint);
    }
    if (byName.has(key)) {
      throw ctx.mismatch(`\`${key}\` is given twice`, location);
    }
    if (value !== undefined) byName.set(key, value);
  }
  return { function: name, takes, location: call.location, byName };
}

export function requiredArgument(args: NamedArguments, name: string, ctx: BindContext): Node {
  const node = args.byName.get(name);
  if (node === undefined) {
    throw ctx.mismatch(`\`${args.function}\` needs \`${name} => …\``, args.location, args.takes);
  }
  return node;
}

/** Reads a quoted name. It must be a constant. */
export function nameArgument(args: NamedArguments, name: string, ctx: BindContext): string {
  const node = requiredArgument(args, name, ctx);
  const text = constantText(node);
  if (text === null) {
    throw ctx.mismatch(`\`${name}\` is a quoted name`, locationOf(node, args), `${name} => 'name'`);
  }
  return text;
}

/** Reads an integer constant from `least` to `most`; returns `fallback` if the argument is absent. */
export function countArgument(
  args: NamedArguments,
  name: string,
  least: number,
  most: number,
  fallback: number,
  ctx: BindContext,
): number {
  const node = args.byName.get(name);
  return node === undefined ? fallback : integerBetween(least, most, node, name, args, ctx);
}

export function integerBetween(
  least: number,
  most: number,
  node: Node,
  name: string,
  args: NamedArguments,
  ctx: BindContext,
): number {
  const value = integerOf(node);
  if (value !== null && value >= least && value <= most) return value;
  throw ctx.mismatch(`\`${name}\` is a whole number from ${least} to ${most}`, locationOf(node, args));
}

/** Reads a boolean constant. Default: false. */
export function flagArgument(args: NamedArguments, name: string, ctx: BindContext): boolean {
  const node = args.byName.get(name);
  if (node === undefined) return false;
  if ('A_Const' in node && node.A_Const.boolval !== undefined) return node.A_Const.boolval.boolval === true;
  throw ctx.mismatch(`\`${name}\` is true or false`, locationOf(node, args));
}

export function locationOf(node: Node, args: NamedArguments): Location {
  return 'A_Const' in node ? node.A_Const.location : args.location;
}

/** @throws QueryError E0511 unless `value` consists only of literals and parameters */
export function refuseComputed(value: Expr, name: string, at: Location, ctx: BindContext): void {
  if (isConstant(value)) return;
  const detail = `\`${name}\` must be a literal or a parameter`;
  throw ctx.mismatch(detail, at);
}

function isConstant(expr: Expr): boolean {
  switch (expr.kind) {
    case 'parameter':
    case 'null':
    case 'boolean':
      return true;
    case 'array':
      return expr.items.every(isConstant);
    case 'cast':
      return isConstant(expr.arg);
    default:
      return false;
  }
}
