import type { Node } from '@pgsql/types';
import { identifier } from 'osl-compiler/sql-text';
import { namesOf } from '../nodes.js';
import { type FromTable, type NameScope, operatorOf, resolve, Untranslatable } from './scope.js';

/**
 * Writes an expression over the columns of `range` in the syntax of policy files. The compiler checks later whether
 * policy files have its functions and operators.
 *
 * @throws Untranslatable for columns of other tables and for values of the caller
 */
export function rowExpression(node: Node, scope: NameScope, range: FromTable): string {
  const text = (inner: Node | undefined): string => {
    if (inner === undefined) throw new Untranslatable('an expression that is cut off');
    return rowExpression(inner, scope, range);
  };
  const list = (nodes: readonly Node[] | undefined): string =>
    (nodes ?? []).map((one) => text(one)).join(', ');
  const found = resolve(node, scope);
  if (found !== null && 'node' in found) return rowExpression(found.node, found.scope, range);
  if (found !== null) {
    const column = found.range === range ? range.table.columns.get(found.column) : undefined;
    if (column !== undefined) return identifier(column);
    const whose = found.range === range ? 'which is not part of the model' : 'a column of another table';
    throw new Untranslatable(`\`${found.range.alias}.${found.column}\`, ${whose}`);
  }
  if ('A_Const' in node) return constantText(node);
  if ('TypeCast' in node) return `${text(node.TypeCast.arg)}::${typeText(node)}`;
  if ('A_Expr' in node) return operatorText(node, text);
  if ('BoolExpr' in node) {
    const { boolop, args } = node.BoolExpr;
    if (boolop === 'NOT_EXPR') return `(not ${text(args?.[0])})`;
    return `(${(args ?? []).map((one) => text(one)).join(boolop === 'AND_EXPR' ? ' and ' : ' or ')})`;
  }
  if ('NullTest' in node)
    return `(${text(node.NullTest.arg)} is ${node.NullTest.nulltesttype === 'IS_NULL' ? '' : 'not '}null)`;
  if ('BooleanTest' in node)
    return `(${text(node.BooleanTest.arg)} ${(node.BooleanTest.booltesttype ?? '').replaceAll('_', ' ').toLowerCase()})`;
  if ('CoalesceExpr' in node) return `coalesce(${list(node.CoalesceExpr.args)})`;
  if ('MinMaxExpr' in node)
    return `${node.MinMaxExpr.op === 'IS_GREATEST' ? 'greatest' : 'least'}(${list(node.MinMaxExpr.args)})`;
  if ('CaseExpr' in node) return caseText(node, text);
  if ('A_ArrayExpr' in node) return `array[${list(node.A_ArrayExpr.elements)}]`;
  if ('SQLValueFunction' in node) return clockText(node.SQLValueFunction.op ?? '');
  if ('FuncCall' in node) {
    const names = namesOf(node.FuncCall.funcname).filter((name) => name !== 'pg_catalog');
    if (names.length !== 1) throw new Untranslatable(`the function ${names.join('.')}`);
    return `${identifier(names[0] ?? '')}(${list(node.FuncCall.args)})`;
  }
  if ('List' in node) return `(${list(node.List.items)})`;
  throw new Untranslatable(`an expression of the kind ${Object.keys(node)[0] ?? 'unknown'}`);
}

function constantText(node: Node & { A_Const: object }): string {
  const { sval, ival, fval, boolval, isnull } = node.A_Const as {
    sval?: { sval?: string };
    ival?: { ival?: number };
    fval?: { fval?: string };
    boolval?: { boolval?: boolean };
    isnull?: boolean;
  };
  if (isnull === true) return 'null';
  if (sval !== undefined) return `'${(sval.sval ?? '').replaceAll("'", "''")}'`;
  if (ival !== undefined) return String(ival.ival ?? 0);
  if (fval !== undefined) return fval.fval ?? '0';
  if (boolval !== undefined) return String(boolval.boolval === true);
  throw new Untranslatable('a bit string');
}

function typeText(node: Node): string {
  const type = 'TypeCast' in node ? node.TypeCast.typeName : undefined;
  const names = namesOf(type?.names).filter((name) => name !== 'pg_catalog');
  if (names.length !== 1) throw new Untranslatable(`the type ${names.join('.')}`);
  const limits = (type?.typmods ?? []).map((limit) => ('A_Const' in limit ? constantText(limit) : ''));
  const modifiers = limits.length === 0 ? '' : `(${limits.join(', ')})`;
  return `${names[0] ?? ''}${modifiers}${(type?.arrayBounds ?? []).length > 0 ? '[]' : ''}`;
}

function operatorText(node: Node & { A_Expr: object }, text: (inner: Node | undefined) => string): string {
  const { kind, name, lexpr, rexpr } = (node as Extract<Node, { A_Expr: unknown }>).A_Expr;
  const operator = operatorOf(name);
  switch (kind) {
    case 'AEXPR_OP':
      return lexpr === undefined
        ? `(${operator}${text(rexpr)})`
        : `(${text(lexpr)} ${operator} ${text(rexpr)})`;
    case 'AEXPR_OP_ANY':
      return `(${text(lexpr)} ${operator} any (${text(rexpr)}))`;
    case 'AEXPR_OP_ALL':
      return `(${text(lexpr)} ${operator} all (${text(rexpr)}))`;
    case 'AEXPR_IN':
      return `(${text(lexpr)} ${operator === '<>' ? 'not ' : ''}in ${text(rexpr)})`;
    case 'AEXPR_DISTINCT':
      return `(${text(lexpr)} is distinct from ${text(rexpr)})`;
    case 'AEXPR_NOT_DISTINCT':
      return `(${text(lexpr)} is not distinct from ${text(rexpr)})`;
    case 'AEXPR_NULLIF':
      return `nullif(${text(lexpr)}, ${text(rexpr)})`;
    case 'AEXPR_LIKE':
      return `(${text(lexpr)} ${operator === '!~~' ? 'not ' : ''}like ${text(rexpr)})`;
    case 'AEXPR_ILIKE':
      return `(${text(lexpr)} ${operator === '!~~*' ? 'not ' : ''}ilike ${text(rexpr)})`;
    case 'AEXPR_BETWEEN':
    case 'AEXPR_NOT_BETWEEN': {
      const [low, high] = rexpr !== undefined && 'List' in rexpr ? (rexpr.List.items ?? []) : [];
      return `(${text(lexpr)} ${kind === 'AEXPR_BETWEEN' ? '' : 'not '}between ${text(low)} and ${text(high)})`;
    }
    default:
      throw new Untranslatable(`the operator ${operator}`);
  }
}

function caseText(node: Node, text: (inner: Node | undefined) => string): string {
  if (!('CaseExpr' in node)) throw new Untranslatable('no CASE');
  const { arg, args = [], defresult } = node.CaseExpr;
  const branches = args.map((branch) =>
    'CaseWhen' in branch ? `when ${text(branch.CaseWhen.expr)} then ${text(branch.CaseWhen.result)}` : '',
  );
  const otherwise = defresult === undefined ? '' : ` else ${text(defresult)}`;
  return `case ${arg === undefined ? '' : `${text(arg)} `}${branches.join(' ')}${otherwise} end`;
}

const CLOCKS: ReadonlyMap<string, string> = new Map([
  ['SVFOP_CURRENT_DATE', 'current_date'],
  ['SVFOP_CURRENT_TIMESTAMP', 'current_timestamp'],
  ['SVFOP_LOCALTIMESTAMP', 'localtimestamp'],
]);

function clockText(op: string): string {
  const clock = CLOCKS.get(op);
  if (clock === undefined) throw new Untranslatable('the name of a role, catalog or schema');
  return clock;
}
