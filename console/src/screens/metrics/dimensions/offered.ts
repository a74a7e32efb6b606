import { isMoment } from 'osl-compiler/types';
import type { Schema } from '../../../../../clients/typescript/types.js';
import { reachedFrom, stepsOf } from './routes.js';

/** Something that all picked metrics can be grouped by, as far as the schema tells. The server has the last word. */
export interface DimensionChoice {
  /** As a metrics body names it: `customer__region`. */
  readonly name: string;
  /** The entity, or the way to it. */
  readonly from: string;
  readonly column: string;
  readonly type: string;
  readonly description: string | null;
  readonly masked: 'none' | 'some' | 'all';
  /** A date or a time, which is grouped by periods. */
  readonly isTime: boolean;
  /** True if a predicate can name it. Source: `NAME` of compiler/src/bind/metrics/where.ts. */
  readonly filterable: boolean;
  /** What joins use. */
  readonly isKey: boolean;
}

/** What rows of all these entities lead to, nearest first. Without entities there is nothing. */
export function offeredFor(entities: readonly string[], schema: Schema): readonly DimensionChoice[] {
  const steps = stepsOf(schema);
  const [first, ...more] = entities.map((entity) => reachedFrom(entity, steps));
  if (first === undefined) return [];
  const shared = first.filter(({ prefix }) => more.every((way) => way.some((r) => r.prefix === prefix)));
  const byName = new Map(schema.entities.map((e) => [e.name, e]));
  const all = shared.flatMap(({ entity, prefix }) => {
    const owner = byName.get(entity);
    return (owner?.columns ?? []).map((column) => ({
      ...offeredOf(prefix, column),
      isKey: owner?.entity_key_columns.includes(column.name) === true,
    }));
  });
  // Keys name one row each, so that few group by them: they come last.
  return [...all.filter((o) => !o.isKey), ...all.filter((o) => o.isKey)];
}

function offeredOf(
  prefix: string,
  column: Schema['entities'][number]['columns'][number],
): Omit<DimensionChoice, 'isKey'> {
  const name = `${prefix}__${column.name}`;
  return {
    name,
    from: prefix,
    column: column.name,
    type: column.type,
    description: column.description,
    masked: column.masked,
    isTime: isMoment(column.type),
    filterable: /^[A-Za-z0-9_]{1,200}$/.test(name),
  };
}

/** Entities whose rows a plan takes, from its full names: `osl.entities.order`. */
export function entitiesIn(objects: readonly string[]): readonly string[] {
  const prefix = 'osl.entities.';
  return objects.filter((o) => o.startsWith(prefix)).map((o) => o.slice(prefix.length).replaceAll('"', ''));
}
