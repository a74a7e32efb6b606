import { InternalError } from '../../errors/errors.js';
import { columnRef, FALSE, selectOf, TRUE } from '../../plan/nodes.js';
import type { Aggregate, ColumnRef, CommonTable, Expr, Query, Select } from '../../plan/plan.js';
import { someExpr } from '../../plan/walk.js';
import type { BindContext } from '../context.js';
import { aggregate, allRowsOf, materialized, tableRows, unnamedOutputs } from './build.js';
import { type ConversionUse, conversionBranch } from './conversions.js';
import type { Branch, JoinedRows } from './joined-rows.js';
import { type PeriodMetricUse, periodBranch } from './other-periods.js';
import { filterAggregates } from './presence.js';

export interface OtherRows {
  readonly spanned: readonly PeriodMetricUse[];
  readonly converted: readonly ConversionUse[];
}

/**
 * Unions the rows of FROM and WHERE with the rows that each metric in `others` needs. Flags mark the origin of each
 * row, and each aggregate filters by its flag. Groups are those of the statement.
 *
 * @throws QueryError E1001
 */
export function overOtherRows(
  rows: JoinedRows,
  { spanned, converted }: OtherRows,
  select: Select,
  ctx: BindContext,
): Select {
  const aggregates: Aggregate[] = [];
  rows.clauses((call) => {
    aggregates.push(call);
    return call;
  });
  const branches: readonly Branch[] = [
    ...spanned.map((s) => periodBranch(s, rows, aggregates, select, ctx)),
    ...converted.map((c) => conversionBranch(c, rows, ctx)),
  ];
  const foreign = (call: Aggregate): boolean => branches.some((b) => b.has(call));
  for (const call of aggregates) if (!foreign(call)) rows.inside(call);
  const inner = rows.query();
  const column = (position: number, type: Expr['type']): ColumnRef =>
    columnRef(rows.id, `c${position}`, type);
  const own = column(inner.outputs.length + 1, 'bool');
  const clauses = rows.clauses((call) => {
    const mine = branches.findIndex((b) => b.has(call));
    const branch = branches[mine];
    if (branch === undefined) return filterAggregates(rows.inside(call), own);
    const before = branches.slice(0, mine).reduce((n, b) => n + 1 + b.inputs.length, 0);
    const flag = inner.outputs.length + 2 + before;
    const columns = branch.inputs.map((x, i) => column(flag + 1 + i, x.type));
    return branch.value(call, columns, column(flag, 'bool'));
  });
  const present = branches.every((b) => b.withinGroups) ? [] : [aggregate('bool_or', [own], null, ctx)];
  const having = Object.freeze([...present, ...clauses.having]);
  return rows.over({ ...clauses, having }, unionOf(inner, branches, rows, select, ctx));
}

function unionOf(
  inner: Select,
  branches: readonly Branch[],
  rows: JoinedRows,
  select: Select,
  ctx: BindContext,
): Query {
  const all = materialized(inner, ctx);
  const own = tableRows(all, ctx);
  const nothing = branches.flatMap((b) => [FALSE, ...b.inputs.map(nullOf)]);
  const main = selectOf({ from: own.item, outputs: unnamedOutputs([...own.columns, TRUE, ...nothing]) });
  const keys = new Set(
    select.groupBy.flatMap((k) => {
      const column = someExpr(k, (x) => x.kind === 'column') ? rows.columnOf(k) : null;
      return column === null ? [] : [column.name];
    }),
  );
  const parts = branches.map((b, i) => branchQuery(b, i, branches, inner, all, keys));
  const tables = Object.freeze([all, ...parts.flatMap((p) => p.tables)]);
  const union = allRowsOf([main, ...parts.map((p) => p.query)]);
  if (union.kind !== 'set_operation') throw new InternalError('a branch is one of several');
  return Object.freeze({ ...union, with: tables });
}

function branchQuery(
  branch: Branch,
  index: number,
  branches: readonly Branch[],
  inner: Select,
  all: CommonTable,
  keys: ReadonlySet<string>,
): { readonly query: Query; readonly tables: readonly CommonTable[] } {
  const made = branch.rows(all, keys);
  const outputs = [
    ...inner.outputs.map(({ expr }, i): Expr => made.keys.get(`c${i + 1}`) ?? nullOf(expr)),
    FALSE,
    ...branches.flatMap((b, i) => (i === index ? [TRUE, ...made.inputs] : [FALSE, ...b.inputs.map(nullOf)])),
  ];
  const where = Object.freeze([...made.where]);
  return {
    query: selectOf({ from: made.from, where, outputs: unnamedOutputs(outputs) }),
    tables: made.tables,
  };
}

function nullOf({ type }: Expr): Expr {
  return Object.freeze({ kind: 'null', type });
}
