import type { Node } from '@pgsql/types';

/** The text of a `String` node; empty for any other. */
export function stringOf(node: Node | undefined): string {
  return node !== undefined && 'String' in node ? (node.String.sval ?? '') : '';
}

/** The parts of a qualified name, without the `pg_catalog` that the grammar itself puts in front of some. */
export function nameParts(nodes: readonly Node[] | undefined): readonly string[] {
  const parts = (nodes ?? []).map(stringOf);
  return parts.length === 2 && parts[0] === 'pg_catalog' ? parts.slice(1) : parts;
}

/** The grammar's own name of a node, for messages: `XmlExpr` becomes `xml expr`. */
export function kindOf(node: Node): string {
  const key = Object.keys(node)[0] ?? 'this';
  return key.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

/** The integer that a constant node holds, or null. */
export function integerOf(node: Node | undefined): number | null {
  if (node === undefined || !('A_Const' in node) || node.A_Const.ival === undefined) return null;
  return node.A_Const.ival.ival ?? 0;
}
