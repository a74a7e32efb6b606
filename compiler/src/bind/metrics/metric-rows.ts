import type { Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, columnRef, FALSE, isNotNull, nullOf, TRUE } from '../../plan/nodes.js';
import type {
  Aggregate,
  ColumnRef,
  CommonTable,
  Expr,
  FromItem,
  Query,
  Select,
  SourceId,
} from '../../plan/plan.js';
import { itemsMetOnce, mayBeMissing } from '../../plan/properties.js';
import { readsAround } from '../../plan/query-tree.js';
import { selectOf } from '../../plan/select-nodes.js';
import { queryOf, someExpr, sortExprs } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/operands.js';
import { filterAggregates } from './aggregates.js';
import { aggregate, allRowsOf, materialized, rowNumber, tableRows, unnamedOutputs } from './build.js';
import { type ConversionUse, conversionBranch, conversionValue } from './conversion-rows.js';
import { type Branch, JoinedRows } from './joined-rows.js';
import { type PeriodMetricUse, periodBranch } from './other-periods.js';

interface EntityItem {
  readonly source: SourceId;
  readonly relation: Relation | null;
}

interface RepeatedMetricUse {
  /** Placeholder that belongs to no FROM item, for a flag that is true for the first joined row of each entity row. */
  readonly placeholder: ColumnRef;
  readonly item: EntityItem;
  readonly key: readonly Expr[];
  /** The caller's FILTER if its value can differ between the joined rows of one entity row; otherwise null. */
  readonly filter: Expr | null;
  readonly metric: string;
  readonly location: Location;
}

/**
 * The metrics of a SELECT that cannot be computed directly from its joined rows: metrics whose entity rows are repeated
 * by joins, metrics over other periods, and conversion metrics. For the first kind, the first joined row of each entity
 * row is marked, and the metric's aggregates use marked rows only.
 */
export class MetricRows {
  readonly #counted = new Map<string, RepeatedMetricUse>();
  readonly #spanned = new Map<string, PeriodMetricUse>();
  readonly #converted = new Map<string, ConversionUse>();

  countOnce(
    item: EntityItem,
    key: readonly Expr[],
    filter: Expr | null,
    from: FromItem,
    asked: { readonly metric: string; readonly location: Location },
    ctx: BindContext,
  ): Expr {
    const own = filter !== null && readsBeyond(filter, itemsMetOnce(from, item.source)) ? filter : null;
    const name = `${item.source} ${own === null ? '' : fingerprint(own)}`;
    const known = this.#counted.get(name);
    if (known !== undefined) return known.placeholder;
    const placeholder = columnRef(ctx.nextSource(), 'first', 'bool');
    this.#counted.set(name, { placeholder, item, key, filter: own, ...asked });
    return placeholder;
  }

  overPeriods(metric: Omit<PeriodMetricUse, 'placeholder'>, ctx: BindContext): ColumnRef {
    const name = `${metric.item.source} ${metric.metric}`;
    const known = this.#spanned.get(name);
    if (known !== undefined) return known.placeholder;
    const placeholder = columnRef(ctx.nextSource(), 'taken', 'bool');
    this.#spanned.set(name, { placeholder, ...metric });
    return placeholder;
  }

  /**
   * Returns the value of a conversion metric.
   *
   * @param name identifies equal uses of a metric, which are computed once
   * @param make creates the use when its name is new
   */
  overConversions(name: string, make: () => Omit<ConversionUse, 'placeholder'>, ctx: BindContext): Expr {
    const made = this.#converted.get(name) ?? { placeholder: ctx.nextSource(), ...make() };
    this.#converted.set(name, made);
    return conversionValue(made);
  }

  /**
   * Rewrites `select` to read a derived table of its joined rows, with marks or added rows, if any metric needs that.
   *
   * @param local the FROM items of this level
   * @throws QueryError E1001 if a grouping key can differ between the joined rows of one entity row, or if a correlated
   * subquery or a runtime relation such as RETRIEVE rules the rewrite out
   */
  rewrite(select: Select, local: ReadonlySet<SourceId>, ctx: BindContext): Select {
    const { from } = select;
    const counted = [...this.#counted.values()];
    const spanned = [...this.#spanned.values()];
    const converted = [...this.#converted.values()];
    if (from === null || counted.length + spanned.length + converted.length === 0) return select;
    for (const c of [...counted, ...converted]) refuseRepeated(c, select, from, ctx);
    for (const c of converted) refuseBesidePassages(c, ctx);
    for (const c of [...counted, ...spanned, ...converted]) refuseCorrelated(c, select, local, ctx);
    const rows = new JoinedRows(select, local, ctx);
    for (const c of counted) rows.mark(c.placeholder, isFirst(c, mayBeMissing(from, c.item.source), ctx));
    return spanned.length + converted.length === 0
      ? rows.outer()
      : unionOtherRows(rows, { spanned, converted }, select, ctx);
  }
}

/** @throws QueryError E1001 if a row of the metric could count in several groups */
function refuseRepeated(
  { item, metric, location }: Pick<RepeatedMetricUse, 'metric' | 'location'> & { readonly item: EntityItem },
  select: Select,
  from: FromItem,
  ctx: BindContext,
): void {
  const once = itemsMetOnce(from, item.source);
  if (!select.groupBy.some((key) => readsBeyond(key, once))) return;
  const entity = item.relation?.name ?? '';
  const detail = `metric \`${metric}\` takes rows of \`${entity}\`, of which one has several of what GROUP BY names, and would count in several groups`;
  const hint = `group by what one \`${identifier(entity)}\` has one of, or join the metric, grouped in a derived table, to the rest`;
  throw ctx.unresolvable(detail, location, hint);
}

function refuseBesidePassages({ metric, location }: ConversionUse, ctx: BindContext): void {
  if (ctx.drafts.length === 0) return;
  const detail = `metric \`${metric}\` takes rows of two entities, beside RETRIEVE, TRAVERSE or \`evidence\``;
  throw ctx.unresolvable(detail, location, 'ask for one of them at a time');
}

/** Refuses correlated subqueries: they could no longer refer to the rows, which move into a derived table. */
function refuseCorrelated(
  { metric, location }: { readonly metric: string; readonly location: Location },
  select: Select,
  local: ReadonlySet<SourceId>,
  ctx: BindContext,
): void {
  const above = [
    ...select.outputs.map((o) => o.expr),
    ...select.having,
    ...select.distinctOn,
    ...sortExprs(select.orderBy),
  ];
  if (!select.where.some((e) => readsBeyond(e, local)) && !above.some((e) => subqueryReads(e, local))) return;
  const detail = `metric \`${metric}\` cannot be worked out beside a subquery that looks outward`;
  throw ctx.unresolvable(detail, location, 'put one of them in a derived table');
}

function readsBeyond(expr: Expr, sources: ReadonlySet<SourceId>): boolean {
  return someExpr(expr, (e) => e.kind === 'column' && !sources.has(e.source));
}

function subqueryReads(expr: Expr, sources: ReadonlySet<SourceId>): boolean {
  return someExpr(expr, (e) => {
    const inner = queryOf(e);
    return inner !== null && [...readsAround(inner)].some((s) => sources.has(s));
  });
}

function isFirst({ key, filter }: RepeatedMetricUse, missing: boolean, ctx: BindContext): Expr {
  const number = rowNumber([...key, ...(filter === null ? [] : [filter])], []);
  const first = infix('=', number, ctx.constant('1', 'int8'), undefined, ctx);
  return allOf([...(missing ? key.map(isNotNull) : []), first]);
}

interface OtherRows {
  readonly spanned: readonly PeriodMetricUse[];
  readonly converted: readonly ConversionUse[];
}

/**
 * Builds a UNION ALL of the SELECT's own joined rows, the rows needed by each metric over other periods, and those
 * needed by each conversion metric. Flags mark the origin of each row, and each aggregate filters by its flag. The
 * groups are those of the statement.
 *
 * @throws QueryError E1001
 */
function unionOtherRows(
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
  const nothing = branches.flatMap((b) => [FALSE, ...b.inputs.map((e) => nullOf(e.type))]);
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
    ...inner.outputs.map(({ expr }, i): Expr => made.keys.get(`c${i + 1}`) ?? nullOf(expr.type)),
    FALSE,
    ...branches.flatMap((b, i) =>
      i === index ? [TRUE, ...made.inputs] : [FALSE, ...b.inputs.map((e) => nullOf(e.type))],
    ),
  ];
  const where = Object.freeze([...made.where]);
  return {
    query: selectOf({ from: made.from, where, outputs: unnamedOutputs(outputs) }),
    tables: made.tables,
  };
}
