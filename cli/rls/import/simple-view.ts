import type { Node, SelectStmt } from '@pgsql/types';
import type { MaskKind } from 'osl-compiler';
import type { PgRelation } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { calledName, literalOf, namesOf } from '../nodes.js';
import { columnOf, eachNode, parsedStatement } from '../statement.js';
import { Untranslatable } from './scope.js';

/** A view that shows rows of one table, each at most once. */
export interface SimpleView {
  readonly base: PgRelation;
  /** Name of the table in the query. */
  readonly alias: string;
  /** Row condition; null: all rows. */
  readonly where: Node | null;
  readonly columns: readonly ViewColumn[];
  /** Columns of the table that the query names anywhere. */
  readonly reads: ReadonlySet<string>;
}

/** One column of a view; `of` is the table column that it shows. */
export type ViewColumn =
  | { readonly kind: 'plain'; readonly name: string; readonly of: string }
  | MaskedColumn
  /** A value that the policy language cannot express, with the reason. */
  | { readonly kind: 'computed'; readonly name: string; readonly reason: string };

export interface MaskedColumn {
  readonly kind: 'masked';
  readonly name: string;
  readonly of: string;
  /** A mask that shows no more of a value than the view does. */
  readonly mask: MaskKind;
  /** True if the mask returns the same text as the view. */
  readonly exact: boolean;
  /** Condition under which the view shows the value; null if it never does. */
  readonly clear: Node | null;
}

/** Requires `ready()` of osl-compiler. @throws Untranslatable with the reason why a view is not simple */
export function simpleView(db: CheckedDatabase, view: PgRelation): SimpleView {
  const tree = parsedStatement(view.view?.definition ?? '');
  if (tree === null || !('SelectStmt' in tree)) throw new Untranslatable('its query is not in the grammar');
  const select = tree.SelectStmt;
  requirePlainSelect(select);
  const { base, alias } = tableOf(db, select);
  const { targetList = [], whereClause = null } = select;
  if (view.view?.calls.some((id) => !db.catalog.functions.has(id)))
    throw new Untranslatable('an aggregate of a user or an extension');
  if (targetList.length !== view.columns.length)
    throw new Untranslatable('its columns could not be told apart');
  const columns = view.columns.map(({ name }, i): ViewColumn => {
    const target = targetList[i];
    const value = target !== undefined && 'ResTarget' in target ? target.ResTarget.val : undefined;
    if (value === undefined) throw new Untranslatable(`its column ${name} has no value`);
    requireRowWise(db, value, name);
    return columnFor(name, value, base);
  });
  return { base, alias, where: whereClause, columns, reads: columnsNamed(tree, base) };
}

/** Requires that the query neither groups, combines, limits nor deduplicates rows of the table. */
function requirePlainSelect(select: SelectStmt): void {
  const { op, groupClause, havingClause, distinctClause, limitCount, limitOffset, windowClause } = select;
  const { withClause, valuesLists, lockingClause } = select;
  if (op !== undefined && op !== 'SETOP_NONE') throw new Untranslatable('UNION, INTERSECT or EXCEPT');
  if (groupClause !== undefined || havingClause !== undefined) throw new Untranslatable('GROUP BY');
  if (distinctClause !== undefined) throw new Untranslatable('DISTINCT');
  if (limitCount !== undefined || limitOffset !== undefined) throw new Untranslatable('LIMIT');
  if (withClause !== undefined) throw new Untranslatable('WITH');
  if (windowClause !== undefined || valuesLists !== undefined || lockingClause !== undefined)
    throw new Untranslatable('WINDOW, VALUES or FOR UPDATE');
}

function tableOf(db: CheckedDatabase, { fromClause = [] }: SelectStmt) {
  const [from, another] = fromClause;
  if (from === undefined) throw new Untranslatable('a query without a table');
  if (another !== undefined || 'JoinExpr' in from) throw new Untranslatable('a join');
  if (!('RangeVar' in from)) throw new Untranslatable('a subquery, a function or a sample in FROM');
  const { schemaname = null, relname = '', alias, inh } = from.RangeVar;
  if (inh !== true) throw new Untranslatable('ONLY');
  if (alias?.colnames !== undefined) throw new Untranslatable('renamed columns in FROM');
  const base = schemaname === null ? null : db.relationNamed({ schema: schemaname, name: relname });
  if (base === null) throw new Untranslatable(`${relname}, a view of the system`);
  if (base.kind !== 'table' && base.kind !== 'partitioned table')
    throw new Untranslatable(`a ${base.kind} below it`);
  return { base, alias: alias?.aliasname ?? relname };
}

/** Functions of Postgres that return one value for each row. */
const ROW_WISE: ReadonlySet<string> = new Set(
  `left right substr substring overlay concat concat_ws upper lower initcap repeat replace reverse regexp_replace translate
  md5 sha224 sha256 sha384 sha512 encode decode convert_to length char_length octet_length position strpos split_part lpad
  rpad btrim ltrim rtrim to_char date_trunc date_part extract timezone age round trunc floor ceil ceiling abs now
  current_setting pg_has_role has_table_privilege has_column_privilege to_json to_jsonb json_build_object
  jsonb_build_object array_to_string string_to_array host nullif format`.split(/\s+/),
);

/** Refuses aggregates, window functions and set-returning functions: they can change which rows the view has. */
function requireRowWise(db: CheckedDatabase, value: Node, column: string): void {
  eachNode(value, (node) => {
    if (!('FuncCall' in node)) return;
    const { over, agg_star, agg_within_group, agg_filter, agg_order, agg_distinct } = node.FuncCall;
    const { schema, name } = calledName(node.FuncCall);
    const plain =
      over === undefined && ![agg_star, agg_within_group, agg_filter, agg_order, agg_distinct].some(Boolean);
    const own = db.functionsNamed({ schema, name });
    const known = schema === null ? ROW_WISE.has(name) : own.length > 0 && own.every((f) => !f.returnsSet);
    if (!plain || !known) throw new Untranslatable(`the function ${name}, in the column ${column}`);
  });
}

function columnsNamed(tree: Node, base: PgRelation): ReadonlySet<string> {
  const known = new Set(base.columns.map(({ name }) => name));
  const found = new Set<string>();
  eachNode(tree, (node) => {
    const column = columnOf(node);
    if (column === null) return;
    if (column.name === '*') throw new Untranslatable('a row as one value');
    if (known.has(column.name)) found.add(column.name);
  });
  return found;
}

function columnFor(name: string, value: Node, base: PgRelation): ViewColumn {
  if ('ColumnRef' in value) return { kind: 'plain', name, of: columnOf(value)?.name ?? '' };
  const cases = 'CaseExpr' in value ? maskedByCase(name, value, base) : null;
  if (cases !== null) return cases;
  const mask = maskOf(value);
  // A constant shows nothing of the table, so leaving out the column loses nothing.
  if (mask === null || mask.of === null) return { kind: 'computed', name, reason: 'it is computed' };
  return { kind: 'masked', name, of: mask.of, mask: mask.kind, exact: mask.exact, clear: null };
}

interface Arm {
  /** Condition of the branch; null for ELSE. */
  readonly when: Node | null;
  readonly value: Node;
}

/** Parses `CASE WHEN condition THEN column ELSE mask END`, with any number of branches; null for any other value. */
function maskedByCase(name: string, node: Node, base: PgRelation): ViewColumn | null {
  const arms = armsOf(node);
  const shown = arms.map(({ value }) => shownColumn(value, base));
  const [of, another] = new Set(shown.filter((column) => column !== null));
  if (another !== undefined) return null;
  const masks = arms.flatMap(({ value }, i) => (shown[i] === null ? [maskOf(value)] : []));
  const column = of ?? masks.find((mask) => mask !== null && mask.of !== null)?.of ?? null;
  if (column === null) return null;
  const [first = null, ...rest] = masks;
  const fits = (mask: Mask | null): boolean => mask !== null && (mask.of === null || mask.of === column);
  const same = fits(first) && rest.every((mask) => fits(mask) && mask?.kind === first?.kind);
  const clear = shown.flatMap((one, i) => (one === null ? [] : [reached(arms, i, shown)]));
  return {
    kind: 'masked',
    name,
    of: column,
    mask: first !== null && same ? first.kind : 'redact',
    exact: same && masks.every((mask) => mask?.exact === true),
    clear: clear.length === 0 ? null : either(clear),
  };
}

function armsOf(node: Node): readonly Arm[] {
  if (!('CaseExpr' in node)) return [];
  const { arg, args = [], defresult } = node.CaseExpr;
  const arms = args.flatMap((branch): Arm[] => {
    if (!('CaseWhen' in branch)) return [];
    const { expr, result } = branch.CaseWhen;
    if (expr === undefined || result === undefined) return [];
    return [{ when: arg === undefined ? expr : equal(arg, expr), value: result }];
  });
  return [...arms, { when: null, value: defresult ?? NULL }];
}

const NULL: Node = { A_Const: { isnull: true } };

/** The column that a branch shows unmasked; null for any other branch. */
function shownColumn(node: Node, base: PgRelation): string | null {
  const inner = isTextCast(node) && 'TypeCast' in node ? (node.TypeCast.arg ?? node) : node;
  const name = columnOf(inner)?.name ?? null;
  if (name === null || inner === node) return name;
  // A cast of another type to text may show less than the value.
  const type = base.columns.find((column) => column.name === name)?.type;
  return type === 'text' || type === 'character varying' ? name : null;
}

function isTextCast(node: Node): boolean {
  if (!('TypeCast' in node)) return false;
  const type = namesOf(node.TypeCast.typeName?.names).at(-1);
  return (type === 'text' || type === 'varchar') && node.TypeCast.typeName?.typmods === undefined;
}

/**
 * The condition under which CASE takes the branch at `index` or an earlier one that shows the column. Stricter than
 * CASE if an earlier condition is NULL.
 */
function reached(arms: readonly Arm[], index: number, shown: readonly (string | null)[]): Node {
  const parts = arms
    .slice(0, index)
    .flatMap(({ when }, i): Node[] =>
      when === null || shown[i] !== null ? [] : [{ BoolExpr: { boolop: 'NOT_EXPR', args: [when] } }],
    );
  const own = arms[index]?.when ?? null;
  const all = own === null ? parts : [...parts, own];
  const [only, another] = all;
  if (only === undefined) return { A_Const: { boolval: { boolval: true } } };
  return another === undefined ? only : { BoolExpr: { boolop: 'AND_EXPR', args: all } };
}

function either(conditions: Node[]): Node {
  const [only, another] = conditions;
  if (only !== undefined && another === undefined) return only;
  return { BoolExpr: { boolop: 'OR_EXPR', args: conditions } };
}

function equal(lexpr: Node, rexpr: Node): Node {
  return { A_Expr: { kind: 'AEXPR_OP', name: [{ String: { sval: '=' } }], lexpr, rexpr } };
}

interface Mask {
  readonly kind: MaskKind;
  /** The masked column; null for a constant. */
  readonly of: string | null;
  readonly exact: boolean;
}

/** The mask of the policy language that shows no more than an expression; null if there is none. */
function maskOf(node: Node): Mask | null {
  if ('TypeCast' in node) {
    const inner = node.TypeCast.arg === undefined ? null : maskOf(node.TypeCast.arg);
    return inner === null || inner.of === null ? inner : { ...inner, exact: false };
  }
  if ('A_Const' in node)
    return node.A_Const.isnull === true
      ? { kind: 'null', of: null, exact: true }
      : { kind: 'redact', of: null, exact: literalOf(node) === '[redacted]' };
  const prefix = prefixOf(node);
  if (prefix !== null)
    return { kind: 'partial', of: prefix.of, exact: prefix.exact && isConcatenation(node) };
  if (!('FuncCall' in node)) return null;
  const { schema, name } = calledName(node.FuncCall);
  const [first, second] = node.FuncCall.args ?? [];
  if (schema !== null || first === undefined) return null;
  if (name === 'md5') return knownMask('hash', columnThrough(first));
  if (name === 'date_trunc' && literalOf(first) === 'year' && second !== undefined)
    return knownMask('year', columnOf(withoutCasts(second))?.name ?? null);
  return null;
}

function knownMask(kind: MaskKind, of: string | null): Mask | null {
  return of === null ? null : { kind, of, exact: kind === 'year' };
}

function withoutCasts(node: Node): Node {
  return 'TypeCast' in node && node.TypeCast.arg !== undefined ? withoutCasts(node.TypeCast.arg) : node;
}

/** The column that a node names, also in a cast to text; null for any other node. */
function columnThrough(node: Node): string | null {
  const inner = isTextCast(node) && 'TypeCast' in node ? (node.TypeCast.arg ?? node) : node;
  return columnOf(inner)?.name ?? null;
}

/** The column of which an expression shows a prefix, such as `left(email, 2) || '***'`; otherwise null. */
function prefixOf(node: Node): { readonly of: string; readonly exact: boolean } | null {
  if ('A_Expr' in node && node.A_Expr.kind === 'AEXPR_OP' && namesOf(node.A_Expr.name).at(-1) === '||') {
    const { lexpr, rexpr } = node.A_Expr;
    const start = lexpr === undefined ? null : prefixOf(lexpr);
    if (start === null || literalOf(rexpr) === null) return null;
    return { of: start.of, exact: start.exact && literalOf(rexpr) === '***' && !isConcatenation(lexpr) };
  }
  if ('TypeCast' in node)
    return node.TypeCast.arg !== undefined && isTextCast(node) ? prefixOf(node.TypeCast.arg) : null;
  if (!('FuncCall' in node)) return null;
  const { schema, name } = calledName(node.FuncCall);
  const [text, ...limits] = node.FuncCall.args ?? [];
  const numbers = limits.map((limit) => Number(literalOf(limit) ?? Number.NaN));
  const of = text === undefined ? null : columnThrough(text);
  if (schema !== null || of === null) return null;
  const length =
    name === 'left' && numbers.length === 1
      ? numbers[0]
      : (name === 'substr' || name === 'substring') && numbers.length === 2 && numbers[0] === 1
        ? numbers[1]
        : undefined;
  return length !== undefined && length >= 1 ? { of, exact: length === 1 } : null;
}

function isConcatenation(node: Node | undefined): boolean {
  return node !== undefined && 'A_Expr' in node;
}
