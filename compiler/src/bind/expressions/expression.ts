import type {
  A_Const,
  A_Expr,
  A_Indices,
  A_Indirection,
  BoolExpr,
  BooleanTest,
  CaseExpr,
  CaseWhen,
  ColumnRef,
  GroupingFunc,
  MinMaxExpr,
  Node,
  NullTest,
  SQLValueFunction,
  TypeCast,
  TypeName as TypeNode,
} from '@pgsql/types';
import { resolveFunction } from '../../functions/resolve.js';
import { callNode, castTo, inType } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import { callsVolatile } from '../../plan/properties.js';
import { MOST_GROUPED } from '../../plan/select-nodes.js';
import { childrenOf } from '../../plan/walk.js';
import { type ArrayType, arrayOf, elementOf, isArray } from '../../types/types.js';
import { constructOf, firstLocation, type Location, required, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { computedValue } from '../manifest/computed.js';
import {
  type BindEnvironment,
  findColumn,
  insideCall,
  resolveColumn,
  type ScopeColumn,
  type ScopeItem,
} from '../scope.js';
import { bindOperatorExpr } from './a-expr.js';
import { bindCall } from './call.js';
import {
  bindBitNumber,
  bindCast,
  bindCollate,
  configurationIn,
  convert,
  isBitCast,
  typeOfNode,
} from './cast.js';
import {
  arrayTypeOf,
  asValue,
  type BoundExpression,
  coerce,
  commonType,
  elementTypeOf,
  infix,
  requireComparable,
  typeOfBound,
} from './operands.js';
import { bindRowNullTest, bindRowText, isRowName } from './row.js';
import { translateStandardJson } from './standard-json.js';
import { bindSubLink } from './subquery.js';

/** Binds an expression. Literals and parameters whose type depends on the context remain untyped. */
export function bindExpression(node: Node, env: BindEnvironment): BoundExpression {
  if ('ParamRef' in node) env.ctx.countParameter(node.ParamRef.location);
  else env.ctx.countValues();
  return env.ctx.nested(() => bindNode(node, env));
}

/** Binds an expression; untyped values become text. */
export function bindValue(node: Node, env: BindEnvironment): Expr {
  return asValue(bindExpression(node, env), env.ctx);
}

export function bindPredicateNode(node: Node, env: BindEnvironment): Expr {
  return coerce(bindExpression(node, env), 'bool', env.ctx);
}

function bindNode(node: Node, env: BindEnvironment): BoundExpression {
  const { ctx } = env;
  if ('ColumnRef' in node) return bindColumn(node.ColumnRef, env);
  if ('A_Const' in node) return bindConstant(node.A_Const, env);
  if ('ParamRef' in node) return bindParameter(node.ParamRef.number ?? 0, node.ParamRef.location, env);
  if ('A_Expr' in node) return bindOperatorExpr(node.A_Expr, env);
  if ('BoolExpr' in node) return bindLogic(node.BoolExpr, env);
  if ('FuncCall' in node) return bindCall(node.FuncCall, env);
  if ('TypeCast' in node) return bindTypeCast(node.TypeCast, env);
  if ('NullTest' in node) return bindNullTest(node.NullTest, env);
  if ('BooleanTest' in node) return bindTruthTest(node.BooleanTest, env);
  if ('CaseExpr' in node) return bindCase(node.CaseExpr, env);
  if ('CoalesceExpr' in node)
    return bindConditional('coalesce', node.CoalesceExpr.args, node.CoalesceExpr.location, env);
  if ('MinMaxExpr' in node) return bindMinMax(node.MinMaxExpr, env);
  if ('SubLink' in node) return bindSubLink(node.SubLink, env);
  if ('A_ArrayExpr' in node)
    return bindArray(node.A_ArrayExpr.elements ?? [], node.A_ArrayExpr.location, env);
  if ('A_Indirection' in node) return bindIndirection(node.A_Indirection, env);
  if ('SQLValueFunction' in node) return bindValueFunction(node.SQLValueFunction, env);
  if ('CollateClause' in node) return bindCollate(node.CollateClause, env);
  const row = 'RowExpr' in node ? bindRowText(node, env) : null;
  if (row !== null) return ctx.wholeRows.note(row, firstLocation(node));
  if ('GroupingFunc' in node) return bindGrouping(node.GroupingFunc, env);
  const older = translateStandardJson(node, ctx);
  if (older !== null) return bindExpression(older, env);
  throw ctx.unsupported(constructOf(node), firstLocation(node));
}

/**
 * Binds `grouping(a, b)`, allowed wherever aggregates are. The arguments are checked once the GROUP BY keys are known.
 */
function bindGrouping({ args = [], location }: GroupingFunc, env: BindEnvironment): Expr {
  const { ctx } = env;
  if (!env.aggregates) {
    const detail = `GROUPING is not allowed in ${env.clause}`;
    throw ctx.grouping(detail, location);
  }
  if (args.length > MOST_GROUPED) {
    const detail = `GROUPING takes at most ${MOST_GROUPED} keys`;
    throw ctx.grouping(detail, location);
  }
  const inner = insideCall(env, 'the arguments of GROUPING', false);
  const keys = Object.freeze(args.map((a) => bindValue(a, inner)));
  return ctx.at(Object.freeze({ kind: 'grouping', args: keys, type: 'int4' }), location);
}

function bindColumn(node: ColumnRef, env: BindEnvironment): Expr {
  const { ctx, scope } = env;
  const fields = node.fields ?? [];
  if (fields.some((f) => 'A_Star' in f)) {
    throw ctx.unsupported('`*` as a value', node.location, 'name the columns');
  }
  const parts = fields.map(stringOf);
  if (env.nameOf !== undefined) return env.nameOf(parts, node.location);
  const found = findColumn(scope, parts, ctx, node.location);
  const row = found === null ? bindRowText({ ColumnRef: node }, env) : null;
  if (row !== null) return ctx.wholeRows.note(row, node.location);
  const { ref, item, column, level } = found ?? resolveColumn(scope, parts, ctx, node.location);
  if (level > 0 && column.source !== undefined) {
    const construct = `\`${parts.join('.')}\` in a subquery`;
    throw ctx.unsupported(construct, node.location, 'name it in the query that reads the entity');
  }
  return columnValue({ ref, item, column }, ctx, node.location);
}

/** Returns the value of a resolved column, expanding computed columns and those merged by FULL JOIN. */
export function columnValue(
  { ref, item, column }: { readonly ref: Expr; readonly item: ScopeItem; readonly column: ScopeColumn },
  ctx: BindContext,
  at: Location,
): Expr {
  const { computed, merged } = column;
  if (merged !== undefined) {
    const [{ type }] = merged;
    return ctx.at(Object.freeze({ kind: 'conditional', form: 'coalesce', args: merged, type }), at);
  }
  return computed === undefined ? ref : ctx.at(computedValue(computed, item, ctx, bindValue), at);
}

function bindConstant(node: A_Const, env: BindEnvironment): BoundExpression {
  const { ctx } = env;
  const at = node.location;
  if (node.isnull === true) return { kind: 'untyped', value: null, location: at };
  if (node.sval !== undefined)
    return { kind: 'untyped', value: { literal: ctx.written(node.sval.sval ?? '', node) }, location: at };
  if (node.boolval !== undefined) {
    return ctx.at(Object.freeze({ kind: 'boolean', value: node.boolval.boolval === true, type: 'bool' }), at);
  }
  if (node.ival !== undefined)
    return ctx.at(ctx.literal(ctx.written(String(node.ival.ival ?? 0), node), 'int4'), at);
  if (node.fval !== undefined) {
    const text = plainNumber(node.fval.fval ?? '0');
    const literal = ctx.written(text, node);
    const type = !isInt8(text) ? 'numeric' : literal.holds(isLeastInt4) ? 'int4' : 'int8';
    return ctx.at(ctx.literal(literal, type), at);
  }
  // The grammar reports `B'101'` as `b101`, which Postgres accepts as the text of a bit string.
  if (node.bsval !== undefined)
    return ctx.at(ctx.literal(ctx.written(node.bsval.bsval ?? '', node), 'varbit'), at);
  throw ctx.unsupported('this constant', at);
}

/** Returns a number as every Postgres reads it: without `_`, and in decimal if it was written as `0x…`, `0o…`, `0b…`. */
function plainNumber(text: string): string {
  const plain = text.replaceAll('_', '');
  // Longer ones are left to the database: converting them would take more than linear time.
  const [, sign, digits] = /^(-?)(0[xob][\da-f]{1,256})$/i.exec(plain) ?? [];
  return digits === undefined ? plain : `${sign}${BigInt(digits)}`;
}

/** True for the least int4. The grammar does not report it as an integer, because its digits alone exceed int4. */
function isLeastInt4(text: string): boolean {
  return /^-0*2147483648$/.test(text);
}

function isInt8(text: string): boolean {
  if (!/^-?0*\d{1,19}$/.test(text)) return false; // longer numbers exceed int8
  const value = BigInt(text);
  return value >= -(2n ** 63n) && value < 2n ** 63n;
}

function bindParameter(number: number, location: number | undefined, env: BindEnvironment): BoundExpression {
  const known = env.ctx.clients.typeOf(number, location);
  if (known !== null) return env.ctx.at(env.ctx.clients.parameter(number, known, location), location);
  return { kind: 'untyped', value: { parameter: number }, location };
}

function bindLogic(node: BoolExpr, env: BindEnvironment): Expr {
  const { ctx } = env;
  const args = Object.freeze((node.args ?? []).map((a) => bindPredicateNode(a, env)));
  const first = args[0];
  if (node.boolop === 'NOT_EXPR' && first !== undefined) {
    return ctx.at(Object.freeze({ kind: 'not', arg: first, type: 'bool' }), node.location);
  }
  const kind = node.boolop === 'OR_EXPR' ? 'or' : 'and';
  return ctx.at(Object.freeze({ kind, args, type: 'bool' }), node.location);
}

function bindNullTest(node: NullTest, env: BindEnvironment): Expr {
  const row = bindRowNullTest(node, env);
  if (row !== null) return row;
  const arg = bindValue(required(node.arg), env);
  const negated = node.nulltesttype === 'IS_NOT_NULL';
  return env.ctx.at(Object.freeze({ kind: 'null_test', arg, negated, type: 'bool' }), node.location);
}

const TRUTH = {
  IS_TRUE: ['true', false],
  IS_NOT_TRUE: ['true', true],
  IS_FALSE: ['false', false],
  IS_NOT_FALSE: ['false', true],
  IS_UNKNOWN: ['unknown', false],
  IS_NOT_UNKNOWN: ['unknown', true],
} as const;

function bindTruthTest(node: BooleanTest, env: BindEnvironment): Expr {
  const arg = bindPredicateNode(required(node.arg), env);
  const [test, negated] = TRUTH[node.booltesttype ?? 'IS_TRUE'];
  return env.ctx.at(Object.freeze({ kind: 'truth_test', arg, test, negated, type: 'bool' }), node.location);
}

function bindTypeCast(node: TypeCast, env: BindEnvironment): BoundExpression {
  if (node.typeName === undefined) throw env.ctx.unsupported('this cast', node.location);
  const { arg, typeName } = node;
  const row = arg === undefined ? null : rowAsText(arg, typeName, env);
  if (row !== null) return row;
  if (arg !== undefined && 'A_ArrayExpr' in arg && (typeName.typmods ?? []).length === 0) {
    const type = typeOfNode(typeName, env);
    if (isArray(type)) return bindTypedArray(arg.A_ArrayExpr.elements ?? [], type, node.location, env);
  }
  const bits = isBitCast(arg) ? bindBitNumber(arg, typeOfNode(typeName, env), node.location, env) : null;
  if (bits !== null) return bits;
  const bound = castOfForeign(arg, typeName, env) ?? bindExpression(required(arg), env);
  return configurationIn(bound, typeName) ?? bindCast(bound, typeName, node.location, env);
}

/** Binds `c::text` if `c` is a whole row; null for anything else. */
function rowAsText(arg: Node, typeName: TypeNode, env: BindEnvironment): Expr | null {
  if (!('RowExpr' in arg || isRowName(arg, env)) || (typeName.typmods ?? []).length > 0) return null;
  return typeOfNode(typeName, env) === 'text' ? bindRowText(arg, env) : null;
}

/** Binds `$n::type` if the declared type of `$n` is only allowed in a cast; null for anything else. */
function castOfForeign(arg: Node | undefined, typeName: TypeNode, env: BindEnvironment): Expr | null {
  if (arg === undefined || !('ParamRef' in arg)) return null;
  const { number = 0, location } = arg.ParamRef;
  const cast = env.ctx.clients.castOfForeign(number, typeOfNode(typeName, env), location);
  return cast === null ? null : env.ctx.at(cast, location);
}

function bindCase(node: CaseExpr, around: BindEnvironment): Expr {
  const env = { ...around, rows: false };
  const { ctx } = env;
  const whens = (node.args ?? []).map((a) => ('CaseWhen' in a ? a.CaseWhen : {}));
  ctx.requireRoom(whens.length * (node.arg === undefined ? 2 : 3));
  const conditionOf = ({ expr, location = -1 }: CaseWhen): Expr => {
    const condition = required(expr);
    if (node.arg === undefined) return bindPredicateNode(condition, env);
    const name = [{ String: { sval: '=' } }];
    const equality: A_Expr = { kind: 'AEXPR_OP', name, lexpr: node.arg, rexpr: condition, location };
    const when = coerce(bindOperatorExpr(equality, env), 'bool', ctx);
    // Every WHEN evaluates the operand again, so its value must not change.
    if (whens.length > 1 && childrenOf(when).slice(0, 1).some(callsVolatile))
      throw ctx.unsupported(
        'CASE with random() as its operand',
        location,
        'compute the operand in a derived table',
      );
    return when;
  };
  const bound = whens.map((w) => ({
    when: conditionOf(w),
    result: bindExpression(required(w.result), env),
  }));
  const last: BoundExpression =
    node.defresult === undefined
      ? { kind: 'untyped', value: null, location: node.location }
      : bindExpression(node.defresult, env);
  const type = commonType([last, ...bound.map((b) => b.result)], ctx, node.location);
  const arms = bound.map(({ when, result }) => Object.freeze({ when, result: coerce(result, type, ctx) }));
  return ctx.at(
    Object.freeze({ kind: 'case', arms: Object.freeze(arms), otherwise: coerce(last, type, ctx), type }),
    node.location,
  );
}

function bindConditional(
  form: 'coalesce' | 'greatest' | 'least',
  nodes: readonly Node[] | undefined,
  location: number | undefined,
  env: BindEnvironment,
): Expr {
  const inner = { ...env, rows: false };
  const bounds = (nodes ?? []).map((n) => bindExpression(n, inner));
  const type = commonType(bounds, env.ctx, location);
  if (form !== 'coalesce') requireComparable(type, location, env.ctx);
  const args = Object.freeze(bounds.map((b) => coerce(b, type, env.ctx)));
  return env.ctx.at(Object.freeze({ kind: 'conditional', form, args, type }), location);
}

function bindMinMax(node: MinMaxExpr, env: BindEnvironment): Expr {
  return bindConditional(node.op === 'IS_LEAST' ? 'least' : 'greatest', node.args, node.location, env);
}

function bindArray(nodes: readonly Node[], location: number | undefined, env: BindEnvironment): Expr {
  const { ctx } = env;
  const bounds = nodes.map((n) => bindExpression(n, env));
  if (bounds.length === 0) {
    throw ctx.mismatch(
      'the type of an empty array cannot be determined',
      location,
      'cast it, as in array[]::text[]',
    );
  }
  const element = commonType(bounds, ctx, location);
  const type = arrayTypeOf(element, ctx, location);
  const items = Object.freeze(bounds.map((b) => coerce(b, element, ctx)));
  return ctx.at(Object.freeze({ kind: 'array', items, type }), location);
}

/** Binds `array[…]::type[]`. As in Postgres, each item is cast, so untyped items get the array's element type. */
function bindTypedArray(nodes: readonly Node[], type: ArrayType, at: Location, env: BindEnvironment): Expr {
  const element = elementOf(type);
  const items = Object.freeze(
    nodes.map((n) => {
      const item = bindExpression(n, env);
      // In Postgres the result has another dimension; a text[] as text would be an element.
      if (isArray(typeOfBound(item) ?? element))
        throw env.ctx.unsupported('an array of arrays', firstLocation(n) ?? at);
      return convert(item, element, firstLocation(n), env);
    }),
  );
  return env.ctx.at(Object.freeze({ kind: 'array', items, type }), at);
}

/** Binds `a[i]`, `a[i][j]` and `a[i:j]`; `j['key'][0]` for jsonb; and `(c).name` for a FROM item. */
function bindIndirection(node: A_Indirection, env: BindEnvironment): Expr {
  const { ctx } = env;
  const { arg, indirection = [] } = node;
  const [first, ...more] = indirection;
  if (first !== undefined && 'String' in first && isRowName(arg, env)) {
    const column = { ...arg.ColumnRef, fields: [...(arg.ColumnRef.fields ?? []), first] };
    if (more.length === 0) return bindColumn(column, env);
    return bindIndirection({ ...node, arg: { ColumnRef: column }, indirection: more }, env);
  }
  const places = indirection.map((i) => ('A_Indices' in i ? i.A_Indices : null));
  const subscripts = places.filter((p) => p !== null);
  if (subscripts.length < places.length) throw ctx.unsupported('a field of a value', firstLocation(node));
  const value = bindValue(required(arg), env);
  const at = firstLocation(node);
  if (value.type === 'jsonb') return bindJsonSubscripts(value, subscripts, at, env);
  const type = elementTypeOf(value.type, ctx, ctx.locationOf(value));
  const place = (of: Node | undefined): Expr => coerce(bindExpression(required(of), env), 'int4', ctx);
  const [slice] = subscripts;
  if (slice === undefined || subscripts.every((s) => s.is_slice !== true)) {
    const indices = Object.freeze(subscripts.map((s) => place(s.uidx)));
    return ctx.at(Object.freeze({ kind: 'subscript', arg: value, indices, type }), at);
  }
  if (subscripts.length > 1) throw ctx.unsupported('a slice of several dimensions', at);
  const { lidx, uidx } = slice;
  const lower = lidx === undefined ? null : place(lidx);
  const upper = uidx === undefined ? null : place(uidx);
  return ctx.at(Object.freeze({ kind: 'slice', arg: value, lower, upper, type: arrayOf(type) }), at);
}

/** Binds `j['a'][0]` as `j #> '{a,0}'`. */
function bindJsonSubscripts(
  value: Expr,
  subscripts: readonly A_Indices[],
  at: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  if (subscripts.some((s) => s.is_slice === true))
    throw ctx.unsupported('a slice of jsonb', at, 'use jsonb_path_query_array');
  const items = subscripts.map(({ uidx }) => {
    const bound = bindExpression(required(uidx), env);
    if (bound.kind === 'untyped' || bound.type === 'text') return coerce(bound, 'text', ctx);
    if (bound.type === 'int2' || bound.type === 'int4') return castTo(bound, 'text');
    throw ctx.mismatch(
      `a subscript of jsonb is text or a whole number, not ${bound.type}`,
      ctx.locationOf(bound),
    );
  });
  const path: Expr = Object.freeze({ kind: 'array', items: Object.freeze(items), type: 'text[]' });
  return infix('#>', value, path, at, ctx);
}

const VALUE_FUNCTIONS: ReadonlyMap<string, 'date' | 'timestamp' | 'timestamptz' | 'time'> = new Map([
  ['SVFOP_CURRENT_DATE', 'date'],
  ['SVFOP_CURRENT_TIMESTAMP', 'timestamptz'],
  ['SVFOP_LOCALTIMESTAMP', 'timestamp'],
  ['SVFOP_LOCALTIME', 'time'],
  ['SVFOP_CURRENT_TIMESTAMP_N', 'timestamptz'],
  ['SVFOP_LOCALTIMESTAMP_N', 'timestamp'],
  ['SVFOP_LOCALTIME_N', 'time'],
]);

/** Binds `CURRENT_DATE` etc. as casts of `now()`. `CURRENT_USER`, `CURRENT_SCHEMA` etc. are not supported. */
function bindValueFunction(node: SQLValueFunction, env: BindEnvironment): Expr {
  const { ctx } = env;
  const type = VALUE_FUNCTIONS.get(node.op ?? '');
  const now = resolveFunction('now', []);
  if (type === undefined || now === 'none' || now === 'ambiguous') {
    const construct = (node.op ?? '').replace('SVFOP_', '').replace(/_N$/, ' with a precision');
    throw ctx.unsupported(construct, node.location);
  }
  const call = callNode(now.definition, [], 'timestamptz');
  if (node.op?.endsWith('_N') !== true) return ctx.at(inType(call, type), node.location);
  const modifiers = Object.freeze([node.typmod ?? 0]);
  return ctx.at(Object.freeze({ kind: 'cast', arg: call, type, modifiers }), node.location);
}
