import { isMoment } from 'osl-compiler/types';
import type { Schema } from '../../../../../clients/typescript/types.js';

/** A dimension by which all selected metrics can be grouped according to the schema; the server has the final say. */
export interface DimensionChoice {
  /** Name in the body of a metrics query: `customer__region`. */
  readonly name: string;
  /** Entity that has the column, or the path to that entity. */
  readonly from: string;
  readonly column: string;
  readonly type: string;
  readonly description: string | null;
  readonly masked: 'none' | 'some' | 'all';
  /** True for a date or time, which is grouped into periods. */
  readonly isTime: boolean;
  /** True if a filter can name the dimension. See `NAME` in compiler/src/bind/metrics/request-parts.ts. */
  readonly filterable: boolean;
  /** True for the entity's key columns, which joins use. */
  readonly isKey: boolean;
}

/** Returns the columns reachable from the rows of every entity in `entities`, nearest first and keys last. */
export function dimensionsFor(entities: readonly string[], schema: Schema): readonly DimensionChoice[] {
  const steps = stepsOf(schema);
  const [first, ...more] = entities.map((entity) => reachedFrom(entity, steps));
  if (first === undefined) return [];
  const shared = first.filter(({ prefix }) => more.every((way) => way.some((r) => r.prefix === prefix)));
  const byName = new Map(schema.entities.map((e) => [e.name, e]));
  const all = shared.flatMap(({ entity, prefix }) => {
    const owner = byName.get(entity);
    return (owner?.columns ?? []).map(({ name: column, type, description, masked }): DimensionChoice => {
      const name = `${prefix}__${column}`;
      const filterable = /^[A-Za-z0-9_]{1,200}$/.test(name);
      const [isTime, isKey] = [isMoment(type), owner?.entity_key_columns.includes(column) === true];
      return { name, from: prefix, column, type, description, masked, isTime, filterable, isKey };
    });
  });
  // Keys identify individual rows and are rarely used for grouping, so they come last.
  return [...all.filter((o) => !o.isKey), ...all.filter((o) => o.isKey)];
}

/** Returns the entities whose rows a plan uses, from the full names of its objects: `osl.entities.order`. */
export function entitiesIn(objects: readonly string[]): readonly string[] {
  const prefix = 'osl.entities.';
  return objects.filter((o) => o.startsWith(prefix)).map((o) => o.slice(prefix.length).replaceAll('"', ''));
}

/** A relationship, followed from the many side to the one side. */
export interface RelationshipStep {
  readonly relationship: string;
  readonly from: string;
  readonly to: string;
  /** Pairs of columns that must be equal: the first belongs to `from`, the second to `to`. */
  readonly on: readonly (readonly [string, string])[];
}

/** Returns each entity's steps that lead to at most one row, so that grouping does not inflate figures. */
export function stepsOf(schema: Schema): ReadonlyMap<string, readonly RelationshipStep[]> {
  const keys = new Map(schema.entities.map((e) => [e.name, e.primary_key]));
  const steps = new Map<string, RelationshipStep[]>();
  const add = (step: RelationshipStep): void => {
    const known = steps.get(step.from);
    if (known === undefined) steps.set(step.from, [step]);
    else known.push(step);
  };
  for (const { name, from, to, bridge } of schema.relationships) {
    if (bridge !== null) continue;
    const on = from.columns.map((column, i) => [column, to.columns[i] ?? ''] as const);
    if (isKey(keys.get(to.entity), to.columns))
      add({ relationship: name, from: from.entity, to: to.entity, on });
    if (isKey(keys.get(from.entity), from.columns))
      add({ relationship: name, from: to.entity, to: from.entity, on: on.map(([a, b]) => [b, a] as const) });
  }
  return steps;
}

function isKey(key: readonly string[] | undefined, columns: readonly string[]): boolean {
  return key !== undefined && key.length > 0 && key.every((name) => columns.includes(name));
}

/** Entity reachable from another, with the prefix for its path in dimension names: `customer`, `sent_by`, `a__b`. */
interface ReachableEntity {
  readonly entity: string;
  readonly prefix: string;
  /** Path to the entity; empty for the entity itself. */
  readonly way: readonly RelationshipStep[];
}

/** Maximum number of entities found, so that the search is fast for graphs of any size. */
const MOST_REACHED = 500;

/**
 * Returns the entities reachable from `start`. If only one shortest path leads to an entity, the entity's own name is
 * used as the prefix. If there are several, the names of the relationships are used, since the server would refuse the
 * ambiguous name.
 */
export function reachedFrom(
  start: string,
  steps: ReadonlyMap<string, readonly RelationshipStep[]>,
): readonly ReachableEntity[] {
  const found: ReachableEntity[] = [{ entity: start, prefix: start, way: [] }];
  const seen = new Set([start]);
  let edge: readonly (readonly RelationshipStep[])[] = (steps.get(start) ?? []).map((step) => [step]);
  while (edge.length > 0 && found.length < MOST_REACHED) {
    const ways = new Map<string, (readonly RelationshipStep[])[]>();
    for (const way of edge) {
      const to = way.at(-1)?.to ?? start;
      if (seen.has(to) && !isLoop(way)) continue;
      const known = ways.get(to);
      if (known === undefined) ways.set(to, [way]);
      else known.push(way);
    }
    for (const [entity, all] of ways) found.push(...namesOf(entity, all));
    for (const entity of ways.keys()) seen.add(entity);
    edge = [...ways].flatMap(([entity, all]) =>
      entity === start ? [] : all.flatMap((way) => (steps.get(entity) ?? []).map((step) => [...way, step])),
    );
  }
  return found.slice(0, MOST_REACHED);
}

function isLoop(way: readonly RelationshipStep[]): boolean {
  return way.length === 1 && way[0]?.from === way[0]?.to;
}

function namesOf(entity: string, ways: readonly (readonly RelationshipStep[])[]): readonly ReachableEntity[] {
  const [first] = ways;
  if (first !== undefined && ways.length === 1 && !isLoop(first))
    return [{ entity, prefix: entity, way: first }];
  return ways.map((way) => ({
    entity,
    prefix: way.map((step) => step.relationship).join('__'),
    way,
  }));
}
