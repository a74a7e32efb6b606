import type { Node } from '@pgsql/types';
import { FUNCTIONS, parse, QueryError } from 'osl-compiler';

/** Thrown if a manifest cannot express an expression; the message says why. */
export class NoMapping extends Error {
  override readonly name = 'NoMapping';
}

/** Delimits the names that stand in for references. Sources that contain it are rejected. */
const MARK = '\u0001';

/** A name containing the number `n` that cannot occur in any source. */
export function markedName(n: number): string {
  return `"${MARK}${n}"`;
}

/** The number in a name made by `markedName`; null for any other name. */
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
  if (!('SelectStmt' in statement)) throw new NoMapping('it is no expression');
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

/** Parts of the table name if `text` is just `select * from schema.table`; otherwise null. */
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

/** Parts of the name if `node` is a plain name; otherwise null. */
export function nameOf(node: Node): readonly string[] | null {
  if (!('ColumnRef' in node)) return null;
  const parts = (node.ColumnRef.fields ?? []).map((f) => ('String' in f ? (f.String.sval ?? '') : null));
  return parts.every((p) => p !== null) ? parts : null;
}

const AGGREGATES: ReadonlySet<string> = new Set([
  ...FUNCTIONS.filter((f) => f.kind === 'aggregate' || f.kind === 'ordered_set').map((f) => f.name),
  'median',
]);

/** Last part of a function's name, in lower case. */
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

/** All names in `value`, each as a list of its parts. */
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
