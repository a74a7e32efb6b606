import type { Relation } from '../../catalog/catalog.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, columnRef, isNotNull } from '../../plan/nodes.js';
import type { ColumnRef, Expr, FromItem, Select, SourceId } from '../../plan/plan.js';
import { queryOf, readsAround, someExpr, sortExprs } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/infix.js';
import { itemsMetOnce, mayBeMissing } from '../from/fan-out.js';
import { rowNumber } from './build.js';
import { type ConversionUse, valueOfLater } from './conversions.js';
import { JoinedRows } from './joined-rows.js';
import type { PeriodMetricUse } from './other-periods.js';
import { overOtherRows } from './other-rows.js';

interface EntityItem {
  readonly source: SourceId;
  readonly relation: Relation | null;
}

interface RepeatedMetricUse {
  /** Placeholder column that is in no FROM: true for the first joined row of each entity row. */
  readonly placeholder: ColumnRef;
  readonly item: EntityItem;
  readonly key: readonly Expr[];
  /** The caller's FILTER if its value can differ between the joined rows of one entity row, else null. */
  readonly filter: Expr | null;
  readonly metric: string;
  readonly location: Location;
}

/**
 * Metrics of one SELECT whose rows are repeated by joins. To count each entity row once, the first of its joined rows
 * is marked, and the metric's aggregates only use marked rows.
 */
export class OwnGrain {
  readonly #counted = new Map<string, RepeatedMetricUse>();
  readonly #spanned = new Map<string, PeriodMetricUse>();
  readonly #converted = new Map<string, ConversionUse>();

  once(
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

  over(metric: Omit<PeriodMetricUse, 'placeholder'>, ctx: BindContext): ColumnRef {
    const name = `${metric.item.source} ${metric.metric}`;
    const known = this.#spanned.get(name);
    if (known !== undefined) return known.placeholder;
    const placeholder = columnRef(ctx.nextSource(), 'taken', 'bool');
    this.#spanned.set(name, { placeholder, ...metric });
    return placeholder;
  }

  /**
   * Value of a conversion metric.
   *
   * @param name identifies equal metric uses
   * @param make creates the use
   */
  converted(name: string, make: () => Omit<ConversionUse, 'placeholder'>, ctx: BindContext): Expr {
    const made = this.#converted.get(name) ?? { placeholder: ctx.nextSource(), ...make() };
    this.#converted.set(name, made);
    return valueOfLater(made);
  }

  /**
   * Rewrites `select` over a derived table of its joined rows with marks, if any metric needs that.
   *
   * @param local FROM items of this level
   * @throws QueryError E1001 if a grouping key can differ between the joined rows of one entity row
   */
  settled(select: Select, local: ReadonlySet<SourceId>, ctx: BindContext): Select {
    const { from } = select;
    const counted = [...this.#counted.values()];
    const spanned = [...this.#spanned.values()];
    const converted = [...this.#converted.values()];
    if (from === null || counted.length + spanned.length + converted.length === 0) return select;
    for (const c of [...counted, ...converted]) refuseRepeated(c, select, from, ctx);
    for (const c of converted) refuseBesidePassages(c, ctx);
    for (const c of [...counted, ...spanned, ...converted]) refuseOutward(c, select, local, ctx);
    const rows = new JoinedRows(select, local, ctx);
    for (const c of counted) rows.mark(c.placeholder, isFirst(c, mayBeMissing(from, c.item.source), ctx));
    return spanned.length + converted.length === 0
      ? rows.outer()
      : overOtherRows(rows, { spanned, converted }, select, ctx);
  }
}

/** @throws QueryError E1001 if one row of the metric could count in several groups */
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
  throw ctx.error('unresolvable', { detail, hint }, location);
}

function refuseBesidePassages({ metric, location }: ConversionUse, ctx: BindContext): void {
  if (ctx.drafts.length === 0) return;
  const detail = `metric \`${metric}\` takes rows of two entities, beside RETRIEVE, TRAVERSE or \`evidence\``;
  throw ctx.error('unresolvable', { detail, hint: 'ask for one of them at a time' }, location);
}

/** Refuses correlated subqueries: the rows move one level down, out of their reach. */
function refuseOutward(
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
  if (!select.where.some((e) => readsBeyond(e, local)) && !above.some((e) => looksIn(e, local))) return;
  const detail = `metric \`${metric}\` cannot be worked out beside a subquery that looks outward`;
  throw ctx.error('unresolvable', { detail, hint: 'put one of them in a derived table' }, location);
}

function readsBeyond(expr: Expr, sources: ReadonlySet<SourceId>): boolean {
  return someExpr(expr, (e) => e.kind === 'column' && !sources.has(e.source));
}

function looksIn(expr: Expr, sources: ReadonlySet<SourceId>): boolean {
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
