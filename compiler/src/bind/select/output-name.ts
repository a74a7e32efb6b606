import type { A_Indirection, Node, SubLink } from '@pgsql/types';
import { plainName } from '../../catalog/full-name.js';
import { constantText, nameParts, required, stringOf } from '../ast.js';
import { STANDARD_JSON_NAMES } from '../expressions/standard-json.js';

/** The name that Postgres would give the column. */
export function defaultName(node: Node): string {
  if ('ColumnRef' in node) return stringOf(node.ColumnRef.fields?.at(-1));
  if ('FuncCall' in node) {
    const name = nameParts(node.FuncCall.funcname).at(-1) ?? '?column?';
    const arg = node.FuncCall.args?.[0];
    return name === 'measure' && arg !== undefined ? measureName(arg) : name;
  }
  if ('TypeCast' in node) {
    const inner = node.TypeCast.arg === undefined ? '?column?' : defaultName(node.TypeCast.arg);
    return inner === '?column?' ? (nameParts(node.TypeCast.typeName?.names).at(-1) ?? inner) : inner;
  }
  if ('A_Const' in node && node.A_Const.boolval !== undefined) return 'bool';
  if ('CaseExpr' in node) {
    const last = node.CaseExpr.defresult === undefined ? 'case' : defaultName(node.CaseExpr.defresult);
    return last === '?column?' ? 'case' : last;
  }
  if ('CoalesceExpr' in node) return 'coalesce';
  if ('GroupingFunc' in node) return 'grouping';
  if ('CollateClause' in node) return defaultName(required(node.CollateClause.arg));
  if ('MinMaxExpr' in node) return node.MinMaxExpr.op === 'IS_LEAST' ? 'least' : 'greatest';
  if ('A_Expr' in node && node.A_Expr.kind === 'AEXPR_NULLIF') return 'nullif';
  if ('A_ArrayExpr' in node) return 'array';
  if ('RowExpr' in node) return 'row';
  if ('A_Indirection' in node) return fieldName(node.A_Indirection);
  if ('SQLValueFunction' in node) return (node.SQLValueFunction.op ?? '').replace('SVFOP_', '').toLowerCase();
  if ('SubLink' in node) return subqueryName(node.SubLink);
  return STANDARD_JSON_NAMES.get(Object.keys(node)[0] ?? '') ?? '?column?';
}

/** The last field that is named, else the name of what the subscripts are of. */
function fieldName({ arg, indirection = [] }: A_Indirection): string {
  const field = indirection.findLast((i) => 'String' in i);
  if (field !== undefined) return stringOf(field);
  return arg === undefined ? '?column?' : defaultName(arg);
}

/** Of scalar subqueries, which are named after the one in them. */
const NAMES = new WeakMap<SubLink, string>();

function subqueryName(node: SubLink): string {
  const name = NAMES.get(node) ?? nameOfSubquery(node);
  NAMES.set(node, name);
  return name;
}

function nameOfSubquery(node: SubLink): string {
  if (node.subLinkType === 'EXISTS_SUBLINK') return 'exists';
  if (node.subLinkType === 'ARRAY_SUBLINK') return 'array';
  const select =
    node.subselect !== undefined && 'SelectStmt' in node.subselect ? node.subselect.SelectStmt : {};
  const first = select.targetList?.[0];
  if (node.subLinkType !== 'EXPR_SUBLINK' || first === undefined || !('ResTarget' in first))
    return '?column?';
  return first.ResTarget.name ?? defaultName(required(first.ResTarget.val));
}

function measureName(arg: Node): string {
  if ('ColumnRef' in arg) return stringOf(arg.ColumnRef.fields?.at(-1));
  return plainName('metrics', constantText(arg) ?? 'measure');
}
