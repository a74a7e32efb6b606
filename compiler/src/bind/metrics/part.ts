import type { MetricsRequest } from '../../catalog/metrics-request.js';
import { QueryError } from '../../errors/errors.js';
import { selectOf } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import type { Answer } from './combine.js';
import { type Key, timeOf, valueOfKey } from './dimensions.js';
import { type Leaf, unknownMetric } from './leaves.js';
import { aggregating } from './readable.js';
import { Source } from './source.js';
import { notAfter, notBefore } from './time.js';
import { aggregateOverItem } from './value.js';
import { type Condition, predicateOf } from './where.js';

/** What all parts of one question have in common. */
export interface Asked {
  readonly keys: readonly Key[];
  /** Conditions on rows. */
  readonly conditions: readonly Condition[];
  readonly timeConstraint: MetricsRequest['timeConstraint'];
}

/** Figures over the rows of one entity: a value of each key, and of each leaf by its own key. */
export type Part = Answer;

/** The simple metrics among `leaves`, which are all of one entity, in one pass over its rows. */
export function simplePart(leaves: readonly Leaf[], asked: Asked, ctx: BindContext): Part {
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

/** The rows of an entity, or that there is no such metric. */
export function sourceOf(entity: string, asked: string, ctx: BindContext): Source {
  return asUnknown(asked, ctx, () => new Source(entity, ctx));
}

function simpleValue(leaf: Leaf, source: Source, ctx: BindContext): Expr {
  const { metric, filters, asked } = leaf;
  if (metric.type !== 'simple') throw unknownMetric(asked, ctx);
  const env = aggregating([source.root], ctx);
  return asUnknown(asked, ctx, () =>
    ctx.unplaced(() => aggregateOverItem(metric, filters, source.root, env)),
  );
}

/** A metric exists for those who may read every column in it; to all others it must not name what it lacks. */
export function asUnknown<T>(metric: string, ctx: BindContext, f: () => T): T {
  try {
    return f();
  } catch (error) {
    if (error instanceof QueryError && HIDDEN.has(error.entry)) throw unknownMetric(metric, ctx);
    throw error;
  }
}

const HIDDEN: ReadonlySet<string> = new Set(['unknownColumn', 'unknownRelation', 'denied']);

export function rowConditions(
  asked: Asked,
  source: Source,
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

export function withinTime(asked: Asked, source: Source, metric: string, ctx: BindContext): readonly Expr[] {
  if (asked.timeConstraint === null) return [];
  const { start, end } = asked.timeConstraint;
  const time = timeOf(source, metric, ctx);
  return [
    ...(start === null ? [] : [notBefore(time, start, ctx)]),
    ...(end === null ? [] : [notAfter(time, end, ctx)]),
  ];
}
