import type { Node, SelectStmt } from '@pgsql/types';
import { columnRef, selectOf } from '../../plan/nodes.js';
import type { DerivedTable, Expr, Query, SetOperation, SortKey } from '../../plan/plan.js';
import { columnsOf } from '../../plan/walk.js';
import type { TypeName } from '../../types/types.js';
import { integerOf, placeOf, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { sortKey } from '../expressions/call.js';
import { type BoundExpression, coerce, commonType, requireComparable } from '../expressions/coerce.js';
import type { BoundColumn, Scope } from '../scope.js';
import { type BoundQuery, bindLimit, bindQuery, undecided } from './query.js';

/** Binds UNION, INTERSECT or EXCEPT; columns are converted to the common type of both sides. */
export function bindSetOperation(stmt: SelectStmt, ctx: BindContext, scope: Scope): BoundQuery {
  ctx.requireFeature('set_operations', placeOf(stmt.rarg));
  if (stmt.larg === undefined || stmt.rarg === undefined)
    throw ctx.unsupported('this set operation', undefined);
  const left = bindQuery(stmt.larg, ctx, scope);
  const right = bindQuery(stmt.rarg, ctx, scope);
  if (left.columns.length !== right.columns.length) {
    throw ctx.error(
      'syntax',
      {
        detail: `the sides of a set operation have ${left.columns.length} and ${right.columns.length} columns, not the same number`,
      },
      placeOf(stmt.rarg),
    );
  }
  const [lefts, rights] = [operandColumns(left), operandColumns(right)];
  const columns = left.columns.map((c, i) => {
    const type = commonType(
      [lefts[i] ?? undecided, rights[i] ?? undecided],
      ctx,
      placeOf(stmt.rarg?.targetList?.[i]),
    );
    const sealed = [c, right.columns[i]].every((side) => side?.sealed === true && side.type === type);
    return { name: c.name, type, sealed };
  });
  const types = columns.map((c) => c.type);
  if (stmt.op !== 'SETOP_UNION' || stmt.all !== true)
    for (const [i, type] of types.entries())
      requireComparable(type, placeOf(stmt.rarg?.targetList?.[i]), ctx);
  const query: SetOperation = Object.freeze({
    kind: 'set_operation',
    with: Object.freeze([]),
    operator: stmt.op === 'SETOP_INTERSECT' ? 'intersect' : stmt.op === 'SETOP_EXCEPT' ? 'except' : 'union',
    all: stmt.all === true,
    left: retypeOutputs(left.query, types, ctx),
    right: retypeOutputs(right.query, types, ctx),
    columns: Object.freeze(columns.map(({ name, type }) => Object.freeze({ name, type }))),
    orderBy: Object.freeze((stmt.sortClause ?? []).map((s) => ordinalKey(s, columns, ctx))),
    ...bindLimit(stmt, ctx, scope),
  });
  return { query, columns };
}

/** Columns of an operand for type resolution. A bare NULL was bound as text but is still undecided. */
function operandColumns({ query, columns }: BoundQuery): readonly BoundExpression[] {
  return columns.map((c, i) => {
    const expr = query.kind === 'select' ? query.outputs[i]?.expr : undefined;
    return expr?.kind === 'null' && expr.type === 'text'
      ? undecided
      : Object.freeze({ kind: 'null', type: c.type });
  });
}

export function retypeOutputs(query: Query, types: readonly TypeName[], ctx: BindContext): Query {
  const columns = columnsOf(query);
  if (columns.every((c, i) => c.type === types[i])) return query;
  const inType = (expr: Expr, i: number): Expr => {
    const type = types[i] ?? expr.type;
    return expr.kind === 'null' ? Object.freeze({ ...expr, type }) : coerce(expr, type, ctx);
  };
  if (query.kind === 'select' && !query.distinct && query.orderBy.length === 0) {
    const outputs = query.outputs.map((o, i) => Object.freeze({ ...o, expr: inType(o.expr, i) }));
    return Object.freeze({ ...query, outputs: Object.freeze(outputs) });
  }
  // Values used by DISTINCT or ORDER BY must keep their type, so convert in an enclosing query.
  const from: DerivedTable = Object.freeze({ kind: 'derived', id: ctx.nextSource(), query });
  const outputs = columns.map(({ name, type }, i) => {
    const expr: Expr = columnRef(from.id, `c${i + 1}`, type);
    return Object.freeze({ name, expr: inType(expr, i) });
  });
  return selectOf({ from, outputs: Object.freeze(outputs) });
}

/** ORDER BY of a set operation accepts a position or an output name. */
function ordinalKey(node: Node, columns: readonly BoundColumn[], ctx: BindContext): SortKey {
  const sort = 'SortBy' in node ? node.SortBy : {};
  const position = integerOf(sort.node);
  const name =
    sort.node !== undefined && 'ColumnRef' in sort.node ? stringOf(sort.node.ColumnRef.fields?.[0]) : null;
  const by = position ?? columns.findIndex((c) => c.name === name) + 1;
  if (by < 1 || by > columns.length) {
    throw ctx.unsupported(
      'an expression in ORDER BY of a set operation',
      placeOf(sort),
      'order by a name or a position of its result',
    );
  }
  requireComparable(columns[by - 1]?.type ?? 'text', placeOf(sort), ctx);
  return sortKey(sort, by, ctx);
}
