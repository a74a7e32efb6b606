import type { FuncCall, Node, SelectStmt } from '@pgsql/types';
import { parse } from 'osl-compiler';

/** Names in a list of nodes; `*` for a star. */
export function namesOf(nodes: readonly Node[] | undefined): readonly string[] {
  return (nodes ?? []).map((node) => ('String' in node ? (node.String.sval ?? '') : '*'));
}

export interface CalledName {
  /** Null for pg_catalog, and for a name without a schema. */
  readonly schema: string | null;
  readonly name: string;
}

export function calledName({ funcname }: FuncCall): CalledName {
  const names = namesOf(funcname);
  const schema = names.length > 1 ? (names.at(-2) ?? null) : null;
  return { schema: schema === 'pg_catalog' ? null : schema, name: names.at(-1) ?? '' };
}

/** Operands of a top-level AND or OR, flattened; the condition itself if it has no such operator. */
export function partsOf(node: Node, operator: 'AND_EXPR' | 'OR_EXPR'): readonly Node[] {
  if (!('BoolExpr' in node) || node.BoolExpr.boolop !== operator) return [node];
  return (node.BoolExpr.args ?? []).flatMap((part) => partsOf(part, operator));
}

/** The first value of a select list; null if the list is empty. */
export function firstTarget({ targetList }: SelectStmt): Node | null {
  const [target] = targetList ?? [];
  return target !== undefined && 'ResTarget' in target ? (target.ResTarget.val ?? null) : null;
}

/** The values that a call of array_agg collects; null for any other node, and with FILTER or OVER. */
export function arrayAggOf(node: Node | null): Node | null {
  if (node === null || !('FuncCall' in node)) return null;
  const { args, agg_filter, over } = node.FuncCall;
  const { schema, name } = calledName(node.FuncCall);
  const isPlain = schema === null && agg_filter === undefined && over === undefined;
  return name === 'array_agg' && isPlain ? (args?.[0] ?? null) : null;
}

/** True for DISTINCT ON, which drops rows; the parser writes DISTINCT as an empty node. */
export function isDistinctOn({ distinctClause = [] }: SelectStmt): boolean {
  return distinctClause.some((node) => Object.keys(node).length > 0);
}

/** Parses an expression, such as a policy's condition; null if there is none. @throws QueryError */
export function expressionNode(text: string): Node | null {
  const { node } = parse(`select ${text}`);
  return 'SelectStmt' in node ? firstTarget(node.SelectStmt) : null;
}

/** Text of a literal, also inside casts; null for NULL and for any other node. */
export function literalOf(node: Node | undefined): string | null {
  if (node === undefined) return null;
  if ('TypeCast' in node) return literalOf(node.TypeCast.arg);
  if (!('A_Const' in node)) return null;
  const { sval, ival, fval, boolval } = node.A_Const;
  if (sval !== undefined) return sval.sval ?? '';
  if (ival !== undefined) return String(ival.ival ?? 0);
  if (boolval !== undefined) return String(boolval.boolval === true);
  return fval?.fval ?? null;
}
