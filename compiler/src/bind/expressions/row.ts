import type { A_Expr, Node, NullTest, RangeSubselect } from '@pgsql/types';
import { functionsNamed } from '../../functions/resolve.js';
import { PATH_FUNCTIONS } from '../../functions/special-types.js';
import { allOf, anyOf, callNode, castTo, columnRef, isNotNull, TRUE } from '../../plan/nodes.js';
import type { Expr, RowComparison } from '../../plan/plan.js';
import { mayBeMissing } from '../../plan/properties.js';
import { firstLocation, type Location, nameParts, required, rowItems, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BindEnvironment, lookUp, type ScopeItem } from '../scope.js';
import { expandStar } from '../select/star.js';
import { chooseOverload } from './call.js';
import { bindExpression, bindValue, columnValue } from './expression.js';
import { type BoundExpression, coerce, infix, operatorFor, typeOfBound } from './operands.js';

/**
 * Compares two row constructors as Postgres does: `=` requires all pairs to be equal, `<>` requires at least one pair
 * to differ, and for other operators the first differing pair decides. Null if neither side is a row constructor.
 */
export function bindRowOperator(name: string, node: A_Expr, env: BindEnvironment): Expr | null {
  if (rowItems(node.lexpr) === null && rowItems(node.rexpr) === null) return null;
  return compared(name, node.lexpr, node.rexpr, node.location, env);
}

/** Binds `(a, b) [NOT] IN ((1, 2), (3, 4))`; null if the left side is not a row constructor. */
export function bindRowIn(negated: boolean, node: A_Expr, env: BindEnvironment): Expr | null {
  if (rowItems(node.lexpr) === null) return null;
  const items = node.rexpr !== undefined && 'List' in node.rexpr ? (node.rexpr.List.items ?? []) : [];
  const name = negated ? '<>' : '=';
  const each = items.map((item) => compared(name, node.lexpr, item, node.location, env));
  return env.ctx.at(negated ? allOf(each) : anyOf(each), node.location);
}

/** Binds `ROW(a, b) IS [NOT] DISTINCT FROM ROW(c, d)`; null if neither side is a row constructor. */
export function bindRowDistinct(
  node: A_Expr,
  pair: (left: Node, right: Node) => Expr,
  env: BindEnvironment,
): Expr | null {
  if (rowItems(node.lexpr) === null && rowItems(node.rexpr) === null) return null;
  const each = pairsOf(node.lexpr, node.rexpr, node.location, env).map(([l, r]) => pair(l, r));
  return env.ctx.at(node.kind === 'AEXPR_NOT_DISTINCT' ? allOf(each) : anyOf(each), node.location);
}

/**
 * Binds `(a, b) IS [NOT] NULL`, and `c IS [NOT] NULL` if `c` is a FROM item; both test every field. Null for other
 * operands.
 */
export function bindRowNullTest(node: NullTest, env: BindEnvironment): Expr | null {
  const items = rowItems(node.arg)?.map((item) => bindValue(item, env)) ?? columnsOfRow(node.arg, env);
  if (items === null) return null;
  const negated = node.nulltesttype === 'IS_NOT_NULL';
  const each = items.map((arg): Expr => {
    return negated ? isNotNull(arg) : Object.freeze({ kind: 'null_test', arg, negated, type: 'bool' });
  });
  return env.ctx.at(allOf(each), node.location);
}

const ORDERS: ReadonlyMap<string, RowComparison['operator']> = new Map([
  ['<', '<'],
  ['<=', '<='],
  ['>', '>'],
  ['>=', '>='],
]);

function compared(
  name: string,
  left: Node | undefined,
  right: Node | undefined,
  at: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const order = ORDERS.get(name);
  if (name !== '=' && name !== '<>' && order === undefined) {
    throw ctx.unsupported(`operator ${name} between rows`, at, 'rows are compared by =, <>, <, <=, > and >=');
  }
  const nodes = pairsOf(left, right, at, env);
  // As in Postgres, the whole left side comes first: a parameter's first use determines its type.
  const lefts = nodes.map(([l]) => bindExpression(l, env));
  const pairs = nodes.map(([, r], i) => [lefts[i] ?? TRUE, bindExpression(r, env)] as const);
  if (order !== undefined && pairs.length > 1) return ordered(order, pairs, at, ctx);
  const each = pairs.map(([l, r]) => infix(name, l, r, at, ctx));
  return ctx.at(name === '<>' ? anyOf(each) : allOf(each), at);
}

function ordered(
  operator: RowComparison['operator'],
  compared: readonly (readonly [BoundExpression, BoundExpression])[],
  at: Location,
  ctx: BindContext,
): Expr {
  const pairs = compared.map(([left, right]) => {
    const { definition, argumentTypes } = operatorFor(
      operator,
      typeOfBound(left),
      typeOfBound(right),
      at,
      ctx,
    );
    const [leftType = 'text', rightType = 'text'] = argumentTypes;
    return Object.freeze({
      definition,
      left: coerce(left, leftType, ctx, at),
      right: coerce(right, rightType, ctx, at),
    });
  });
  return ctx.at(
    Object.freeze({ kind: 'row_comparison', operator, pairs: Object.freeze(pairs), type: 'bool' }),
    at,
  );
}

function pairsOf(
  left: Node | undefined,
  right: Node | undefined,
  at: Location,
  { ctx }: BindEnvironment,
): readonly (readonly [Node, Node])[] {
  const [ls, rs] = [rowItems(left), rowItems(right)];
  if (ls === null || rs === null) {
    const other = ls === null ? left : right;
    if (other !== undefined && 'SubLink' in other)
      throw ctx.unsupported('a row compared with a subquery', at, 'use IN or a join');
    throw ctx.mismatch('a row is compared with what is none', at, 'write a row of as many values');
  }
  if (ls.length !== rs.length || ls.length === 0) {
    const detail = `rows of ${ls.length} and ${rs.length} values cannot be compared`;
    throw ctx.mismatch(detail, at, 'write rows of equal length');
  }
  return ls.flatMap((l, i) => {
    const r = rs[i];
    return r === undefined ? [] : [[l, r] as const];
  });
}

/**
 * Rewrites `(a, b) IN (SELECT x, y …)` to `EXISTS (SELECT 1 FROM (SELECT x, y …) WHERE x = a AND y = b)`; null for
 * anything else. Use it for WHERE conjuncts only, where NULL and false have the same effect.
 */
export function existsOfRows(node: Node): Node | null {
  if (!('SubLink' in node) || node.SubLink.subLinkType !== 'ANY_SUBLINK') return null;
  const { testexpr, operName, subselect, location } = node.SubLink;
  const items = rowItems(testexpr);
  const operator = nameParts(operName).join('.');
  if (items === null || items.length < 2 || subselect === undefined) return null;
  if (operator !== '' && operator !== '=') return null;
  const names = items.map((_, i) => `${ALIAS} ${i + 1}`);
  const at = location ?? -1;
  const pairs = items.map(
    (item, i): Node => ({
      A_Expr: {
        kind: 'AEXPR_OP',
        name: [text('=')],
        lexpr: { ColumnRef: { fields: [text(ALIAS), text(names[i] ?? '')], location: at } },
        rexpr: item,
        location: at,
      },
    }),
  );
  const derived = { subquery: subselect, alias: { aliasname: ALIAS, colnames: names.map(text) } };
  GENERATED.add(derived);
  const rows: Node = { RangeSubselect: derived };
  const exists: Node = {
    SelectStmt: {
      targetList: [{ ResTarget: { val: { A_Const: { boolval: { boolval: true } } } } }],
      fromClause: [rows],
      whereClause: { BoolExpr: { boolop: 'AND_EXPR', args: pairs, location: at } },
      limitOption: 'LIMIT_OPTION_DEFAULT',
      op: 'SETOP_NONE',
    },
  };
  return { SubLink: { subLinkType: 'EXISTS_SUBLINK', subselect: exists, location: at } };
}

const GENERATED = new WeakSet<RangeSubselect>();

/** True for a derived table generated by `existsOfRows`. */
export function isRowInSubquery(derived: RangeSubselect): boolean {
  return GENERATED.has(derived);
}

/** Alias of the generated derived table. It contains spaces, so it cannot collide with an unquoted name. */
const ALIAS = 'row of the subquery';

function text(sval: string): Node {
  return { String: { sval } };
}

const TAKES_ROWS: ReadonlySet<string> = new Set(
  ['json', 'jsonb'].flatMap((json) => [
    `to_${json}`,
    `${json}_agg`,
    `${json}_object_agg`,
    `${json}_build_array`,
    `${json}_build_object`,
  ]),
);

/** A Postgres function takes at most 100 arguments, which is 50 pairs of name and value. */
const MOST_COLUMNS = 50;

/** Binds argument `index` of function `name`. Some JSON functions also accept whole rows, and some take a path. */
export function bindArgument(node: Node, name: string, index: number, env: BindEnvironment): BoundExpression {
  if (TAKES_ROWS.has(name))
    return bindRow(node, name.includes('jsonb') ? 'jsonb' : 'json', env) ?? bindExpression(node, env);
  if (PATH_FUNCTIONS.has(name) && index === 1) return bindPath(node, env);
  return bindExpression(node, env);
}

export function bindRowToJson(args: readonly Node[], at: number | undefined, env: BindEnvironment): Expr {
  const [only, ...more] = args;
  const row = only === undefined || more.length > 0 ? null : bindRow(only, 'json', env);
  if (row !== null) return row;
  const hint = 'row_to_json(t) of a FROM item, or to_json of a value';
  throw env.ctx.unsupported('`row_to_json` of anything but a row', at, hint);
}

/** Binds the row argument of `count(t)`: TRUE, or NULL if an outer join found no row. Null for anything else. */
export function countedRow(node: Node, env: BindEnvironment): Expr | null {
  const item = rowOf(node, env);
  if (item === null) return null;
  if (!mayBeMissing(env.scope.from, item.source)) return TRUE;
  const columns = [...item.columns.values()].filter((c) => c.starred && c.computed === undefined);
  const values = columns.map((c) => {
    const source = c.source ?? item.source;
    env.ctx.use(source, c.name);
    env.ctx.countValues(firstLocation(node));
    return columnRef(source, c.name, c.type);
  });
  return nullIfAllNull(values, TRUE);
}

/** Returns `CASE WHEN a IS NULL AND … THEN NULL ELSE otherwise END`, or just `otherwise` if there are no values. */
function nullIfAllNull(values: readonly Expr[], otherwise: Expr): Expr {
  if (values.length === 0) return otherwise;
  const { type } = otherwise;
  const when = allOf(
    values.map((arg): Expr => Object.freeze({ kind: 'null_test', arg, negated: false, type: 'bool' })),
  );
  const result: Expr = Object.freeze({ kind: 'null', type });
  return Object.freeze({
    kind: 'case',
    arms: Object.freeze([Object.freeze({ when, result })]),
    otherwise,
    type,
  });
}

/** Binds a path, which is a text constant with an optional cast to `jsonpath`. */
function bindPath(node: Node, env: BindEnvironment): Expr {
  const { ctx } = env;
  const cast = 'TypeCast' in node ? node.TypeCast : null;
  const written = nameParts(cast?.typeName?.names).join('.') === 'jsonpath' ? required(cast?.arg) : node;
  const path = coerce(bindExpression(written, env), 'text', ctx);
  if (path.kind === 'parameter') return path;
  throw ctx.unsupported('a path that is not a constant', firstLocation(node), 'write the path as text');
}

/**
 * Converts a whole row to a JSON object. For a FROM item, it contains the columns that the caller may use, with the
 * values shown to the caller; for ROW(…), the values are named `f1`, `f2`, …. The result is NULL if an outer join
 * found no row. Names are passed as parameters, never in the SQL. Returns null if `node` is not a row.
 */
function bindRow(node: Node, json: 'json' | 'jsonb', env: BindEnvironment): Expr | null {
  const at = firstLocation(node);
  if ('RowExpr' in node) {
    const values = (node.RowExpr.args ?? []).map((a) => bindValue(a, env));
    return objectOf(
      values.map((expr, i) => ({ name: `f${i + 1}`, expr })),
      json,
      at,
      env,
    );
  }
  const item = rowOf(node, env);
  if (item === null) return null;
  const fields = fieldsOf(item, at, env);
  return unlessMissing(objectOf(fields, json, at, env), item, fields, at, env);
}

/**
 * Converts a whole row to Postgres' text form, `(1,Ada,)`. The row is a FROM item, with the columns that the caller
 * may use and their values as shown to the caller, or `ROW(…)`, which may contain `c.*`. Null if `node` is not a row.
 */
export function bindRowText(node: Node, env: BindEnvironment): Expr | null {
  const at = firstLocation(node);
  const textOf = (items: readonly Expr[]): Expr => {
    env.ctx.countValues(at, items.length);
    return env.ctx.at(Object.freeze({ kind: 'row_text', items: Object.freeze(items), type: 'text' }), at);
  };
  if ('RowExpr' in node) {
    const values = (node.RowExpr.args ?? []).flatMap((arg) => {
      const starred = 'ColumnRef' in arg && (arg.ColumnRef.fields ?? []).length > 1 ? rowOf(arg, env) : null;
      return starred === null ? [bindValue(arg, env)] : fieldsOf(starred, at, env).map((f) => f.expr);
    });
    return textOf(values);
  }
  const item = 'ColumnRef' in node && node.ColumnRef.fields?.length === 1 ? rowOf(node, env) : null;
  if (item === null) return null;
  const fields = fieldsOf(item, at, env);
  return unlessMissing(textOf(fields.map((f) => f.expr)), item, fields, at, env);
}

/** True if `node` is the name of a FROM item, so that `(c).name` refers to one of its columns. */
export function isRowName(
  node: Node | undefined,
  env: BindEnvironment,
): node is Extract<Node, { ColumnRef: unknown }> {
  return (
    node !== undefined &&
    'ColumnRef' in node &&
    node.ColumnRef.fields?.length === 1 &&
    rowOf(node, env) !== null
  );
}

/** Returns the columns of the FROM item that `node` refers to, as `c` or `c.*`; null if it refers to none. */
function columnsOfRow(node: Node | undefined, env: BindEnvironment): readonly Expr[] | null {
  const item = node === undefined ? null : rowOf(node, env);
  return item === null || node === undefined
    ? null
    : fieldsOf(item, firstLocation(node), env).map((f) => f.expr);
}

function fieldsOf(item: ScopeItem, at: Location, env: BindEnvironment): RowFields {
  return expandStar([item.alias], { ...(at === undefined ? {} : { location: at }) }, env, columnValue);
}

function unlessMissing(
  whole: Expr,
  item: ScopeItem,
  fields: RowFields,
  at: Location,
  env: BindEnvironment,
): Expr {
  if (!mayBeMissing(env.scope.from, item.source)) return whole;
  const columns = fields.map((f) => f.expr).filter((e) => e.kind === 'column');
  return columns.length === 0 ? whole : env.ctx.at(nullIfAllNull(columns, whole), at);
}

function objectOf(
  fields: readonly { readonly name: string; readonly expr: Expr }[],
  json: 'json' | 'jsonb',
  at: number | undefined,
  { ctx }: BindEnvironment,
): Expr {
  ctx.countValues(at, fields.length);
  return ctx.at(json === 'json' ? writtenOut(fields, at, ctx) : builtOf(fields, at, ctx), at);
}

type RowFields = readonly { readonly name: string; readonly expr: Expr }[];

function writtenOut(fields: RowFields, at: Location, ctx: BindContext): Expr {
  const text = (value: string): Expr => ctx.constant(value, 'text');
  const members = fields.flatMap(({ name, expr }, i) => {
    const { definition, args, type } = chooseOverload('to_json', [expr], at, ctx);
    const value: Expr = castTo(callNode(definition, args, type), 'text');
    const shown: Expr = Object.freeze({
      kind: 'conditional',
      form: 'coalesce',
      args: Object.freeze([value, text('null')]),
      type: 'text',
    });
    return [text(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`), shown];
  });
  const items = Object.freeze([...members, text(fields.length === 0 ? '{}' : '}')]);
  const parts: Expr = Object.freeze({ kind: 'array', items, type: 'text[]' });
  const { definition, args, type } = chooseOverload('array_to_string', [parts, text('')], at, ctx);
  return castTo(callNode(definition, args, type), 'json');
}

/** Builds a jsonb object, in several parts if there are too many columns for one call. */
function builtOf(fields: RowFields, at: Location, ctx: BindContext): Expr {
  const part = (some: RowFields): Expr => {
    const args = some.flatMap(({ name, expr }) => [ctx.constant(name, 'text'), expr]);
    const empty = functionsNamed('jsonb_build_object').find((f) => f.arguments.length === 0);
    const { definition } =
      args.length === 0 && empty !== undefined
        ? { definition: empty }
        : chooseOverload('jsonb_build_object', args, at, ctx);
    return callNode(definition, args, 'jsonb');
  };
  let whole = part(fields.slice(0, MOST_COLUMNS));
  for (let from = MOST_COLUMNS; from < fields.length; from += MOST_COLUMNS)
    whole = infix('||', whole, part(fields.slice(from, from + MOST_COLUMNS)), at, ctx);
  return whole;
}

/**
 * Returns the FROM item that `node` refers to, as `c` or `c.*`; null if it refers to none, or if a column has that
 * name.
 */
function rowOf(node: Node, env: BindEnvironment): ScopeItem | null {
  if (!('ColumnRef' in node) || env.nameOf !== undefined) return null;
  const fields = node.ColumnRef.fields ?? [];
  const [first, star, ...more] = fields;
  if (first === undefined || more.length > 0 || (star !== undefined && !('A_Star' in star))) return null;
  const alias = stringOf(first);
  const { scope, ctx } = env;
  const bare = { alias: null, name: alias, schema: null };
  if (star === undefined && lookUp(scope, bare, ctx, node.ColumnRef.location) !== null) return null;
  return scope.items.find((i) => i.alias === alias) ?? null;
}
