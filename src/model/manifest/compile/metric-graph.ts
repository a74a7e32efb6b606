import {
  type ConversionMetric,
  columnOf,
  type Edge,
  inputsOf,
  type Metric,
  QueryError,
  type SameColumns,
  type SimpleMetric,
} from 'osl-compiler';
import { CODES, type Path, type Problems, type RelationMap } from '../diagnostic.js';

/**
 * Maximum number of leaves (simple and cumulative metrics; a conversion counts as two) in one metric. In a chain of
 * sums, the number can double with each step.
 */
const MOST_LEAVES = 100;
const MOST_LEVELS = 20;

interface ResolvedMetric extends CombinedMetric {
  /** Length of the longest chain of metrics made of metrics, this one included. */
  readonly levels: number;
}

interface CombinedMetric {
  readonly metric: Metric;
  readonly entities: ReadonlySet<string>;
  readonly leaves: number;
  /** True if the metric is, or contains, one that reads rows from other times: a cumulative metric or a conversion. */
  readonly cumulative: boolean;
}

/**
 * Returns the metrics in declared order, with entities filled in from their inputs. A metric with an unknown, circular
 * or unsuitable input is reported and left out.
 *
 * @param broken metrics that are declared but could not be compiled
 */
export function resolvedMetrics(
  declared: ReadonlyMap<string, Metric>,
  broken: ReadonlySet<string>,
  graph: MetricRelations,
  problems: Problems,
): readonly (readonly [string, Metric])[] {
  const known = new Map<string, ResolvedMetric | null>([...broken].map((name) => [name, null]));
  const resolve = (name: string, above: readonly string[]): ResolvedMetric | null => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const metric = declared.get(name);
    if (metric === undefined) return null;
    known.set(name, null); // marks the metric as being visited: a second visit means a cycle
    const path = [...above, name];
    const inputs = references(metric, problems).map((reference) => {
      if (reference === null) return null;
      const { input, at } = reference;
      if (path.includes(input)) {
        const circle = [...path.slice(path.indexOf(input)), input].map((n) => `\`${n}\``).join(' → ');
        problems.add(CODES.conflict, at, `a metric cannot be made of itself: ${circle}`);
        return null;
      }
      if (path.length + (known.get(input)?.levels ?? 1) > MOST_LEVELS) {
        problems.add(CODES.notAllowed, at, `metrics are made of metrics more than ${MOST_LEVELS} times here`);
        return null;
      }
      if (!declared.has(input) && !broken.has(input))
        problems.unknown(at, 'metric', input, [...declared.keys()]);
      return resolve(input, path);
    });
    const whole = inputs.every((i) => i !== null) ? inputs.filter((i) => i !== null) : null;
    const made = whole === null ? null : combined(metric, whole, graph, problems);
    const levels = 1 + Math.max(0, ...(whole ?? []).map((i) => i.levels));
    const resolved = made === null ? null : { ...made, levels };
    known.set(name, resolved);
    return resolved;
  };
  return [...declared.keys()].flatMap((name) => {
    const resolved = resolve(name, []);
    return resolved === null ? [] : [[name, resolved.metric] as const];
  });
}

interface InputReference {
  readonly input: string;
  readonly at: Path;
}

/** Returns the inputs of a metric, each with its path; a list with a single null if the expression is invalid. */
function references(metric: Metric, problems: Problems): readonly (InputReference | null)[] {
  const path: Path = ['metrics', metric.name];
  if (metric.type === 'ratio') {
    return [
      { input: metric.numerator.metric, at: [...path, 'numerator'] },
      { input: metric.denominator.metric, at: [...path, 'denominator'] },
    ];
  }
  if (metric.type === 'conversion') {
    return [
      { input: metric.base, at: [...path, 'base'] },
      { input: metric.conversion, at: [...path, 'conversion'] },
    ];
  }
  const at = [...path, metric.type === 'cumulative' ? 'metric' : 'expression'];
  try {
    return inputsOf(metric).map((input) => ({ input, at }));
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    problems.add(CODES.badExpression, at, error.message, error.hint);
    return [null];
  }
}

function combined(
  metric: Metric,
  inputs: readonly ResolvedMetric[],
  graph: MetricRelations,
  problems: Problems,
): CombinedMetric | null {
  const path: Path = ['metrics', metric.name];
  if (metric.type === 'simple') {
    return { metric, entities: new Set([metric.entity]), leaves: 1, cumulative: false };
  }
  if (metric.type === 'conversion') return resolvedConversion(metric, inputs, graph, problems);
  const entities = new Set(inputs.flatMap((i) => [...i.entities]));
  const leaves = inputs.reduce((sum, i) => sum + i.leaves, 0);
  const [entity] = entities;
  if (leaves > MOST_LEAVES) {
    problems.add(CODES.notAllowed, path, `\`${metric.name}\` is made of more than ${MOST_LEAVES} metrics`);
    return null;
  }
  if (entity === undefined) {
    const at = [...path, 'expression'];
    problems.add(CODES.badExpression, at, `\`${metric.name}\` names no metric`);
    return null;
  }
  if (metric.type !== 'cumulative') {
    const cumulative = inputs.some((i) => i.cumulative);
    const only = entities.size === 1 ? entity : null;
    return { metric: Object.freeze({ ...metric, entity: only }), entities, leaves, cumulative };
  }
  const fault = cumulativeFault(metric.metric, inputs, entities, graph.relations);
  if (fault !== null) {
    problems.add(CODES.conflict, [...path, 'metric'], fault.message, fault.hint);
    return null;
  }
  return { metric: Object.freeze({ ...metric, entity }), entities, leaves: 1, cumulative: true };
}

/** Resolves a conversion metric. It counts as two leaves, because its rate also contains its base. */
function resolvedConversion(
  metric: ConversionMetric,
  inputs: readonly ResolvedMetric[],
  graph: MetricRelations,
  problems: Problems,
): CombinedMetric | null {
  const [base, later] = inputs.map((i) => i.metric);
  const joined =
    base === undefined || later === undefined
      ? null
      : resolveConversion(metric, base, later, graph, problems);
  return joined === null
    ? null
    : { metric: joined, entities: new Set([joined.entity]), leaves: 2, cumulative: true };
}

function cumulativeFault(
  base: string,
  inputs: readonly ResolvedMetric[],
  entities: ReadonlySet<string>,
  relations: RelationMap,
): { readonly message: string; readonly hint: string } | null {
  if (inputs.some((i) => i.cumulative)) {
    const message = `\`${base}\` takes rows of other times already`;
    return { message, hint: 'name the metric that it is made of' };
  }
  if (entities.size > 1) {
    const message = `\`${base}\` takes rows of several entities, so no one time orders them`;
    return { message, hint: 'declare such a metric for each part, and derive from those' };
  }
  const [entity] = entities;
  const relation = relations.get(entity ?? '');
  if (relation === undefined || relation.timeDimension !== undefined) return null;
  const hint = `add \`time_dimension\` to \`${entity}\``;
  return { message: `\`${entity}\` has no time dimension to add up along`, hint };
}

interface MetricRelations {
  readonly relations: RelationMap;
  readonly edges: readonly Edge[];
}

/** Returns `metric` with the entities of its events and the columns on which they are joined; null if it is invalid. */
function resolveConversion(
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
      return conflict(key, `\`${input.name}\` is not a simple metric`, 'events are the rows of one entity');
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

/** Returns the column pairs that link rows of both metrics to the same row of `entity`, or why no link is usable. */
function linkedBy(
  entity: string,
  base: SimpleMetric,
  later: SimpleMetric,
  graph: MetricRelations,
): readonly SameColumns[] | string {
  if (entity === '') return [];
  const [from, to] = [base, later].map((m) => pathsTo(entity, m.entity, graph));
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

/**
 * Returns the direct links from `side` to `entity`, each as a map from key columns of `entity` to columns of `side`.
 */
function pathsTo(
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
