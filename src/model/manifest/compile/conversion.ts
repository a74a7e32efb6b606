import type { ConversionMetric, Edge, Metric, Relation, SameColumns, SimpleMetric } from 'osl-compiler';
import { columnOf } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { Problems } from './scope.js';

export interface MetricRelations {
  readonly relations: ReadonlyMap<string, Relation>;
  readonly edges: readonly Edge[];
}

/** `metric` with the entities of its events and the columns on which they are joined; null if it is invalid. */
export function joinedConversion(
  metric: ConversionMetric,
  base: Metric,
  later: Metric,
  graph: MetricRelations,
  problems: Problems,
): ConversionMetric | null {
  const path: Path = ['metrics', metric.name];
  const conflict = (key: string, message: string, hint: string): null => {
    problems.add(CODES.conflict, [...path, key], message, hint);
    return null;
  };
  for (const [key, input] of [
    ['base', base],
    ['conversion', later],
  ] as const) {
    if (input.type !== 'simple')
      return conflict(key, `\`${input.name}\` is no simple metric`, 'events are the rows of one entity');
    if (graph.relations.get(input.entity)?.timeDimension === undefined)
      return conflict(
        key,
        `\`${input.entity}\` has no time dimension`,
        `add \`time_dimension\` to \`${input.entity}\``,
      );
  }
  const [first, second] = [base, later].flatMap((m) => (m.type === 'simple' ? [m] : []));
  if (first === undefined || second === undefined) return null;
  const sides = [first, second].map((m) => graph.relations.get(m.entity));
  if (sides[0]?.connector !== sides[1]?.connector) {
    const message = `\`${first.entity}\` and \`${second.entity}\` are in different databases`;
    return conflict('conversion', message, 'both must be of one connector');
  }
  const linked = linkedBy(metric.entity, first, second, graph);
  if (typeof linked === 'string')
    return conflict('entity', linked, 'declare one relationship, or write `constant_properties`');
  const known = metric.same.map((pair, i) =>
    (['base', 'conversion'] as const).every((side, n) => {
      const entity = sides[n];
      if (entity === undefined || columnOf(entity, pair[side]) !== null) return true;
      const names = entity.columns.map((c) => c.name);
      problems.unknown([...path, 'constant_properties', i, side], 'column', pair[side], names);
      return false;
    }),
  );
  if (known.includes(false)) return null;
  return Object.freeze({
    ...metric,
    entity: first.entity,
    conversionEntity: second.entity,
    same: Object.freeze([...linked, ...metric.same]),
  });
}

/** Column pairs by which the rows of both lead to one row of `entity`, or the reason why there are none. */
function linkedBy(
  entity: string,
  base: SimpleMetric,
  later: SimpleMetric,
  graph: MetricRelations,
): readonly SameColumns[] | string {
  if (entity === '') return [];
  const [from, to] = [base, later].map((m) => waysTo(entity, m.entity, graph));
  for (const [ways, { entity: side }] of [
    [from, base],
    [to, later],
  ] as const) {
    if (ways?.length === 1) continue;
    return ways?.length === 0
      ? `no relationship leads from \`${side}\` to \`${entity}\``
      : `several relationships lead from \`${side}\` to \`${entity}\``;
  }
  const pairs = [...(from?.[0] ?? [])].map(([key, column]) => ({
    base: column,
    conversion: to?.[0]?.get(key),
  }));
  const whole = pairs.flatMap(({ base: a, conversion: b }) =>
    b === undefined ? [] : [Object.freeze({ base: a, conversion: b })],
  );
  return whole.length === pairs.length
    ? whole
    : `the relationships lead to different columns of \`${entity}\``;
}

/** Each way from a row of `side` to its row of `entity`: columns of `side` by key columns of `entity`. */
function waysTo(
  entity: string,
  side: string,
  { relations, edges }: MetricRelations,
): readonly ReadonlyMap<string, string>[] {
  const key = relations.get(entity)?.primaryKey ?? [];
  if (side === entity) return key.length === 0 ? [] : [new Map(key.map((k) => [k, k]))];
  return edges
    .filter((e) => e.bridge === null && e.from === side && e.to === entity)
    .map((e) => new Map(e.toColumns.map((column, i) => [column, e.fromColumns[i] ?? ''])));
}
