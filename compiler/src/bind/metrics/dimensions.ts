import { type Grain, isOfDays } from '../../catalog/grain.js';
import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import type { MetricDimension, NamedDimension } from './names.js';
import { columnOf, type EntityRows } from './source.js';
import { bucket, isTime } from './time.js';

/** A dimension at a grain: what answers are grouped by, and what predicates compare. */
export interface DimensionKey {
  /** The name of its output column: `{name}` or `{name}__{grain}`. */
  readonly name: string;
  readonly dimension: MetricDimension;
  /** Null for what is no time, and for a time as it is stored. */
  readonly grain: Grain | null;
}

/**
 * `named` as something to group by: a time is cut to `grain`, to that of its name, or to `fallback`.
 *
 * @throws QueryError E0511 for a grain of what is no time, or two grains
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

/** True if two keys are equal for every row. */
export function sameKey(a: DimensionKey, b: DimensionKey): boolean {
  return a.name === b.name && a.grain === b.grain;
}

/** The key's value of each row of `source`. `metric` is who asks, for messages. @throws QueryError E1001, E2101 */
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
 * The time of the rows that a metric takes. One that is not declared and one that the caller may not see are the same.
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
