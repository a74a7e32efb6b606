import { requireFunction } from '../../functions/resolve.js';
import { callNode } from '../../plan/nodes.js';
import type { CommonTable, Expr, FromItem, Query, Select, SortKey } from '../../plan/plan.js';
import { columnRefs } from '../../plan/select-nodes.js';
import { columnsOf } from '../../plan/walk.js';
import type { BindContext } from '../context.js';
import { coerce, infix } from '../expressions/operands.js';

const NONE = Object.freeze([]);

export function unnamedOutputs(exprs: readonly Expr[]): Select['outputs'] {
  return Object.freeze(exprs.map((expr, i) => Object.freeze({ name: `c${i + 1}`, expr })));
}

export interface QueryRows {
  readonly item: FromItem;
  readonly columns: readonly Expr[];
}

export function derivedRows(query: Query, ctx: BindContext): QueryRows {
  const id = ctx.nextSource();
  return { item: Object.freeze({ kind: 'derived', id, query }), columns: columnRefs(id, query) };
}

export function materialized(query: Query, ctx: BindContext): CommonTable {
  return Object.freeze({ id: ctx.nextTable(), query, materialized: true });
}

export function tableRows(table: CommonTable, ctx: BindContext): QueryRows {
  const id = ctx.nextSource();
  const item = Object.freeze({ kind: 'cte', id, table: table.id } as const);
  return { item, columns: columnRefs(id, table.query) };
}

export function joinedOn(left: FromItem, right: FromItem, on: readonly Expr[]): FromItem {
  return Object.freeze({
    kind: 'join',
    sealed: false,
    made: true,
    type: 'inner',
    left,
    right,
    on: Object.freeze([...on]),
  });
}

export function allRowsOf(queries: readonly [Query, ...Query[]]): Query {
  const [first, ...rest] = queries;
  return rest.reduce(
    (left, right) =>
      Object.freeze({
        kind: 'set_operation',
        with: NONE,
        operator: 'union',
        all: true,
        left,
        right,
        columns: Object.freeze(columnsOf(first).map((c) => Object.freeze(c))),
        orderBy: NONE,
        limit: null,
        offset: null,
        withTies: false,
      }),
    first,
  );
}

function overload(name: string, args: readonly Expr[], ctx: BindContext) {
  const types = args.map((a) => a.type);
  const { definition, argumentTypes, result } = requireFunction(name, types);
  const converted = args.map((a, i) => coerce(a, argumentTypes[i] ?? a.type, ctx));
  return { definition, converted, result };
}

export function call(name: string, args: readonly Expr[], ctx: BindContext): Expr {
  const { definition, converted, result } = overload(name, args, ctx);
  return callNode(definition, converted, result);
}

export function aggregate(name: string, args: readonly Expr[], filter: Expr | null, ctx: BindContext): Expr {
  const { definition, converted, result } = overload(name, args, ctx);
  return Object.freeze({
    kind: 'aggregate',
    definition,
    args: Object.freeze(converted),
    distinct: false,
    filter,
    orderBy: NONE,
    metric: null,
    type: result,
  });
}

export function operation(name: string, left: Expr, right: Expr, ctx: BindContext): Expr {
  return infix(name, left, right, undefined, ctx);
}

export function rowNumber(partitionBy: readonly Expr[], orderBy: readonly SortKey[]): Expr {
  const { definition, result } = requireFunction('row_number', []);
  return Object.freeze({
    kind: 'window',
    definition,
    args: NONE,
    filter: null,
    partitionBy: Object.freeze([...partitionBy]),
    orderBy: Object.freeze([...orderBy]),
    frame: null,
    type: result,
  });
}

export function structural(text: string): Expr {
  return Object.freeze({ kind: 'structural', text, type: 'text' });
}
