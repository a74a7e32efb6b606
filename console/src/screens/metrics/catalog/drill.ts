import { identifier, quoteLiteral } from 'osl-compiler/sql-text';
import type { Schema } from '../../../../../clients/typescript/types.js';
import type { DayRange, Filter, TimeGrain } from '../choice/choice.js';
import { addDays, lastDayOf } from '../choice/period.js';
import { type RelationshipStep, reachedFrom, stepsOf } from './dimensions.js';

/** A condition that all rows behind a value meet. */
export type DrillCondition =
  | { readonly kind: 'filter'; readonly filter: Filter }
  /** The dimension has this value, as returned by the server; null for rows without a value. */
  | { readonly kind: 'value'; readonly name: string; readonly value: unknown }
  /** The time is in the period that begins with `start`; null for rows without a time. */
  | {
      readonly kind: 'period';
      readonly name: string;
      readonly grain: TimeGrain;
      readonly start: string | null;
    };

export interface DrillQuestion {
  /** Entities whose rows the metric is computed from. */
  readonly entities: readonly string[];
  readonly metric: string;
  readonly conditions: readonly DrillCondition[];
  readonly range: DayRange;
}

/** A query in OSL-SQL for the rows of one entity, or the reason why it cannot be written. */
export type DrillQuery =
  | { readonly kind: 'query'; readonly entity: string; readonly text: string }
  | { readonly kind: 'refused'; readonly entity: string; readonly why: string };

/** Maximum number of rows of the query; the user can change it. */
const MOST_ROWS = 100;
const METRIC_TIME = 'metric_time';

/** Writes, for each entity, a query for the rows behind a value, or gives the reason why it cannot be written. */
export function drillQueries(question: DrillQuestion, schema: Schema): readonly DrillQuery[] {
  return question.entities.map((entity) => {
    try {
      return { kind: 'query', entity, text: new DrillText(entity, schema).write(question) };
    } catch (error) {
      if (error instanceof NotWritten) return { kind: 'refused', entity, why: error.message };
      throw error;
    }
  });
}

class NotWritten extends Error {}

type SchemaEntity = Schema['entities'][number];

interface JoinedEntity {
  readonly entity: SchemaEntity;
  readonly alias: string;
}

/** Builds the query for one entity, adding the joins that conditions need. */
class DrillText {
  readonly #schema: Schema;
  readonly #root: JoinedEntity;
  readonly #joined = new Map<string, JoinedEntity>();
  readonly #joins: string[] = [];

  constructor(name: string, schema: Schema) {
    this.#schema = schema;
    this.#root = this.#named(name, '');
  }

  /** Writes the query. @throws NotWritten if a condition cannot be written or the caller may not see individual rows */
  write({ metric, conditions, range }: DrillQuestion): string {
    const { entity, alias } = this.#root;
    const columns = entity.columns.filter((c) => c.use === 'rows');
    if (columns.length === 0) throw new NotWritten(aggregatesOnly(entity));
    const where = [...conditions.map((c) => this.#condition(c)), ...this.#range(range)];
    const time = columns.find((c) => c.name === entity.time_dimension);
    return [
      `-- Rows of ${entity.name} that ${metric} is computed from, as far as you may see them.`,
      '-- A filter in the definition of the metric is not applied here.',
      `select ${columns.map((c) => `${alias}.${identifier(c.name)}`).join(', ')}`,
      `from osl.entities.${identifier(entity.name)} ${alias}`,
      ...this.#joins,
      ...where.map((one, i) => `${i === 0 ? 'where' : '  and'} ${one}`),
      ...(time === undefined ? [] : [`order by ${alias}.${identifier(time.name)} desc`]),
      `limit ${MOST_ROWS}`,
    ].join('\n');
  }

  #condition(condition: DrillCondition): string {
    switch (condition.kind) {
      case 'filter':
        return this.#filter(condition.filter);
      case 'value': {
        const { sql } = this.#column(condition.name);
        return condition.value === null
          ? `${sql} is null`
          : `${sql} = ${literal(condition.value, condition.name)}`;
      }
      case 'period': {
        const column = this.#column(condition.name);
        return condition.start === null
          ? `${column.sql} is null`
          : within(column, condition.start, condition.grain);
      }
    }
  }

  #filter({ name, operator, values }: Filter): string {
    const { sql } = this.#column(name);
    const list = values.map((value) => literal(value, name)).join(', ');
    switch (operator) {
      case 'empty':
        return `${sql} is null`;
      case 'not_empty':
        return `${sql} is not null`;
      case 'is':
        return `${sql} in (${list})`;
      case 'is_not':
        return `(${sql} is null or ${sql} not in (${list}))`;
    }
  }

  #range({ start, end }: DayRange): readonly string[] {
    if (start === null && end === null) return [];
    const { sql, type } = this.#column(METRIC_TIME);
    return [
      ...(start === null ? [] : [`${sql} >= ${moment(start, type)}`]),
      ...(end === null ? [] : [`${sql} < ${moment(addDays(end, 1), type)}`]),
    ];
  }

  /** Resolves a dimension, joining its entity if necessary. */
  #column(name: string): { readonly sql: string; readonly type: string } {
    if (name === METRIC_TIME) return this.#time();
    const wanted = name.toLowerCase();
    for (const { prefix, way, entity } of reachedFrom(this.#root.entity.name, stepsOf(this.#schema))) {
      if (!wanted.startsWith(`${prefix.toLowerCase()}__`)) continue;
      const column = this.#entity(entity).columns.find(
        (c) => `${prefix}__${c.name}`.toLowerCase() === wanted,
      );
      if (column === undefined) continue;
      const { alias } = this.#join(way);
      return { sql: `${alias}.${identifier(column.name)}`, type: column.type };
    }
    throw new NotWritten(`${name} cannot be written as a condition on rows of ${this.#root.entity.name}.`);
  }

  #time(): { readonly sql: string; readonly type: string } {
    const { entity, alias } = this.#root;
    const column = entity.columns.find((c) => c.name === entity.time_dimension);
    if (column === undefined) throw new NotWritten(`${entity.name} has no time that you may see.`);
    return { sql: `${alias}.${identifier(column.name)}`, type: column.type };
  }

  #join(way: readonly RelationshipStep[]): JoinedEntity {
    let at = this.#root;
    let path = '';
    for (const { relationship, to, on } of way) {
      path += `${relationship} ${to} `;
      const known = this.#joined.get(path);
      if (known === undefined) {
        const next = this.#named(to, String(this.#joined.size + 1));
        const equal = on.map(([a, b]) => `${next.alias}.${identifier(b)} = ${at.alias}.${identifier(a)}`);
        this.#joins.push(`left join osl.entities.${identifier(to)} ${next.alias} on ${equal.join(' and ')}`);
        this.#joined.set(path, next);
        at = next;
      } else at = known;
    }
    return at;
  }

  /** Looks up an entity and gives it an alias. @param number suffix that makes the alias unique */
  #named(name: string, number: string): JoinedEntity {
    const letter = /^[a-z]/.exec(name.toLowerCase())?.[0] ?? 't';
    return { entity: this.#entity(name), alias: `${letter}${number}` };
  }

  #entity(name: string): SchemaEntity {
    const entity = this.#schema.entities.find((e) => e.name === name);
    if (entity === undefined) throw new NotWritten(`${name} is not in your schema.`);
    return entity;
  }
}

function aggregatesOnly({ name, minimum_group_size }: SchemaEntity): string {
  const size = minimum_group_size === null ? '' : `, over groups of at least ${minimum_group_size}`;
  return `Your grants allow only aggregates of ${name}${size}: there are no rows to show.`;
}

function literal(value: unknown, name: string): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string' && !value.includes('\0')) return quoteLiteral(value);
  throw new NotWritten(`A value of ${name} cannot be written as a condition.`);
}

/** Formats a day, which means its start in UTC, or a time returned by the server as a literal of the column's type. */
function moment(at: string, type: string): string {
  const [day = '', time = '00:00:00'] = at
    .replace(' ', 'T')
    .replace(/(?:Z|\+00)$/, '')
    .split('T');
  switch (type) {
    case 'date':
      return `date ${quoteLiteral(day)}`;
    case 'timestamp':
      return `timestamp ${quoteLiteral(`${day} ${time}`)}`;
    default:
      return `timestamptz ${quoteLiteral(`${day} ${time}+00`)}`;
  }
}

function within(
  { sql, type }: { readonly sql: string; readonly type: string },
  start: string,
  grain: TimeGrain,
) {
  const end = grain === 'hour' ? anHourAfter(start) : addDays(lastDayOf(start.slice(0, 10), grain), 1);
  return `${sql} >= ${moment(start, type)} and ${sql} < ${moment(end, type)}`;
}

function anHourAfter(start: string): string {
  const at = Date.parse(`${start.replace(' ', 'T').replace(/(?:Z|\+00)$/, '')}Z`);
  return new Date(at + 3_600_000).toISOString().slice(0, 19);
}
