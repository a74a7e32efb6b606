import type { A_Const, Node } from '@pgsql/types';

/** UTF-8 byte offset in the parsed text; undefined if the parser reports none. */
export type Location = number | undefined;

export const ZERO: Node = Object.freeze({ A_Const: { ival: {} } });

export const TEMPORARY = 't';

/** Returns the text of a `String` node; empty for any other node. */
export function stringOf(node: Node | undefined): string {
  return node !== undefined && 'String' in node ? (node.String.sval ?? '') : '';
}

/** Returns the parts of a qualified name, without the `pg_catalog` that the grammar adds to some names. */
export function nameParts(nodes: readonly Node[] | undefined): readonly string[] {
  const parts = (nodes ?? []).map(stringOf);
  return parts.length === 2 && parts[0] === 'pg_catalog' ? parts.slice(1) : parts;
}

/** Returns the node's kind as shown in messages: `XmlExpr` becomes `xml expr`. */
export function kindOf(node: Node): string {
  const key = Object.keys(node)[0] ?? 'this';
  return key.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

const CONSTRUCTS: ReadonlyMap<string, string> = new Map([
  ['CurrentOfExpr', 'CURRENT OF'],
  ['JsonArrayAgg', 'JSON_ARRAYAGG'],
  ['JsonArrayConstructor', 'JSON_ARRAY'],
  ['JsonArrayQueryConstructor', 'JSON_ARRAY over a query'],
  ['JsonIsPredicate', 'IS JSON'],
  ['JsonObjectAgg', 'JSON_OBJECTAGG'],
  ['JsonObjectConstructor', 'JSON_OBJECT'],
  ['JsonParseExpr', 'JSON()'],
  ['JsonScalarExpr', 'JSON_SCALAR'],
  ['JsonSerializeExpr', 'JSON_SERIALIZE'],
  ['JsonTable', 'JSON_TABLE'],
  ['MergeSupportFunc', 'MERGE_ACTION'],
  ['MultiAssignRef', 'a list of targets'],
  ['NamedArgExpr', 'a named argument'],
  ['RangeTableFunc', 'XMLTABLE'],
  ['SetToDefault', 'DEFAULT'],
  ['XmlSerialize', 'XMLSERIALIZE'],
]);

export function constructOf(node: Node): string {
  if ('XmlExpr' in node) return (node.XmlExpr.op ?? '').replace(/^IS_(?=XML)/, '').replace('_', ' ');
  if ('JsonFuncExpr' in node) return (node.JsonFuncExpr.op ?? '').replace(/_OP$/, '');
  return CONSTRUCTS.get(Object.keys(node)[0] ?? '') ?? kindOf(node);
}

/** Constants whose value was read during binding, so that the plan depends on it. */
const READ = new WeakSet<A_Const>();

export function wasRead(constant: A_Const): boolean {
  return READ.has(constant);
}

/** Returns the value of an integer constant; null for any other node. Marks the constant as read. */
export function integerOf(node: Node | undefined): number | null {
  if (node === undefined || !('A_Const' in node)) return null;
  READ.add(node.A_Const);
  return node.A_Const.ival === undefined ? null : (node.A_Const.ival.ival ?? 0);
}

/** Returns the value of a string constant; null for any other node. Marks the constant as read. */
export function constantText(node: Node): string | null {
  if (!('A_Const' in node)) return null;
  READ.add(node.A_Const);
  return node.A_Const.sval === undefined ? null : (node.A_Const.sval.sval ?? '');
}

/**
 * Caches the positions of queries, subscripts and rows, which every enclosing level looks up. Caching all nodes would
 * cost more than it saves.
 */
const PLACES = new WeakMap<object, Location>();
const KEPT_PLACES = ['SelectStmt', 'limitOption', 'A_Indirection', 'RowExpr'];

/** Returns the smallest location of `node` and its descendants, since many nodes have no location themselves. */
export function firstLocation(node: unknown): Location {
  if (typeof node !== 'object' || node === null) return undefined;
  const isKept = KEPT_PLACES.some((kind) => kind in node);
  if (isKept && PLACES.has(node)) return PLACES.get(node);
  let least: Location;
  for (const [key, value] of Object.entries(node)) {
    const at: Location = key === 'location' && typeof value === 'number' ? value : firstLocation(value);
    if (at !== undefined && at >= 0 && (least === undefined || at < least)) least = at;
  }
  if (isKept) PLACES.set(node, least);
  return least;
}

/** Returns the conjuncts of a predicate, flattening nested ANDs. */
export function conjunctsOf(node: Node | undefined): readonly Node[] {
  if (node === undefined) return [];
  if ('BoolExpr' in node && node.BoolExpr.boolop === 'AND_EXPR')
    return (node.BoolExpr.args ?? []).flatMap(conjunctsOf);
  return equalPairs(node) ?? [node];
}

export function rowItems(node: Node | undefined): readonly Node[] | null {
  return node !== undefined && 'RowExpr' in node ? (node.RowExpr.args ?? []) : null;
}

/** Splits `(a, b) = (c, d)` into two equalities so that each can serve as a join key; null for other nodes. */
function equalPairs(node: Node): readonly Node[] | null {
  if (!('A_Expr' in node) || node.A_Expr.kind !== 'AEXPR_OP') return null;
  const { name, lexpr, rexpr, location } = node.A_Expr;
  const [left, right] = [rowItems(lexpr), rowItems(rexpr)];
  if (left === null || right === null || left.length !== right.length || left.length === 0) return null;
  if (nameParts(name).join('.') !== '=') return null;
  return left.map((l, i): Node => {
    const pair = { lexpr: l, rexpr: required(right[i]), location: location ?? -1 };
    return { A_Expr: { kind: 'AEXPR_OP', name: name ?? [], ...pair } };
  });
}

/** Returns `node`, or a NULL constant if it is undefined. */
export function required(node: Node | undefined): Node {
  return node ?? { A_Const: { isnull: true } };
}
