import type { CumulativeMetric } from '../../catalog/catalog.js';
import type { Grain, PeriodSpan } from '../../catalog/grain.js';
import { columnRef, FALSE, nullOf, TRUE } from '../../plan/nodes.js';
import type { CommonTable, Expr, FromItem, Query } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import type { BindContext } from '../context.js';
import { type DeferredAggregates, deferAggregates } from './aggregates.js';
import {
  aggregate,
  allRowsOf,
  call,
  derivedRows,
  joinedOn,
  materialized,
  type QueryRows,
  tableRows,
  unnamedOutputs,
} from './build.js';
import { type DimensionKey, timeOf, valueOfKey } from './dimensions.js';
import type { EntityRows } from './entity-rows.js';
import { aggregating, type LeafFigure, unknownMetric } from './metric-access.js';
import { aggregateOverItem, metricNamed, metricValue } from './metric-value.js';
import {
  type FigureQuery,
  hideAsUnknown,
  rowConditions,
  type SharedMetricParts,
  sourceOf,
} from './request-parts.js';
import { inUtc, isInSpan, notAfter, shownPeriod, truncateTime, unitOf } from './time.js';

/**
 * Binds a cumulative metric: computes its base metric over the rows in the metric's span, for each period and each
 * combination of the other keys. Rows whose time is NULL or infinite belong to no period.
 */
export function cumulativePart(leaf: LeafFigure, asked: SharedMetricParts, ctx: BindContext): FigureQuery {
  const { metric } = leaf;
  if (metric.type !== 'cumulative') throw unknownMetric(leaf.asked, ctx);
  const grain = grainOf(leaf, asked, ctx);
  const source = sourceOf(metric.entity, leaf.asked, ctx);
  const time = hideAsUnknown(leaf.asked, ctx, () => timeOf(source, leaf.asked, ctx));
  const base = deferAggregates(
    hideAsUnknown(leaf.asked, ctx, () => baseValue(leaf, metric, source, ctx)),
    ctx,
  );
  const others = asked.keys.filter((k) => k.dimension.kind !== 'metric_time');
  const facts = materialized(factsQuery(base, time, others, grain, leaf, asked, source, ctx), ctx);
  const periods = materialized(periodsQuery(facts, grain, asked, ctx), ctx);
  const rows = derivedRows(
    allRowsOf([
      everyPeriod(periods, facts, others.length, base.inputs, ctx),
      factsOfPeriods(periods, facts, metric.span, grain, ctx),
    ]),
    ctx,
  );
  const [period, ...rest] = rows.columns;
  const taken = rest.at(-1);
  if (period === undefined || taken === undefined) throw unknownMetric(leaf.asked, ctx);
  const keys = asked.keys.map((key) => {
    if (key.dimension.kind === 'metric_time') return shownPeriod(period, grain);
    return rest[others.indexOf(key)] ?? period;
  });
  return {
    keys,
    values: new Map([[leaf.key, base.value(rest.slice(others.length, -1), taken)]]),
    query: (more) =>
      selectOf({
        with: Object.freeze([facts, periods]),
        from: rows.item,
        grouped: true,
        groupBy: Object.freeze([period, ...rest.slice(0, others.length)]),
        ...more,
      }),
  };
}

/**
 * Returns the grain of the periods. @throws QueryError E1001 unless there is exactly one `metric_time` key, with a
 * grain, and no condition on the time
 */
function grainOf(leaf: LeafFigure, asked: SharedMetricParts, ctx: BindContext): Grain {
  const times = asked.keys.filter((k) => k.dimension.kind === 'metric_time');
  const [only] = times;
  const is = isOfOther(leaf) ? 'is of another period' : 'is cumulative';
  const refuse = (detail: string, hint: string) =>
    ctx.unresolvable(`metric \`${leaf.asked}\` ${detail}`, undefined, hint);
  if (only?.grain === undefined || only.grain === null || times.length > 1) {
    throw refuse(`${is}, which needs one \`metric_time\` to group by`, 'group by metric_time__day');
  }
  const entity = leaf.metric.entity;
  const time = ctx.catalog.relations.get(entity)?.timeDimension;
  const onTime = asked.conditions
    .flatMap((c) => [...c.terms.values()])
    .some(
      (term) =>
        term.kind === 'key' &&
        (term.key.dimension.kind === 'metric_time' ||
          (term.key.dimension.relation.name === entity && term.key.dimension.column.name === time)),
    );
  if (onTime)
    throw refuse(
      `${is}, so that a \`where\` on its time would leave out what came before`,
      'use `time_constraint`',
    );
  return only.grain;
}

function isOfOther({ metric }: LeafFigure): boolean {
  return metric.type === 'cumulative' && metric.span.kind.startsWith('offset');
}

function baseValue(leaf: LeafFigure, metric: CumulativeMetric, source: EntityRows, ctx: BindContext): Expr {
  const env = aggregating([source.root], ctx);
  return ctx.withoutPositions(() =>
    metricValue(
      metricNamed(metric.metric, ctx.catalog),
      (base, filters) => {
        if (base.type !== 'simple') throw unknownMetric(leaf.asked, ctx);
        return aggregateOverItem(base, filters, source.root, env);
      },
      env,
      leaf.filters,
    ),
  );
}

/** Selects the visible rows with their time, keys and inputs, pre-aggregated if the metric is additive. */
function factsQuery(
  base: DeferredAggregates,
  time: Expr,
  others: readonly DimensionKey[],
  grain: Grain,
  leaf: LeafFigure,
  asked: SharedMetricParts,
  source: EntityRows,
  ctx: BindContext,
): Query {
  const { metric } = leaf;
  const unit = metric.type === 'cumulative' ? unitOf(metric.span, grain) : grain;
  const at = base.grouped ? truncateTime(inUtc(time, ctx), unit, ctx) : inUtc(time, ctx);
  const keys = others.map((k) => valueOfKey(k, source, leaf.asked, ctx));
  const end = asked.timeConstraint?.end ?? null;
  const where = [
    call('isfinite', [time], ctx),
    ...rowConditions(asked, source, leaf.asked, ctx),
    ...(end === null ? [] : [notAfter(time, end, ctx)]),
  ];
  return selectOf({
    from: source.from,
    where: Object.freeze(where),
    grouped: base.grouped,
    groupBy: base.grouped ? Object.freeze([at, ...keys]) : Object.freeze([]),
    outputs: unnamedOutputs([at, ...keys, ...base.inputs]),
  });
}

/** Selects the start of each period. Bounds that `time_constraint` lacks are taken from the visible rows. */
function periodsQuery(facts: CommonTable, grain: Grain, asked: SharedMetricParts, ctx: BindContext): Query {
  const { item, columns } = tableRows(facts, ctx);
  const [at] = columns;
  if (at === undefined) throw new TypeError('facts have a time');
  const { start, end } = asked.timeConstraint ?? { start: null, end: null };
  const first = start === null ? aggregate('min', [at], null, ctx) : ctx.constant(start.text, 'timestamp');
  const last = end === null ? aggregate('max', [at], null, ctx) : ctx.constant(end.text, 'timestamp');
  const outputs = unnamedOutputs([first, last].map((t) => truncateTime(t, grain, ctx)));
  // With constant bounds, FROM must be empty; otherwise each row of `facts` would yield all periods again.
  const known = start !== null && end !== null;
  const bounds = known ? selectOf({ outputs }) : selectOf({ from: item, grouped: true, outputs });
  const id = ctx.nextSource();
  const spine: FromItem = Object.freeze({ kind: 'spine', id, bounds, grain });
  const period = columnRef(id, 'c1', 'timestamp');
  return selectOf({ from: spine, outputs: unnamedOutputs([period]) });
}

/** Selects every combination of a period and the other keys, including periods without rows. */
function everyPeriod(
  periods: CommonTable,
  facts: CommonTable,
  others: number,
  inputs: readonly Expr[],
  ctx: BindContext,
): Query {
  const period = tableRows(periods, ctx);
  const known = tableRows(facts, ctx);
  const combinations = selectOf({
    from: known.item,
    distinct: true,
    outputs: unnamedOutputs(known.columns.slice(1, 1 + others)),
  });
  const keys: QueryRows | null = others === 0 ? null : derivedRows(combinations, ctx);
  const nothing = inputs.map((e) => nullOf(e.type));
  return selectOf({
    from: keys === null ? period.item : joinedOn(period.item, keys.item, []),
    outputs: unnamedOutputs([...period.columns, ...(keys?.columns ?? []), ...nothing, FALSE]),
  });
}

function factsOfPeriods(
  periods: CommonTable,
  facts: CommonTable,
  span: PeriodSpan,
  grain: Grain,
  ctx: BindContext,
): Query {
  const period = tableRows(periods, ctx);
  const fact = tableRows(facts, ctx);
  const [begin] = period.columns;
  const [at, ...rest] = fact.columns;
  if (begin === undefined || at === undefined) throw new TypeError('periods and facts have a time');
  const on = isInSpan(at, begin, span, grain, ctx);
  return selectOf({
    from: joinedOn(period.item, fact.item, on),
    outputs: unnamedOutputs([begin, ...rest, TRUE]),
  });
}
