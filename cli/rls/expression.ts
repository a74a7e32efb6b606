import type { FuncCall, Node, SelectStmt, SubLink } from '@pgsql/types';
import { QueryError } from 'osl-compiler';
import { calledName, expressionNode, literalOf, namesOf, partsOf } from './nodes.js';
import { columnOf, eachNode, isTree, type RelationName, relationNames } from './statement.js';

/**
 * Facts about the condition of a policy, for the rules. `unparsed`: the parser refuses the expression or it exceeds the
 * parser's limits.
 */
export type Expression = ParsedExpression | { readonly kind: 'unparsed'; readonly reason: string };

export interface ParsedExpression {
  readonly kind: 'parsed';
  /** Value of a condition that is the same for every row and session; null for any other condition. */
  readonly constant: boolean | null;
  /** Operands of the top-level AND; each has one alternative per operand of OR. */
  readonly conjuncts: readonly Conjunct[];
  /** Columns of the policy's own table, including those in subqueries. */
  readonly columns: ReadonlySet<string>;
  readonly calls: readonly Call[];
  readonly settings: readonly SettingRead[];
  readonly subqueries: readonly AnalysedSubquery[];
  /** Values of the text literals in the condition. */
  readonly literals: readonly string[];
}

interface Conjunct {
  readonly alternatives: readonly Alternative[];
}

/** A condition without AND or OR at the top level. */
export interface Alternative {
  /** Comparison of a column with a value or a subquery that does not depend on the row, or a NULL test; otherwise null. */
  readonly comparison: ColumnComparison | null;
  readonly constant: boolean | null;
  /** Columns of the policy's own table in the condition. */
  readonly columns: ReadonlySet<string>;
}

export interface ColumnComparison {
  readonly column: string;
  /** Operator such as `=` or `IS NULL`; `column = ANY (…)` has the operator `=`. */
  readonly operator: string;
  /** Type to which the column is cast before the comparison; null without a cast. */
  readonly cast: string | null;
  /** True for a comparison with a role name, such as CURRENT_USER, without COLLATE: its collation is "C". */
  readonly toRoleName: boolean;
}

export interface Call {
  /** Null for a function in pg_catalog. */
  readonly schema: string | null;
  readonly name: string;
  /** True if an argument depends on the row. */
  readonly perRowArguments: boolean;
  /** False inside a subquery that does not depend on the row, which runs once. */
  readonly perRow: boolean;
}

export interface SettingRead {
  readonly name: string;
  readonly missingOk: boolean;
  /** Type other than text to which the value is cast without NULLIF; otherwise null. */
  readonly cast: string | null;
}

interface AnalysedSubquery {
  readonly relations: readonly RelationName[];
  /** True if the subquery depends on the outer row, so that it runs for each row. */
  readonly correlated: boolean;
}

/**
 * Analyses the text of a policy's condition as `pg_get_expr` prints it with an empty search_path. Requires `ready()` of
 * osl-compiler.
 */
export function analyseCondition(text: string): Expression {
  try {
    const value = expressionNode(text);
    return value === null ? { kind: 'unparsed', reason: 'it is not an expression' } : analysed(value);
  } catch (error) {
    if (error instanceof QueryError || error instanceof RangeError)
      return { kind: 'unparsed', reason: error.message };
    throw error;
  }
}

/** True if the condition is known to be true for every row. */
export function isAlwaysTrue(expression: Expression | null): boolean {
  return expression?.kind === 'parsed' && expression.constant === true;
}

function analysed(condition: Node): ParsedExpression {
  const facts: Facts = { columns: new Set(), calls: [], settings: [], subqueries: [], literals: [] };
  collect(condition, { facts, inner: null, perRow: true });
  return {
    kind: 'parsed',
    constant: constantOf(condition),
    conjuncts: partsOf(condition, 'AND_EXPR').map((part) => ({
      alternatives: partsOf(part, 'OR_EXPR').map(alternativeOf),
    })),
    ...facts,
  };
}

interface Facts {
  readonly columns: Set<string>;
  readonly calls: Call[];
  readonly settings: SettingRead[];
  readonly subqueries: AnalysedSubquery[];
  readonly literals: string[];
}

interface Place {
  readonly facts: Facts;
  /** Names that the enclosing subqueries define; null outside of subqueries. */
  readonly inner: ReadonlySet<string> | null;
  readonly perRow: boolean;
}

/** Collects facts about a tree. Every node is an object with one member, named after its type. */
function collect(value: unknown, place: Place): void {
  if (!isTree(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, place);
    return;
  }
  const node = value as Node; // safe: objects other than nodes have none of the names below
  const setting = castSetting(node);
  if ('SubLink' in node) {
    collectSubquery(node.SubLink, place);
    return;
  }
  if (setting !== null) {
    collectCall(setting.call, place, setting.cast);
    collect(setting.call.args, place);
    return;
  }
  if ('ColumnRef' in node) collectColumn(node, place);
  else if ('FuncCall' in node) collectCall(node.FuncCall, place);
  else if ('A_Const' in node && node.A_Const.sval !== undefined)
    place.facts.literals.push(node.A_Const.sval.sval ?? '');
  for (const child of Object.values(value)) collect(child, place);
}

function collectColumn(node: Node, { facts, inner }: Place): void {
  const column = ownColumn(node, inner);
  if (column !== null) facts.columns.add(column);
}

/**
 * The column of the policy's own table that a node names; null for any other node. In a subquery, `pg_get_expr`
 * qualifies each column with its table.
 *
 * @param inner names that the enclosing subqueries define; null outside of subqueries
 */
function ownColumn(node: Node, inner: ReadonlySet<string> | null): string | null {
  const column = columnOf(node);
  if (column === null) return null;
  const isInner = inner !== null && (column.qualifier === null || inner.has(column.qualifier));
  return isInner ? null : column.name;
}

function collectCall(call: FuncCall, { facts, inner, perRow }: Place, cast: string | null = null): void {
  const { schema, name } = calledName(call);
  const perRowArguments = (call.args ?? []).some((argument) => dependsOnRow(argument, inner));
  facts.calls.push({ schema, name, perRow, perRowArguments });
  if (name !== 'current_setting') return;
  const [setting, missing] = call.args ?? [];
  const missingOk = missing !== undefined && constantOf(missing) === true;
  facts.settings.push({ name: literalOf(setting) ?? '(computed)', missingOk, cast });
}

/** A call of current_setting whose value is cast to a type other than text; null for any other node. */
function castSetting(node: Node): { readonly call: FuncCall; readonly cast: string } | null {
  if (!('TypeCast' in node) || node.TypeCast.arg === undefined) return null;
  const { arg } = node.TypeCast;
  const cast = typeName(node);
  if (cast === 'text' || !('FuncCall' in arg) || calledName(arg.FuncCall).name !== 'current_setting')
    return null;
  return { call: arg.FuncCall, cast };
}

function collectSubquery(link: SubLink, place: Place): void {
  // The left side of IN belongs to the outer query, not to the subquery.
  collect(link.testexpr, place);
  const { subselect } = link;
  if (subselect === undefined) return;
  const inner = new Set([...(place.inner ?? []), ...definedNames(subselect)]);
  const correlated = dependsOnRow(subselect, inner);
  place.facts.subqueries.push({ relations: relationNames(subselect), correlated });
  collect(subselect, { facts: place.facts, inner, perRow: place.perRow && correlated });
}

/** True if a column of the policy's own table occurs in the tree. */
function dependsOnRow(value: unknown, inner: ReadonlySet<string> | null): boolean {
  if (!isTree(value)) return false;
  if (Array.isArray(value)) return value.some((item) => dependsOnRow(item, inner));
  const node = value as Node; // as in `collect`
  if ('ColumnRef' in node) return ownColumn(node, inner) !== null;
  if (!('SubLink' in node)) return Object.values(value).some((child) => dependsOnRow(child, inner));
  const within = new Set([...(inner ?? []), ...definedNames(node.SubLink.subselect)]);
  return dependsOnRow(node.SubLink.testexpr, inner) || dependsOnRow(node.SubLink.subselect, within);
}

/** True if a subquery of a condition depends on the row. */
function isCorrelated(subselect: Node | undefined): boolean {
  return dependsOnRow(subselect, new Set(definedNames(subselect)));
}

/** Names and aliases of the tables, subqueries and functions in a query and in the queries nested in it. */
function definedNames(query: unknown): readonly string[] {
  const names: string[] = [];
  eachNode(query, (node) => {
    if ('RangeVar' in node) names.push(node.RangeVar.alias?.aliasname ?? node.RangeVar.relname ?? '');
    else if ('RangeSubselect' in node) names.push(node.RangeSubselect.alias?.aliasname ?? '');
    else if ('RangeFunction' in node) names.push(...functionAliases(node.RangeFunction));
    else if ('JoinExpr' in node) names.push(node.JoinExpr.alias?.aliasname ?? '');
  });
  return names.filter((name) => name !== '');
}

function functionAliases({ alias, functions = [] }: { alias?: { aliasname?: string }; functions?: Node[] }) {
  const names = alias?.aliasname === undefined ? [] : [alias.aliasname];
  eachNode(functions, (node) => {
    if ('FuncCall' in node) names.push(calledName(node.FuncCall).name);
  });
  return names;
}

function alternativeOf(node: Node): Alternative {
  const facts: Facts = { columns: new Set(), calls: [], settings: [], subqueries: [], literals: [] };
  collect(node, { facts, inner: null, perRow: true });
  return { comparison: comparisonOf(node), constant: constantOf(node), columns: facts.columns };
}

function comparisonOf(node: Node): ColumnComparison | null {
  if ('ColumnRef' in node) return compared(node, 'IS TRUE');
  if ('NullTest' in node) {
    const { arg, nulltesttype } = node.NullTest;
    return arg === undefined ? null : compared(arg, nulltesttype === 'IS_NULL' ? 'IS NULL' : 'IS NOT NULL');
  }
  if ('SubLink' in node && node.SubLink.subLinkType === 'ANY_SUBLINK') {
    const { testexpr, subselect } = node.SubLink;
    if (testexpr === undefined || isCorrelated(subselect)) return null;
    return compared(testexpr, 'IN');
  }
  if (!('A_Expr' in node)) return null;
  const { lexpr, rexpr, name = [], kind } = node.A_Expr;
  const [last] = name.slice(-1);
  const operator = last !== undefined && 'String' in last ? (last.String.sval ?? '') : '';
  if (kind !== 'AEXPR_OP' && kind !== 'AEXPR_OP_ANY' && kind !== 'AEXPR_IN') return null;
  if (lexpr !== undefined && !dependsOnRow(rexpr, null)) return compared(lexpr, operator, isRoleName(rexpr));
  if (rexpr !== undefined && kind === 'AEXPR_OP' && !dependsOnRow(lexpr, null))
    return compared(rexpr, operator, isRoleName(lexpr));
  return null;
}

/** True for CURRENT_USER and the like, also in a cast or `(select …)`, which keep the collation "C". */
function isRoleName(node: Node | undefined): boolean {
  if (node === undefined) return false;
  if ('SQLValueFunction' in node) return /USER|ROLE/.test(node.SQLValueFunction.op ?? '');
  if ('TypeCast' in node) return isRoleName(node.TypeCast.arg);
  if (!('SubLink' in node) || node.SubLink.subLinkType !== 'EXPR_SUBLINK') return false;
  const { subselect } = node.SubLink;
  const [target] =
    subselect !== undefined && 'SelectStmt' in subselect ? (subselect.SelectStmt.targetList ?? []) : [];
  return target !== undefined && 'ResTarget' in target && isRoleName(target.ResTarget.val);
}

/** Returns a comparison if `side` is a column or a cast of one; null if it is any other expression. */
function compared(side: Node, operator: string, toRoleName = false): ColumnComparison | null {
  const column = ownColumn(side, null);
  if (column !== null) return { column, operator, cast: null, toRoleName };
  if (!('TypeCast' in side) || side.TypeCast.arg === undefined) return null;
  const inner = ownColumn(side.TypeCast.arg, null);
  return inner === null ? null : { column: inner, operator, cast: typeName(side), toRoleName };
}

/** Type names as `format_type` prints them, by the names that the parser uses. */
const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ['varchar', 'character varying'],
  ['bpchar', 'character'],
  ['int2', 'smallint'],
  ['int4', 'integer'],
  ['int8', 'bigint'],
  ['bool', 'boolean'],
  ['float4', 'real'],
  ['float8', 'double precision'],
  ['timestamptz', 'timestamp with time zone'],
  ['timestamp', 'timestamp without time zone'],
]);

function typeName(node: Node): string {
  const names = ('TypeCast' in node ? node.TypeCast.typeName?.names : undefined) ?? [];
  const last = names.at(-1);
  const name = last !== undefined && 'String' in last ? (last.String.sval ?? '') : '';
  return TYPE_NAMES.get(name) ?? name;
}

/** Value of a condition that follows from its literals, such as `1 = 1` or `x or true`; otherwise null. */
function constantOf(node: Node): boolean | null {
  if ('TypeCast' in node) return node.TypeCast.arg === undefined ? null : constantOf(node.TypeCast.arg);
  if ('A_Const' in node)
    return node.A_Const.boolval === undefined ? null : node.A_Const.boolval.boolval === true;
  if ('SubLink' in node) return constantSubquery(node.SubLink);
  if ('A_Expr' in node) return constantComparison(node);
  if (!('BoolExpr' in node)) return null;
  const values = (node.BoolExpr.args ?? []).map(constantOf);
  switch (node.BoolExpr.boolop) {
    case 'AND_EXPR':
      return values.includes(false) ? false : values.every((value) => value === true) ? true : null;
    case 'OR_EXPR':
      return values.includes(true) ? true : values.every((value) => value === false) ? false : null;
    case 'NOT_EXPR':
      return values[0] === undefined || values[0] === null ? null : !values[0];
    default:
      return null;
  }
}

/** Value of a constant subquery such as `(select true)`; null for any other subquery. */
function constantSubquery({ subLinkType, subselect }: SubLink): boolean | null {
  if (subLinkType !== 'EXPR_SUBLINK' || subselect === undefined || !('SelectStmt' in subselect)) return null;
  const { targetList = [], fromClause = [], whereClause }: SelectStmt = subselect.SelectStmt;
  const [target] = targetList;
  if (fromClause.length > 0 || whereClause !== undefined || target === undefined) return null;
  return 'ResTarget' in target && target.ResTarget.val !== undefined
    ? constantOf(target.ResTarget.val)
    : null;
}

/** Value of `=` between two literals where it is certain; otherwise null, as for `1 = 1.0`. */
function constantComparison(node: Node): boolean | null {
  if (!('A_Expr' in node) || node.A_Expr.kind !== 'AEXPR_OP') return null;
  const { lexpr, rexpr, name = [] } = node.A_Expr;
  const [operator] = name;
  if (operator === undefined || !('String' in operator) || operator.String.sval !== '=') return null;
  const [left, right] = [typedLiteral(lexpr), typedLiteral(rexpr)];
  if (left === null || right === null || left.type !== right.type) return null;
  if (left.text === right.text) return true;
  return ONE_TEXT_EACH.has(left.type) ? false : null;
}

/** Types whose literals have different values if their texts differ. */
const ONE_TEXT_EACH: ReadonlySet<string> = new Set(['text', 'integer', 'boolean']);

interface TypedLiteral {
  /** Type of the literal, followed by that of its cast if there is one, such as `integer` or `text::numeric`. */
  readonly type: string;
  readonly text: string;
}

/** A literal, also in a cast without modifiers; null for any other node. `pg_get_expr` casts each text to text. */
function typedLiteral(node: Node | undefined): TypedLiteral | null {
  if (node === undefined) return null;
  if ('TypeCast' in node) {
    const { arg, typeName: target } = node.TypeCast;
    const literal = typedLiteral(arg);
    if (literal === null || target?.typmods !== undefined || target?.arrayBounds !== undefined) return null;
    const type = namesOf(target?.names).join('.');
    return type === literal.type ? literal : { ...literal, type: `${literal.type}::${type}` };
  }
  const text = literalOf(node);
  if (text === null || !('A_Const' in node)) return null;
  const { sval, ival, boolval } = node.A_Const;
  const type =
    sval !== undefined
      ? 'text'
      : ival !== undefined
        ? 'integer'
        : boolval !== undefined
          ? 'boolean'
          : 'numeric';
  return { type, text };
}
