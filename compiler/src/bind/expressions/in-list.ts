import type { A_Expr, Node } from '@pgsql/types';
import type { OperatorDefinition } from '../../functions/definition.js';
import type { Expr } from '../../plan/plan.js';
import type { PlainList } from '../../text/lexical.js';
import { arrayOf, isArray, type TypeName } from '../../types/types.js';
import { constantText, type Location, nameParts, placeOf, required } from '../ast.js';
import type { BindEnvironment } from '../environment.js';
import { type BoundExpression, coerce, commonType, listOf, typeOfBound } from './coerce.js';
import { bindExpression, bindValue } from './expression.js';
import { equalityOf, operatorFor } from './infix.js';
import { bindRowIn } from './row.js';

/** Binds IN lists. A list of constants becomes one array parameter, so that its length is not part of the plan. */
export function bindIn(negated: boolean, node: A_Expr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const { location } = node;
  const items = node.rexpr !== undefined && 'List' in node.rexpr ? (node.rexpr.List.items ?? []) : [];
  const rows = bindRowIn(negated, node, env);
  if (rows !== null) return rows;
  const [only] = items;
  const attribute = items.length === 1 && only !== undefined ? attributeArgument(only, env) : null;
  if (attribute !== null && !negated)
    return bindAttributeMatch(required(node.lexpr), attribute, location, env);
  const arg = bindExpression(required(node.lexpr), env);
  const long = ctx.listAt(placeOf(only));
  if (long !== null) return bindLongIn(arg, long, negated, location, env);
  const bounds = items.map((i) => bindExpression(i, env));
  // As in Postgres, the left side influences the list's type: `char(n) IN ($1::text, …)` compares blank-padded.
  const all = typeOfBound(arg) === 'bpchar' && bounds.length > 1 ? [arg, ...bounds] : bounds;
  const listType = bounds.every((b) => b.kind === 'untyped') ? null : commonType(all, ctx, location);
  const { definition, left, elementType } = comparedWith(arg, listType, negated, location, env);
  const values = bounds.map((b) => coerce(b, elementType, ctx, location));
  const literals = values.map((v) => (v.kind === 'null' ? null : ctx.literalIn(v)));
  const plain = values.every((v, i) => v.kind === 'null' || literals[i] !== null);
  if (plain && !isArray(elementType)) {
    const array = ctx.literal(literals, arrayOf(elementType));
    return ctx.at(inArray(left, definition, array, negated), location);
  }
  const equality = operatorFor('=', left.type, elementType, location, ctx).definition;
  return ctx.at(
    Object.freeze({
      kind: 'membership',
      equality,
      arg: left,
      items: Object.freeze(values),
      negated,
      type: 'bool',
    }),
    location,
  );
}

/** `arg IN (…)` with a long list, of which the parser saw only the first item. */
function bindLongIn(
  arg: BoundExpression,
  { type, items }: PlainList,
  negated: boolean,
  location: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const { definition, left, elementType } = comparedWith(arg, type, negated, location, env);
  if (isArray(elementType)) throw ctx.unsupported('a long IN list of arrays', location);
  const array = ctx.literal(listOf(items, type, elementType, location, ctx), arrayOf(elementType));
  return ctx.at(inArray(left, definition, array, negated), location);
}

function comparedWith(
  arg: BoundExpression,
  listType: TypeName | null,
  negated: boolean,
  location: Location,
  { ctx }: BindEnvironment,
) {
  const argType = typeOfBound(arg) ?? listType ?? 'text';
  const found = operatorFor(negated ? '<>' : '=', argType, listType ?? argType, location, ctx);
  const [left = argType, elementType = argType] = found.argumentTypes;
  return { definition: found.definition, left: coerce(arg, left, ctx, location), elementType };
}

function inArray(arg: Expr, definition: OperatorDefinition, array: Expr, negated: boolean): Expr {
  const quantifier = negated ? 'all' : 'any';
  return Object.freeze({ kind: 'quantified', definition, quantifier, arg, array, type: 'bool' });
}

/** The name in `attribute('name')`; null if `node` is something else or not in a policy. */
export function attributeArgument(node: Node, env: BindEnvironment): string | null {
  if (!env.policy || !('FuncCall' in node)) return null;
  const call = node.FuncCall;
  if (nameParts(call.funcname).join('.') !== 'attribute') return null;
  const arg = call.args?.[0];
  const name = arg === undefined || call.args?.length !== 1 ? null : constantText(arg);
  if (name === null) {
    throw env.ctx.mismatch('attribute() takes one quoted name', call.location, "attribute('region')");
  }
  return name;
}

/** `value = attribute('name')`: true if the value is among those of the attribute. */
export function bindAttributeMatch(
  value: Node,
  attribute: string,
  location: Location,
  env: BindEnvironment,
): Expr {
  const arg = bindValue(value, env);
  const equality = equalityOf(arg.type, location, env.ctx);
  return env.ctx.at(
    Object.freeze({ kind: 'attribute_match', arg, equality, attribute, subject: null, type: 'bool' }),
    location,
  );
}
