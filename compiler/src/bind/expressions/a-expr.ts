import type { A_Expr, Node } from '@pgsql/types';
import { commonType as commonTypeOf } from '../../functions/conversions.js';
import type { OperatorDefinition } from '../../functions/define.js';
import { allOf, anyOf, inType, TRUE } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import { someExpr } from '../../plan/walk.js';
import type { PlainList } from '../../text/lexical.js';
import { arrayOf, isArray, type TypeName } from '../../types/types.js';
import { constantText, firstLocation, type Location, nameParts, required } from '../ast.js';
import type { BindContext } from '../context.js';
import type { BindEnvironment } from '../scope.js';
import { chooseOverload } from './call.js';
import { bindExpression, bindValue } from './expression.js';
import {
  type BoundExpression,
  coerce,
  elementTypeOf,
  equalityOf,
  infix,
  listOf,
  operatorFor,
  prefix,
  quotient,
  remainder,
  typeOfBound,
} from './operands.js';
import { bindRowDistinct, bindRowIn, bindRowOperator } from './row.js';

export function bindOperatorExpr(node: A_Expr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const name = operatorName(node, ctx);
  switch (node.kind) {
    case 'AEXPR_OP':
    case 'AEXPR_LIKE':
    case 'AEXPR_ILIKE':
    case 'AEXPR_SIMILAR':
      return bindOperator(name, node, env);
    case 'AEXPR_IN':
      return bindIn(name === '<>', node, env);
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN':
    case 'AEXPR_BETWEEN_SYM':
    case 'AEXPR_NOT_BETWEEN_SYM':
      return bindBetween(node, env);
    case 'AEXPR_DISTINCT':
    case 'AEXPR_NOT_DISTINCT':
      return bindDistinct(node, env);
    case 'AEXPR_NULLIF':
      return bindNullIf(node, env);
    case 'AEXPR_OP_ANY':
    case 'AEXPR_OP_ALL':
      return bindQuantified(name, node, env);
    case undefined:
      throw ctx.unsupported('this operator', node.location);
    default:
      throw ctx.unsupported(String(node.kind satisfies never), undefined);
  }
}

function operatorName(node: A_Expr, ctx: BindContext): string {
  const parts = nameParts(node.name);
  const name = parts[0];
  if (parts.length !== 1 || name === undefined) {
    throw ctx.error('unknownOperator', { signature: parts.join('.') }, node.location);
  }
  return name;
}

function bindOperator(name: string, node: A_Expr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const rows = bindRowOperator(name, node, env);
  if (rows !== null) return rows;
  const operand = required(node.rexpr);
  const attribute = name === '=' ? attributeArgument(operand, env) : null;
  if (attribute !== null) return bindAttributeMatch(required(node.lexpr), attribute, node.location, env);
  if (node.lexpr === undefined) return prefix(name, bindExpression(operand, env), node.location, ctx);
  const left = bindExpression(node.lexpr, env);
  const right = bindExpression(operand, env);
  const path = bindPathOperator(name, left, right, node.location, ctx);
  if (path !== null) return path;
  if (env.guardedDivision === true && name === '/') return quotient(left, right, node.location, ctx);
  if (env.guardedDivision === true && name === '%') return remainder(left, right, node.location, ctx);
  return infix(name, left, right, node.location, ctx);
}

function bindBetween(node: A_Expr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const bounds = node.rexpr !== undefined && 'List' in node.rexpr ? (node.rexpr.List.items ?? []) : [];
  const at = node.location;
  const within = (low: Node | undefined, high: Node | undefined): Expr => {
    const compared = (name: string, bound: Node | undefined): Expr =>
      infix(name, bindExpression(required(node.lexpr), env), bindExpression(required(bound), env), at, ctx);
    return allOf([compared('>=', low), compared('<=', high)]);
  };
  const straight = within(bounds[0], bounds[1]);
  const symmetric = node.kind === 'AEXPR_BETWEEN_SYM' || node.kind === 'AEXPR_NOT_BETWEEN_SYM';
  const inside = symmetric ? anyOf([straight, within(bounds[1], bounds[0])]) : straight;
  const negated = node.kind === 'AEXPR_NOT_BETWEEN' || node.kind === 'AEXPR_NOT_BETWEEN_SYM';
  return ctx.at(negated ? Object.freeze({ kind: 'not', arg: inside, type: 'bool' }) : inside, at);
}

function equalSides(node: A_Expr, env: BindEnvironment): { left: Expr; right: Expr } {
  const { ctx } = env;
  const left = bindExpression(required(node.lexpr), env);
  const right = bindExpression(required(node.rexpr), env);
  const found = operatorFor('=', typeOfBound(left), typeOfBound(right), node.location, ctx);
  const [l, r] = found.argumentTypes;
  return {
    left: coerce(left, l ?? 'text', ctx),
    right: coerce(right, r ?? 'text', ctx),
  };
}

function bindDistinct(node: A_Expr, env: BindEnvironment): Expr {
  const pair = (lexpr: Node, rexpr: Node): Expr => bindDistinct({ ...node, lexpr, rexpr }, env);
  const rows = bindRowDistinct(node, pair, env);
  if (rows !== null) return rows;
  const negated = node.kind === 'AEXPR_NOT_DISTINCT';
  return env.ctx.at(
    Object.freeze({ kind: 'distinct_test', ...equalSides(node, env), negated, type: 'bool' }),
    node.location,
  );
}

function bindNullIf(node: A_Expr, env: BindEnvironment): Expr {
  const { left, right } = equalSides(node, env);
  const args = Object.freeze([left, right]);
  return env.ctx.at(
    Object.freeze({ kind: 'conditional', form: 'nullif', args, type: left.type }),
    node.location,
  );
}

function bindQuantified(name: string, node: A_Expr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const arg = bindExpression(required(node.lexpr), env);
  const list = bindExpression(required(node.rexpr), env);
  const argType = typeOfBound(arg) ?? 'text';
  const array =
    list.kind === 'untyped' && !isArray(argType)
      ? coerce(list, arrayOf(argType), ctx)
      : bindValueOf(list, ctx);
  const element = elementTypeOf(array.type, ctx, node.location);
  const found = operatorFor(name, typeOfBound(arg), element, node.location, ctx);
  if (found.result !== 'bool') {
    throw ctx.mismatch(`operator ${name} does not yield bool, as ANY and ALL need it`, node.location);
  }
  const [l, r] = found.argumentTypes;
  return ctx.at(
    Object.freeze({
      kind: 'quantified',
      definition: found.definition,
      quantifier: node.kind === 'AEXPR_OP_ALL' ? 'all' : 'any',
      arg: coerce(arg, l ?? argType, ctx),
      array: castElements(array, r ?? element, node.location, ctx),
      type: 'bool',
    }),
    node.location,
  );
}

function bindValueOf(bound: BoundExpression, ctx: BindContext): Expr {
  return bound.kind === 'untyped' ? coerce(bound, 'text[]', ctx) : bound;
}

function castElements(array: Expr, element: TypeName, location: Location, ctx: BindContext): Expr {
  if (isArray(element)) throw ctx.unsupported('an array of arrays', location);
  const type = arrayOf(element);
  return inType(array, type);
}

const FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ['@?', 'jsonb_path_exists'],
  ['@@', 'jsonb_path_match'],
]);

/** Binds `doc @? path` and `doc @@ path` of jsonb as function calls that suppress errors; null for other operators. */
function bindPathOperator(
  name: string,
  left: BoundExpression,
  right: BoundExpression,
  at: Location,
  ctx: BindContext,
): Expr | null {
  const called = FUNCTIONS.get(name);
  if (called === undefined || left.kind === 'untyped' || typeOfBound(left) !== 'jsonb') return null;
  const path = right.kind === 'untyped' || right.type === 'text' ? coerce(right, 'text', ctx) : null;
  if (path?.kind !== 'parameter')
    throw ctx.unsupported('a path that is not a constant', at, 'write the path as text');
  const given = [left, path, ctx.constant('{}', 'jsonb'), TRUE];
  const { definition, args, type } = chooseOverload(called, given, at, ctx);
  return ctx.at(Object.freeze({ kind: 'call', definition, args, type }), at);
}

/** Binds IN lists. A list of constants becomes one array parameter so that the plan does not depend on its length. */
function bindIn(negated: boolean, node: A_Expr, env: BindEnvironment): Expr {
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
  const long = ctx.listAt(firstLocation(only));
  if (long !== null) return bindLongIn(arg, long, negated, location, env);
  const bounds = items.map((i) => bindExpression(i, env));
  const common = listTypeOf(arg, bounds);
  const groups = new Map<OperatorDefinition, { compared: ComparedTypes; items: BoundExpression[] }>();
  for (const item of bounds) {
    const compared = comparedTypes(arg, common.get(item) ?? typeOfBound(item), negated, location, ctx);
    const group = groups.get(compared.definition);
    if (group === undefined) groups.set(compared.definition, { compared, items: [item] });
    else group.items.push(item);
  }
  const tests = [...groups.values()].map((g) =>
    membershipOf(arg, g.compared, g.items, negated, location, ctx),
  );
  return ctx.at(negated ? allOf(tests) : anyOf(tests), location);
}

/** Binds `arg IN (items)`, all of which one operator compares. */
function membershipOf(
  arg: BoundExpression,
  { definition, leftType, elementType }: ComparedTypes,
  items: readonly BoundExpression[],
  negated: boolean,
  location: Location,
  ctx: BindContext,
): Expr {
  const left = coerce(arg, leftType, ctx, location);
  const values = items.map((b) => coerce(b, elementType, ctx, location));
  const literals = values.map((v) => (v.kind === 'null' ? null : ctx.literalIn(v)));
  const plain = values.every((v, i) => v.kind === 'null' || literals[i] !== null);
  if (plain && !isArray(elementType)) {
    const array = ctx.literal(literals, arrayOf(elementType));
    return ctx.at(inArray(left, definition, array, negated), location);
  }
  return ctx.at(
    Object.freeze({
      kind: 'membership',
      arg: left,
      items: Object.freeze(values),
      negated,
      type: 'bool',
    }),
    location,
  );
}

/** Binds `arg IN (…)` for a long list; the parser was given only its first item. */
function bindLongIn(
  arg: BoundExpression,
  { type, items }: PlainList,
  negated: boolean,
  location: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const listType = commonTypeOf([typeOfBound(arg), type]) ?? type;
  const { definition, leftType, elementType } = comparedTypes(arg, listType, negated, location, ctx);
  if (isArray(elementType)) throw ctx.unsupported('a long IN list of arrays', location);
  const left = coerce(arg, leftType, ctx, location);
  const array = ctx.literal(listOf(items, type, elementType, location, ctx), arrayOf(elementType));
  return ctx.at(inArray(left, definition, array, negated), location);
}

/**
 * Returns the type in which an item of an IN list is compared, for each item that does not have its own. As in Postgres,
 * several values without columns have one type, for which the left side counts as well, so that a float4 is compared
 * with float4, and a char(n) without trailing blanks, unless the types cannot be matched.
 */
function listTypeOf(
  arg: BoundExpression,
  items: readonly BoundExpression[],
): ReadonlyMap<BoundExpression, TypeName> {
  const values = items.filter((b) => b.kind === 'untyped' || !someExpr(b, (e) => e.kind === 'column'));
  const common = values.length > 1 ? commonTypeOf([arg, ...values].map(typeOfBound)) : null;
  return new Map(common === null || isArray(common) ? [] : values.map((v) => [v, common]));
}

interface ComparedTypes {
  readonly definition: OperatorDefinition;
  readonly leftType: TypeName;
  readonly elementType: TypeName;
}

function comparedTypes(
  arg: BoundExpression,
  listType: TypeName | null,
  negated: boolean,
  location: Location,
  ctx: BindContext,
): ComparedTypes {
  const argType = typeOfBound(arg) ?? listType ?? 'text';
  const found = operatorFor(negated ? '<>' : '=', argType, listType ?? argType, location, ctx);
  const [leftType = argType, elementType = argType] = found.argumentTypes;
  return { definition: found.definition, leftType, elementType };
}

function inArray(arg: Expr, definition: OperatorDefinition, array: Expr, negated: boolean): Expr {
  const quantifier = negated ? 'all' : 'any';
  return Object.freeze({ kind: 'quantified', definition, quantifier, arg, array, type: 'bool' });
}

/** Returns the name in `attribute('name')`; null if `node` is something else or is not part of a policy. */
function attributeArgument(node: Node, env: BindEnvironment): string | null {
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

/** Binds `value = attribute('name')`, which is true if the value is one of the attribute's values. */
function bindAttributeMatch(value: Node, attribute: string, location: Location, env: BindEnvironment): Expr {
  const arg = bindValue(value, env);
  const equality = equalityOf(arg.type, location, env.ctx);
  return env.ctx.at(
    Object.freeze({ kind: 'attribute_match', arg, equality, attribute, subject: null, type: 'bool' }),
    location,
  );
}
