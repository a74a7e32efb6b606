import type { MetricsRequest } from '../../catalog/grain.js';
import { InternalError, QueryError } from '../../errors/errors.js';
import { resolveFunction } from '../../functions/index.js';
import { inType, isNotNull, nullOf } from '../../plan/nodes.js';
import type { Expr, Query, Select } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { isArray } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { aggregate, allRowsOf, derivedRows, unnamedOutputs } from './build.js';
import { type Condition, predicateOf } from './conditions.js';
import { type DimensionKey, timeOf, valueOfKey } from './dimensions.js';
import { EntityRows } from './entity-rows.js';
import { aggregating, type LeafFigure, unknownMetric } from './metric-access.js';
import { aggregateOverItem } from './metric-value.js';
import { notAfter, notBefore } from './time.js';

/** The parts of a metrics request that all its subqueries share. */
export interface SharedMetricParts {
  readonly keys: readonly DimensionKey[];
  readonly conditions: readonly Condition[];
  readonly timeConstraint: MetricsRequest['timeConstraint'];
}

/** Computes the simple metrics of one entity in a single pass over its rows. */
export function simplePart(
  leaves: readonly LeafFigure[],
  asked: SharedMetricParts,
  ctx: BindContext,
): FigureQuery {
  const [first] = leaves;
  const name = first?.asked ?? '';
  const source = sourceOf(first?.metric.entity ?? '', name, ctx);
  const values = new Map(leaves.map((leaf) => [leaf.key, simpleValue(leaf, source, ctx)]));
  const keys = asked.keys.map((key) => valueOfKey(key, source, name, ctx));
  const where = [...rowConditions(asked, source, name, ctx), ...withinTime(asked, source, name, ctx)];
  return {
    keys,
    values,
    query: (more) =>
      selectOf({ from: source.from, where: Object.freeze(where), grouped: true, groupBy: keys, ...more }),
  };
}

/** Returns the rows of an entity. If the caller may not read it, the metric is reported as unknown. */
export function sourceOf(entity: string, asked: string, ctx: BindContext): EntityRows {
  return hideAsUnknown(asked, ctx, () => new EntityRows(entity, ctx));
}

function simpleValue(leaf: LeafFigure, source: EntityRows, ctx: BindContext): Expr {
  const { metric, filters, asked } = leaf;
  if (metric.type !== 'simple') throw unknownMetric(asked, ctx);
  const env = aggregating([source.root], ctx);
  return hideAsUnknown(asked, ctx, () =>
    ctx.withoutPositions(() => aggregateOverItem(metric, filters, source.root, env)),
  );
}

/**
 * Reports hidden columns as an unknown metric, because a metric only exists for callers who may read all its columns.
 */
export function hideAsUnknown<T>(metric: string, ctx: BindContext, f: () => T): T {
  try {
    return f();
  } catch (error) {
    if (error instanceof QueryError && HIDDEN.has(error.entry)) throw unknownMetric(metric, ctx);
    throw error;
  }
}

const HIDDEN: ReadonlySet<string> = new Set(['unknownColumn', 'unknownRelation', 'denied']);

export function rowConditions(
  asked: SharedMetricParts,
  source: EntityRows,
  metric: string,
  ctx: BindContext,
): readonly Expr[] {
  return asked.conditions.map((condition) =>
    predicateOf(
      condition,
      (term) => {
        if (term.kind === 'metric') throw unknownMetric(term.name, ctx);
        return valueOfKey(term.key, source, metric, ctx);
      },
      ctx,
    ),
  );
}

export function withinTime(
  asked: SharedMetricParts,
  source: EntityRows,
  metric: string,
  ctx: BindContext,
): readonly Expr[] {
  if (asked.timeConstraint === null) return [];
  const { start, end } = asked.timeConstraint;
  const time = timeOf(source, metric, ctx);
  return [
    ...(start === null ? [] : [notBefore(time, start, ctx)]),
    ...(end === null ? [] : [notAfter(time, end, ctx)]),
  ];
}

type Outermost = Pick<Select, 'outputs'> & Partial<Pick<Select, 'having' | 'orderBy' | 'limit'>>;

/** The keys and metric values of a SELECT, as expressions. */
export interface FigureQuery {
  readonly keys: readonly Expr[];
  readonly values: ReadonlyMap<string, Expr>;
  query(more: Outermost): Query;
}

/**
 * Combines parts by UNION ALL and groups by the keys again. Each metric then has at most one row per group. NULL keys
 * are grouped like any other value.
 */
export function combineParts(parts: readonly [FigureQuery, ...FigureQuery[]], ctx: BindContext): FigureQuery {
  const [first, ...rest] = parts;
  if (rest.length === 0) return first;
  const leaves = parts.flatMap((p) => [...p.values].map(([key, { type }]) => ({ key, type })));
  const queries = parts.map((part) => {
    const values = leaves.map(({ key, type }) => part.values.get(key) ?? nullOf(type));
    return part.query({ outputs: unnamedOutputs([...part.keys, ...values]) });
  });
  const [query, ...others] = queries;
  if (query === undefined) throw new InternalError('an answer has a part');
  const rows = derivedRows(allRowsOf([query, ...others]), ctx);
  const width = first.keys.length;
  const keys = rows.columns.slice(0, width);
  const values = leaves.map(({ key }, i): [string, Expr] => [key, onlyOne(rows.columns[width + i], ctx)]);
  return {
    keys,
    values: new Map(values),
    query: (more) => selectOf({ from: rows.item, grouped: true, groupBy: keys, ...more }),
  };
}

/** Returns the only non-NULL value of `column` in a group. */
function onlyOne(column: Expr | undefined, ctx: BindContext): Expr {
  if (column === undefined) throw new InternalError('a figure has a column');
  if (typeof resolveFunction('max', [column.type]) !== 'string')
    return inType(aggregate('max', [column], null, ctx), column.type);
  if (column.type === 'bool') return aggregate('bool_or', [column], null, ctx);
  const all = aggregate('array_agg', [column], isNotNull(column), ctx);
  const indices = Object.freeze([ctx.constant('1', 'int4')]);
  if (isArray(column.type)) throw new InternalError(`a figure of type ${column.type}`);
  return Object.freeze({ kind: 'subscript', arg: all, indices, type: column.type });
}
