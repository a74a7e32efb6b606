import type { A_Expr, Node, NullTest, RangeSubselect } from '@pgsql/types';
import { allOf, anyOf, isNotNull } from '../../plan/nodes.js';
import type { Expr, RowComparison } from '../../plan/plan.js';
import { type Location, nameParts, rowItems } from '../ast.js';
import type { BindEnvironment } from '../scope.js';
import { coerce, typeOfBound } from './coerce.js';
import { bindExpression, bindValue } from './expression.js';
import { infix, operatorFor } from './infix.js';
import { columnsOfRow } from './whole-row.js';

/**
 * Compares two row constructors as Postgres does: `=` requires all pairs to be equal, `<>` requires any pair to
 * differ, and the first differing pair decides the order. Null if neither side is a row constructor.
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
  const pairs = pairsOf(left, right, at, env);
  if (order !== undefined && pairs.length > 1) return ordered(order, pairs, at, env);
  const each = pairs.map(([l, r]) => infix(name, bindExpression(l, env), bindExpression(r, env), at, ctx));
  return ctx.at(name === '<>' ? anyOf(each) : allOf(each), at);
}

function ordered(
  operator: RowComparison['operator'],
  nodes: readonly (readonly [Node, Node])[],
  at: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const pairs = nodes.map(([l, r]) => {
    const [left, right] = [bindExpression(l, env), bindExpression(r, env)];
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

/** Contains spaces, so it cannot collide with an unquoted name. */
const ALIAS = 'row of the subquery';

function text(sval: string): Node {
  return { String: { sval } };
}
