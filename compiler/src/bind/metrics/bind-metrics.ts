import type { Access } from '../../access/access.js';
import type { Catalog, Metric, MetricFormat } from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import type { MetricsRequest } from '../../catalog/grain.js';
import { InternalError, queryError } from '../../errors/errors.js';
import { FALSE, nullOf, TRUE } from '../../plan/nodes.js';
import type { Expr, Query, SortKey } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import type { BoundPlan } from '../bind.js';
import { BindContext } from '../context.js';
import { withUsedColumns } from '../runtime/finish-runtime.js';
import { allRowsOf, derivedRows, materialized, tableRows, unnamedOutputs } from './build.js';
import { attributeEvents } from './conversion-rows.js';
import { cumulativePart } from './cumulative.js';
import { type DimensionKey, dimensionNamed, keyOf, sameKey, valueOfKey } from './dimensions.js';
import {
  aggregating,
  type LeafFigure,
  leafFigures,
  leafKey,
  resolveMetric,
  unknownMetric,
} from './metric-access.js';
import { baseEvents, conversionTable, metricAndInputs, metricValue } from './metric-value.js';
import {
  type Condition,
  combineParts,
  conditionsOf,
  type FigureQuery,
  hideAsUnknown,
  predicateOf,
  rowConditions,
  type SharedMetricParts,
  simplePart,
  sourceOf,
  withinTime,
} from './request-parts.js';

/** Maximum number of leaf metrics. Each becomes a column of the statement. */
const MOST_LEAVES = 500;

/**
 * Binds a metrics request to a single query. Each entity is aggregated separately, counting every row once, and the
 * results are then combined.
 *
 * @throws QueryError E0511, E0512, E1001, E2101
 */
export function bindMetrics(request: MetricsRequest, catalog: Catalog, access: Access): BoundPlan {
  const ctx = new BindContext({ original: '', quoted: [] }, catalog, access, NO_FEATURES, []);
  const fallback = request.grain ?? 'day';
  const asked = request.metrics.map(({ name, alias }) => {
    const metric = resolveMetric(name, ctx);
    return { metric, name: alias ?? metric.name };
  });
  const conditions = conditionsOf(request.where, fallback, ctx);
  const metrics = [...asked.map((a) => a.metric), ...testedMetrics(conditions, ctx)];
  const keys = request.groupBy.map((g) => keyOf(dimensionNamed(g.name, ctx), g.grain, fallback, ctx));
  const { timeConstraint } = request;
  const onRows = conditions.filter((c) => !isOnGroups(c));
  const answer = combineParts(partsOf(metrics, { keys, conditions: onRows, timeConstraint }, ctx), ctx);
  const outputs: readonly MetricsOutput[] = [
    ...answer.keys.map((expr, i) => shownKey(expr, keys[i])),
    ...asked.map(({ metric, name }) => ({
      name,
      format: metric.format,
      expr: figure(metric, answer, ctx),
      names: [name, metric.name],
    })),
  ];
  refuseDuplicateOutputs(outputs, ctx);
  const query = answer.query({
    outputs: Object.freeze(outputs.map(({ name, expr }) => Object.freeze({ name, expr }))),
    having: Object.freeze(conditions.filter(isOnGroups).map((c) => onGroups(c, keys, answer, ctx))),
    orderBy: orderOf(request.orderBy, outputs, ctx),
    limit: request.limit === null ? null : ctx.constant(String(request.limit), 'int8'),
  });
  for (const name of metrics.flatMap((m) => metricAndInputs(m, catalog))) ctx.recordMetric(name);
  return finishPlan(query, outputs, ctx);
}

/** An output and the names by which `order_by` may refer to it. */
interface MetricsOutput {
  readonly name: string;
  readonly expr: Expr;
  readonly names: readonly string[];
  readonly format?: MetricFormat | undefined;
}

function shownKey(expr: Expr, key: DimensionKey | undefined): MetricsOutput {
  const name = key?.name ?? '';
  return { name, expr, names: [name, key?.dimension.shown ?? name] };
}

function isOnGroups(condition: Condition): boolean {
  return [...condition.terms.values()].some((t) => t.kind === 'metric');
}

function testedMetrics(conditions: readonly Condition[], ctx: BindContext): readonly Metric[] {
  const terms = conditions.flatMap((c) => [...c.terms.values()]);
  return terms.flatMap((t) => (t.kind === 'metric' ? [resolveMetric(t.name, ctx)] : []));
}

/** Returns one part for each entity's simple metrics, and one for each cumulative or conversion metric. */
function partsOf(
  metrics: readonly Metric[],
  asked: SharedMetricParts,
  ctx: BindContext,
): readonly [FigureQuery, ...FigureQuery[]] {
  const leaves = leafFigures(metrics, ctx.catalog);
  if (leaves.length > MOST_LEAVES)
    throw queryError('tooLarge', { what: 'the number of figures', limit: MOST_LEAVES });
  const simple = leaves.filter((l) => l.metric.type === 'simple');
  const entities = [...new Set(simple.map((l) => l.metric.entity))];
  const [first, ...rest] = [
    ...entities.map((e) =>
      simplePart(
        simple.filter((l) => l.metric.entity === e),
        asked,
        ctx,
      ),
    ),
    ...leaves.filter((l) => l.metric.type === 'cumulative').map((l) => cumulativePart(l, asked, ctx)),
    ...leaves.filter((l) => l.metric.type === 'conversion').map((l) => conversionPart(l, asked, ctx)),
  ];
  if (first === undefined) throw queryError('malformedBody', { detail: '`metrics` is empty' });
  return [first, ...rest];
}

function figure(metric: Metric, answer: FigureQuery, ctx: BindContext): Expr {
  const leaf = (name: string, filters: readonly string[]): Expr => {
    const value = answer.values.get(leafKey(name, filters));
    if (value === undefined) throw new InternalError(`metric ${name} was not computed`);
    return value;
  };
  return ctx.withoutPositions(() =>
    metricValue(metric, (m, filters) => leaf(m.name, filters), aggregating([], ctx)),
  );
}

function onGroups(
  condition: Condition,
  keys: readonly DimensionKey[],
  answer: FigureQuery,
  ctx: BindContext,
): Expr {
  return predicateOf(
    condition,
    (term) => {
      if (term.kind === 'metric') return figure(resolveMetric(term.name, ctx), answer, ctx);
      const value = answer.keys[keys.findIndex((k) => sameKey(k, term.key))];
      if (value !== undefined) return value;
      const construct = `\`${term.key.name}\` beside a metric in \`where\``;
      const hint = 'group by it, or write it as a condition of its own';
      throw ctx.unsupported(construct, undefined, hint);
    },
    ctx,
  );
}

function refuseDuplicateOutputs(outputs: readonly MetricsOutput[], ctx: BindContext): void {
  const seen = new Set<string>();
  for (const { name } of outputs) {
    if (seen.has(name.toLowerCase())) {
      const detail = `the answer would have two columns \`${name}\``;
      throw ctx.mismatch(detail, undefined, 'give a metric an alias');
    }
    seen.add(name.toLowerCase());
  }
}

function orderOf(
  wanted: MetricsRequest['orderBy'],
  outputs: readonly MetricsOutput[],
  ctx: BindContext,
): readonly SortKey[] {
  return Object.freeze(
    wanted.map(({ name, grain, descending }) => {
      const lower = (grain === null ? name : `${name}__${grain}`).toLowerCase();
      const place = (namesOf: (o: MetricsOutput) => readonly string[]): number =>
        outputs.findIndex((o) => namesOf(o).some((n) => n.toLowerCase() === lower)) + 1;
      // An alias may be the name of another metric.
      const by = place((o) => [o.name]) || place((o) => o.names);
      if (by === 0) {
        const hint = 'order by a metric or a dimension that the question asks for';
        throw ctx.mismatch('`order_by` names what the answer has not', undefined, hint);
      }
      return Object.freeze({ by, descending, nullsFirst: descending });
    }),
  );
}

function finishPlan(query: Query, outputs: readonly MetricsOutput[], ctx: BindContext): BoundPlan {
  const complete = withUsedColumns(query, ctx);
  const columns = outputs.map(({ name, expr, format }) =>
    Object.freeze({ name, type: expr.type, ...(format === undefined ? {} : { format }) }),
  );
  const rest = ctx.finish();
  if (rest.clientOids.length > 0) {
    const hint = 'write the value into the condition';
    throw ctx.unsupported('`$n` in a metrics body', undefined, hint);
  }
  return Object.freeze({
    form: 'metrics',
    joins: null,
    query: complete,
    runtime: Object.freeze([]),
    columns: Object.freeze(columns),
    // A metrics request is not a single text that a position could refer to.
    positionOf: () => null,
    positionOfSource: () => null,
    ...rest,
  });
}

/**
 * Binds a conversion metric: aggregates the conversion events, grouped by keys of their base events. Conditions apply
 * to the base events. Groups without conversions are included.
 */
function conversionPart(leaf: LeafFigure, asked: SharedMetricParts, ctx: BindContext): FigureQuery {
  const { metric } = leaf;
  if (metric.type !== 'conversion') throw unknownMetric(leaf.asked, ctx);
  const source = sourceOf(metric.entity, leaf.asked, ctx);
  const events = hideAsUnknown(leaf.asked, ctx, () =>
    ctx.withoutPositions(() =>
      baseEvents(metric, leaf.filters, source.root, aggregating([source.root], ctx)),
    ),
  );
  const later = hideAsUnknown(leaf.asked, ctx, () =>
    ctx.withoutPositions(() => conversionTable(metric, (item) => aggregating([item], ctx), ctx)),
  );
  const keys = asked.keys.map((key) => valueOfKey(key, source, leaf.asked, ctx));
  const conditions = [
    ...events.where,
    ...rowConditions(asked, source, leaf.asked, ctx),
    ...withinTime(asked, source, leaf.asked, ctx),
  ];
  const bases = materialized(
    selectOf({
      from: source.from,
      where: Object.freeze(conditions),
      outputs: unnamedOutputs([...events.same, events.at, ...keys]),
    }),
    ctx,
  );
  const found = attributeEvents(metric, bases, later, ctx);
  const known = tableRows(bases, ctx);
  const nothing = found.inputs.map((e) => nullOf(e.type));
  const groups = selectOf({
    from: known.item,
    distinct: true,
    outputs: unnamedOutputs([...known.columns.slice(metric.same.length + 1), ...nothing, FALSE]),
  });
  const followed = selectOf({
    from: found.rows.item,
    where: Object.freeze([found.where]),
    outputs: unnamedOutputs([...found.keys, ...found.inputs, TRUE]),
  });
  const rows = derivedRows(allRowsOf([groups, followed]), ctx);
  const taken = rows.columns.at(-1) ?? FALSE;
  const groupBy = Object.freeze(rows.columns.slice(0, keys.length));
  return {
    keys: groupBy,
    values: new Map([[leaf.key, later.deferred.value(rows.columns.slice(keys.length, -1), taken)]]),
    query: (more) =>
      selectOf({
        with: Object.freeze([bases, later.table]),
        from: rows.item,
        grouped: true,
        groupBy,
        ...more,
      }),
  };
}
