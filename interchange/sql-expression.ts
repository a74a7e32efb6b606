import type { Node } from '@pgsql/types';
import { LRUCache } from 'lru-cache';
import { FUNCTIONS, parse, QueryError, quoteIdentifier } from 'osl-compiler';

/** Thrown if an expression or another construct cannot be converted; the message says why. */
export class NoMapping extends Error {
  override readonly name = 'NoMapping';
}

/** First character of the placeholder names for references. Sources that contain it are rejected. */
const MARK = '\u0001';

/** Returns a placeholder name that contains the number `n` and cannot occur in any source. */
export function markedName(n: number): string {
  return `"${MARK}${n}"`;
}

/** Returns the number in a name made by `markedName`; null for any other name. */
export function markOf(name: string): number | null {
  if (!name.startsWith(MARK)) return null;
  return Number(name.slice(MARK.length));
}

export function refuseControlCharacters(text: string): void {
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text))
    throw new NoMapping('it holds a control character');
}

const LONGEST = 4000;

/** Result of a conversion: a value, or the reason why the conversion failed. */
export type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

export function attempt<T>(read: () => T): Attempt<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof NoMapping) return { ok: false, reason: error.message };
    // A chain of thousands of operators is parsed into equally deep nesting.
    if (error instanceof RangeError) return { ok: false, reason: 'it is nested too deeply' };
    throw error;
  }
}

const ONLY_TARGETS: ReadonlySet<string> = new Set(['targetList', 'limitOption', 'op']);

/**
 * Parses one SQL expression with the compiler's own parser.
 *
 * @throws NoMapping for anything else: a list, an alias, a clause, a second statement
 */
export function parseExpression(text: string): Node {
  if (text.length > LONGEST) throw new NoMapping(`it is longer than ${LONGEST} characters`);
  const statement = statementOf(`select ${text}\n`);
  if (!('SelectStmt' in statement)) throw new NoMapping('it is not an expression');
  const select = statement.SelectStmt;
  const extra = Object.entries(select).some(([key, value]) => !ONLY_TARGETS.has(key) && isSet(value));
  const [target, second] = select.targetList ?? [];
  if (extra || target === undefined || second !== undefined || !('ResTarget' in target))
    throw new NoMapping('it is more than one expression');
  const { val, name, indirection } = target.ResTarget;
  if (val === undefined || name !== undefined || indirection !== undefined)
    throw new NoMapping('it is more than one expression');
  return val;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
}

export function statementOf(text: string): Node {
  try {
    return parse(text).node;
  } catch (error) {
    if (error instanceof QueryError) throw new NoMapping(`it does not parse: ${error.message}`);
    throw error;
  }
}

/** Returns the parts of the table name if `text` is only `select * from schema.table`; otherwise null. */
export function tableOfQuery(text: string): readonly string[] | null {
  let statement: Node;
  try {
    statement = statementOf(text);
  } catch (error) {
    if (error instanceof NoMapping) return null;
    throw error;
  }
  if (!('SelectStmt' in statement)) return null;
  const select = statement.SelectStmt;
  const extra = Object.entries(select).some(
    ([key, value]) => !ONLY_TARGETS.has(key) && key !== 'fromClause' && isSet(value),
  );
  const [target, second] = select.targetList ?? [];
  const [from, join] = select.fromClause ?? [];
  if (extra || second !== undefined || join !== undefined) return null;
  if (target === undefined || !isStar(target) || from === undefined || !('RangeVar' in from)) return null;
  const { catalogname, schemaname, relname, inh } = from.RangeVar;
  if (inh !== true) return null;
  return [catalogname, schemaname, relname].filter((part) => part !== undefined);
}

function isStar(target: Node): boolean {
  if (!('ResTarget' in target) || target.ResTarget.name !== undefined) return false;
  const { val } = target.ResTarget;
  if (val === undefined || !('ColumnRef' in val)) return false;
  const [field, more] = val.ColumnRef.fields ?? [];
  return more === undefined && field !== undefined && 'A_Star' in field;
}

/** Returns the parts of the name if `node` is a plain name; otherwise null. */
export function nameOf(node: Node): readonly string[] | null {
  if (!('ColumnRef' in node)) return null;
  const parts = (node.ColumnRef.fields ?? []).map((f) => ('String' in f ? (f.String.sval ?? '') : null));
  return parts.every((p) => p !== null) ? parts : null;
}

const AGGREGATES: ReadonlySet<string> = new Set([
  ...FUNCTIONS.filter((f) => f.kind === 'aggregate' || f.kind === 'ordered_set').map((f) => f.name),
  'median',
]);

/** Returns the last part of a function's name, in lower case. */
export function functionName(call: Extract<Node, { FuncCall: unknown }>['FuncCall']): string {
  const last = call.funcname?.at(-1);
  return last !== undefined && 'String' in last ? (last.String.sval ?? '').toLowerCase() : '';
}

export function isAggregate(node: Node): node is Extract<Node, { FuncCall: unknown }> {
  return 'FuncCall' in node && AGGREGATES.has(functionName(node.FuncCall));
}

/** True if `value` contains an aggregate. The parser's nodes are plain objects and lists. */
export function hasAggregate(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if ('FuncCall' in value && isAggregate(value as Node)) return true; // a node has only one key
  return Object.values(value).some(hasAggregate);
}

/** Returns all names in `value`, each as a list of its parts. */
export function namesIn(value: unknown): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('ColumnRef' in value) {
    const name = nameOf(value as Node); // a node has only one key
    return name === null ? [] : [name];
  }
  return Object.values(value).flatMap(namesIn);
}

/** True if `value` contains a division. */
export function divides(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if ('A_Expr' in value) {
    const { name } = (value as Extract<Node, { A_Expr: unknown }>).A_Expr; // a node has only one key
    const op = name?.[0];
    if (op !== undefined && 'String' in op && op.String.sval === '/') return true;
  }
  return Object.values(value).some(divides);
}

/** Replaces names and calls. `column` receives the parts of a name and returns the SQL for the whole name. */
interface NamePrinter {
  readonly column: (parts: readonly string[]) => string;
  /** Returns SQL to replace a whole call; null to print the call as usual. */
  readonly call?: (node: Extract<Node, { FuncCall: unknown }>) => string | null;
}

type NodeBody<K extends string> = Extract<Node, Record<K, unknown>> extends Record<K, infer V> ? V : never;

/**
 * Prints an expression in the language of metrics and filters. Only a fixed set of forms is supported and each is
 * generated from scratch, so no byte of the source is copied unchecked. Functions are resolved later by the compiler's
 * binder.
 *
 * @throws NoMapping for any other form
 */
export function print(node: Node, names: NamePrinter): string {
  const p = (n: Node | undefined): string => {
    if (n === undefined) throw new NoMapping('a part of it is missing');
    return print(n, names);
  };
  /** Prints an operand, in parentheses if it is itself an operation. */
  const o = (n: Node | undefined): string => {
    const text = p(n);
    return n !== undefined && isOperation(n) ? `(${text})` : text;
  };
  const list = (nodes: readonly Node[] | undefined): string => (nodes ?? []).map(p).join(', ');

  if ('ColumnRef' in node) {
    const parts = nameOf(node);
    if (parts === null) throw new NoMapping('`*` stands for no column');
    return names.column(parts);
  }
  if ('A_Const' in node) return constant(node.A_Const);
  if ('A_Expr' in node) return operation(node.A_Expr, p, o, list);
  if ('BoolExpr' in node) {
    const args = (node.BoolExpr.args ?? []).map(o);
    if (node.BoolExpr.boolop === 'NOT_EXPR') return `not ${args[0] ?? ''}`;
    return args.join(node.BoolExpr.boolop === 'AND_EXPR' ? ' and ' : ' or ');
  }
  if ('NullTest' in node) {
    const test = node.NullTest.nulltesttype === 'IS_NULL' ? 'is null' : 'is not null';
    return `${o(node.NullTest.arg)} ${test}`;
  }
  if ('BooleanTest' in node) {
    const test = (node.BooleanTest.booltesttype ?? '').replaceAll('_', ' ').toLowerCase();
    return `${o(node.BooleanTest.arg)} ${test}`;
  }
  if ('CaseExpr' in node) return conditional(node.CaseExpr, p);
  if ('CoalesceExpr' in node) return `coalesce(${list(node.CoalesceExpr.args)})`;
  if ('MinMaxExpr' in node) {
    return `${node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest'}(${list(node.MinMaxExpr.args)})`;
  }
  if ('TypeCast' in node) return `cast(${p(node.TypeCast.arg)} as ${typeName(node.TypeCast.typeName)})`;
  if ('FuncCall' in node) return names.call?.(node) ?? call(node.FuncCall, p, list);
  if ('SQLValueFunction' in node) return present(node.SQLValueFunction);
  throw new NoMapping(`${kindOf(node)} has no place in a metric or a filter`);
}

function kindOf(node: Node): string {
  if ('SubLink' in node) return 'a subquery';
  return (Object.keys(node)[0] ?? 'this').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

function isOperation(node: Node): boolean {
  return 'A_Expr' in node || 'BoolExpr' in node || 'NullTest' in node || 'BooleanTest' in node;
}

export function textLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Joins one or more predicates with AND. */
export function conjunction(predicates: readonly string[]): string {
  return predicates.length === 1 ? (predicates[0] ?? '') : predicates.map((p) => `(${p})`).join(' and ');
}

function constant(c: NodeBody<'A_Const'>): string {
  if (c.isnull === true) return 'null';
  if (c.sval !== undefined) return textLiteral(c.sval.sval ?? '');
  if (c.ival !== undefined) return `${c.ival.ival ?? 0}`;
  if (c.fval !== undefined) return c.fval.fval ?? '';
  if (c.boolval !== undefined) return c.boolval.boolval === true ? 'true' : 'false';
  throw new NoMapping('a bit string has no place in a metric or a filter');
}

type PrintNode = (n: Node | undefined) => string;
type PrintList = (nodes: readonly Node[] | undefined) => string;

const OPERATOR = /^[-+*/<>=~!@#%^&|]+$/;

function operation(e: NodeBody<'A_Expr'>, p: PrintNode, o: PrintNode, list: PrintList): string {
  const names = e.name ?? [];
  const [first, second] = names;
  const op =
    first !== undefined && second === undefined && 'String' in first ? (first.String.sval ?? '') : '';
  const right = e.rexpr;
  const items = right !== undefined && 'List' in right ? right.List.items : undefined;
  switch (e.kind) {
    case 'AEXPR_OP':
      if (!OPERATOR.test(op))
        throw new NoMapping('an operator of a schema has no place in a metric or a filter');
      return e.lexpr === undefined ? `${op} ${o(right)}` : `${o(e.lexpr)} ${op} ${o(right)}`;
    case 'AEXPR_IN':
      return `${o(e.lexpr)} ${op === '=' ? 'in' : 'not in'} (${list(items)})`;
    case 'AEXPR_LIKE':
      return `${o(e.lexpr)} ${op === '~~' ? 'like' : 'not like'} ${o(right)}`;
    case 'AEXPR_ILIKE':
      return `${o(e.lexpr)} ${op === '~~*' ? 'ilike' : 'not ilike'} ${o(right)}`;
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN': {
      const [low, high] = items ?? [];
      const word = e.kind === 'AEXPR_BETWEEN' ? 'between' : 'not between';
      return `${o(e.lexpr)} ${word} ${o(low)} and ${o(high)}`;
    }
    case 'AEXPR_DISTINCT':
      return `${o(e.lexpr)} is distinct from ${o(right)}`;
    case 'AEXPR_NOT_DISTINCT':
      return `${o(e.lexpr)} is not distinct from ${o(right)}`;
    case 'AEXPR_NULLIF':
      return `nullif(${p(e.lexpr)}, ${p(right)})`;
    default:
      throw new NoMapping('a form of comparison in it has no place in a metric or a filter');
  }
}

function conditional(c: NodeBody<'CaseExpr'>, p: PrintNode): string {
  const subject = c.arg === undefined ? '' : ` ${p(c.arg)}`;
  const arms = (c.args ?? []).map((arm) => {
    if (!('CaseWhen' in arm)) throw new NoMapping('a part of it is missing');
    return ` when ${p(arm.CaseWhen.expr)} then ${p(arm.CaseWhen.result)}`;
  });
  const otherwise = c.defresult === undefined ? '' : ` else ${p(c.defresult)}`;
  return `case${subject}${arms.join('')}${otherwise} end`;
}

const TYPE_WORD = /^[a-z][a-z0-9_ ]*$/;

function typeName(t: NodeBody<'TypeCast'>['typeName']): string {
  const parts = (t?.names ?? []).map((n) => ('String' in n ? (n.String.sval ?? '') : ''));
  const [word, more] = parts[0] === 'pg_catalog' ? parts.slice(1) : parts;
  if (word === undefined || more !== undefined || !TYPE_WORD.test(word))
    throw new NoMapping('its type is not known');
  const modifiers = (t?.typmods ?? []).map((m) => {
    if ('A_Const' in m && m.A_Const.ival !== undefined) return `${m.A_Const.ival.ival ?? 0}`;
    throw new NoMapping('a modifier of its type is not a number');
  });
  if (word === 'interval' && modifiers.length > 0)
    throw new NoMapping('an interval of some fields has no place in it');
  const bounds = '[]'.repeat(t?.arrayBounds?.length ?? 0);
  return `${word}${modifiers.length === 0 ? '' : `(${modifiers.join(', ')})`}${bounds}`;
}

function call(f: NodeBody<'FuncCall'>, p: PrintNode, list: PrintList): string {
  const name = functionName(f);
  const parts = f.funcname ?? [];
  const own = parts[0] !== undefined && 'String' in parts[0] && parts[0].String.sval === 'pg_catalog';
  if (parts.length > (own ? 2 : 1))
    throw new NoMapping('a function of a schema has no place in a metric or a filter');
  if (f.over !== undefined) throw new NoMapping('a window has no place in a metric or a filter');
  if (f.func_variadic === true) throw new NoMapping('VARIADIC has no place in a metric or a filter');
  const filter = f.agg_filter === undefined ? '' : ` filter (where ${p(f.agg_filter)})`;
  const args = f.args ?? [];
  if (name === 'extract' && own && args.length === 2) {
    const [field, value] = args;
    return `extract(${p(field).replaceAll("'", '')} from ${p(value)})`;
  }
  if (name === 'median' && args.length === 1 && f.agg_distinct !== true)
    return `percentile_cont(0.5) within group (order by ${p(args[0])})${filter}`;
  const order = (f.agg_order ?? []).map((s) => sortKey(s, p)).join(', ');
  if (f.agg_within_group === true)
    return `${identifier(name)}(${list(args)}) within group (order by ${order})${filter}`;
  const inner = f.agg_star === true ? '*' : `${f.agg_distinct === true ? 'distinct ' : ''}${list(args)}`;
  return `${identifier(name)}(${inner}${order === '' ? '' : ` order by ${order}`})${filter}`;
}

function sortKey(node: Node, p: PrintNode): string {
  if (!('SortBy' in node)) throw new NoMapping('a part of it is missing');
  const { sortby_dir, sortby_nulls, node: by } = node.SortBy;
  if (sortby_dir === 'SORTBY_USING') throw new NoMapping('ORDER BY … USING has no place in a metric');
  const direction = sortby_dir === 'SORTBY_DESC' ? ' desc' : '';
  const nulls =
    sortby_nulls === 'SORTBY_NULLS_FIRST'
      ? ' nulls first'
      : sortby_nulls === 'SORTBY_NULLS_LAST'
        ? ' nulls last'
        : '';
  return `${p(by)}${direction}${nulls}`;
}

function present(f: NodeBody<'SQLValueFunction'>): string {
  if (f.op === 'SVFOP_CURRENT_DATE') return 'current_date';
  if (f.op === 'SVFOP_CURRENT_TIMESTAMP') return 'current_timestamp';
  throw new NoMapping('it asks for something of the session');
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;
/** Cached results of `isName`: true if a name needs no quotes. Bounded, because processes may run for a long time. */
const known = new LRUCache<string, boolean>({ max: 10_000 });

/** Writes `name` as an SQL identifier, quoted unless the parser would read it unchanged. */
export function identifier(name: string): string {
  return PLAIN.test(name) && readsAsName(name) ? name : quoteIdentifier(name);
}

function readsAsName(name: string): boolean {
  const before = known.get(name);
  if (before !== undefined) return before;
  const plain = isName(name);
  known.set(name, plain);
  return plain;
}

function isName(name: string): boolean {
  try {
    const { node } = parse(`select ${name} from ${name}`);
    if (!('SelectStmt' in node)) return false;
    const target = node.SelectStmt.targetList?.[0];
    const value = target !== undefined && 'ResTarget' in target ? target.ResTarget.val : undefined;
    return value !== undefined && nameOf(value)?.join('.') === name;
  } catch (error) {
    if (error instanceof QueryError) return false;
    throw error;
  }
}
