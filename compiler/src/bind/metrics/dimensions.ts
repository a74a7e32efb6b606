import { type Grain, isOfDays } from '../../catalog/grain.js';
import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import type { MetricDimension, NamedDimension } from './names.js';
import { columnOf, type EntityRows } from './source.js';
import { bucket, isTime } from './time.js';

export interface DimensionKey {
  /** Name of its output column: `{name}` or `{name}__{grain}`. */
  readonly name: string;
  readonly dimension: MetricDimension;
  /** Null for dimensions other than times, and for times that are not truncated. */
  readonly grain: Grain | null;
}

/**
 * Grouping key for a named dimension. Times are truncated to `grain`, the grain in the name, or `fallback`.
 *
 * @throws QueryError E0511 for a grain of a dimension that is not a time, or for two grains
 */
export function keyOf(
  { dimension, grain: ofName }: NamedDimension,
  grain: Grain | null,
  fallback: Grain,
  ctx: BindContext,
): DimensionKey {
  const { shown } = dimension;
  if (ofName !== null && grain !== null && ofName !== grain)
    throw mismatch(`\`${shown}\` is asked for by ${ofName} and by ${grain}`, ctx);
  const wanted = grain ?? ofName;
  if (dimension.kind === 'column' && !isTime(dimension.column.type)) {
    if (wanted !== null) throw mismatch(`\`${shown}\` is no time, so it has no grain`, ctx);
    return { name: shown, dimension, grain: null };
  }
  const cut = wanted ?? fallback;
  return { name: `${shown}__${cut}`, dimension, grain: cut };
}

function mismatch(detail: string, ctx: BindContext) {
  return ctx.mismatch(detail, undefined);
}

/** True if the keys have equal values in every row. */
export function sameKey(a: DimensionKey, b: DimensionKey): boolean {
  return a.name === b.name && a.grain === b.grain;
}

/**
 * Value of the key for each row of `source`.
 *
 * @param metric requested metric, for messages
 * @throws QueryError E1001, E2101
 */
export function valueOfKey(key: DimensionKey, source: EntityRows, metric: string, ctx: BindContext): Expr {
  const { dimension, grain } = key;
  const value =
    dimension.kind === 'metric_time'
      ? timeOf(source, metric, ctx)
      : source.column(dimension.links, dimension.column.name, metric);
  if (grain === null) return value;
  if (value.type === 'date' && !isOfDays(grain)) {
    const detail = `\`${dimension.shown}\` of metric \`${metric}\` is a date, which has no ${grain}`;
    throw ctx.error('unresolvable', { detail, hint: null }, undefined);
  }
  return bucket(value, grain, ctx);
}

/**
 * Time dimension of the metric's rows. One that is hidden from the caller is reported as undeclared.
 *
 * @throws QueryError E1001
 */
export function timeOf(source: EntityRows, metric: string, ctx: BindContext): Expr {
  const { root } = source;
  const name = root.relation?.timeDimension;
  if (name === undefined || !root.columns.has(name)) {
    const detail = `metric \`${metric}\` has no \`metric_time\`: \`${root.alias}\` has no time dimension`;
    throw ctx.error('unresolvable', { detail, hint: 'group by a time of another name' }, undefined);
  }
  return columnOf(root, name, ctx);
}
