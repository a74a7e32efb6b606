import { FALSE, selectOf, TRUE } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { attributed } from './attributed.js';
import { allRowsOf, derivedRows, materialized, tableRows, unnamedOutputs } from './build.js';
import { baseEvents, laterRows } from './converted.js';
import { valueOfKey } from './dimensions.js';
import {
  asUnknown,
  type EntityFigures,
  type MetricsQuestion,
  rowConditions,
  sourceOf,
  withinTime,
} from './part.js';
import { aggregating, type LeafFigure, unknownMetric } from './readable.js';

/**
 * A conversion metric: the events that follow, in the groups of the base events that they are attributed to. Conditions
 * choose base events; each group of those is there, though nothing followed.
 */
export function conversionPart(leaf: LeafFigure, asked: MetricsQuestion, ctx: BindContext): EntityFigures {
  const { metric } = leaf;
  if (metric.type !== 'conversion') throw unknownMetric(leaf.asked, ctx);
  const source = sourceOf(metric.entity, leaf.asked, ctx);
  const events = asUnknown(leaf.asked, ctx, () =>
    ctx.unplaced(() => baseEvents(metric, leaf.filters, source.root, aggregating([source.root], ctx))),
  );
  const later = asUnknown(leaf.asked, ctx, () =>
    ctx.unplaced(() => laterRows(metric, (item) => aggregating([item], ctx), ctx)),
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
  const found = attributed(metric, bases, later, ctx);
  const known = tableRows(bases, ctx);
  const nothing = found.inputs.map(({ type }): Expr => Object.freeze({ kind: 'null', type }));
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
