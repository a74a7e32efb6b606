import { type Grain, grainNamed } from 'osl-compiler';
import type { EntityDraft } from '../draft.js';
import { shown } from '../shown.js';
import { hasAggregate, markedName, markOf, mustBePlain, NoFit, parseExpression } from '../sql/expression.js';
import { identifier } from '../sql/identifier.js';
import { print } from '../sql/print.js';
import { isTemplate } from './reference.js';

const NAME = `(?:'([A-Za-z0-9_]{1,200})'|"([A-Za-z0-9_]{1,200})")`;
const BUILDER = new RegExp(
  `\\{\\{\\s*(Dimension|TimeDimension|Entity)\\s*\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)` +
    `\\s*(?:\\.\\s*grain\\s*\\(\\s*${NAME}\\s*\\)\\s*)?\\}\\}`,
  'g',
);

interface Builder {
  readonly kind: string;
  readonly name: string;
  readonly grain: string | null;
}

/** The entity whose rows are filtered, and what its model calls itself and others. */
export interface FilterScope {
  readonly entity: EntityDraft;
  /** The primary entity of the model: what stands before `__`. */
  readonly prefix: string;
  /** Columns of the model's own entities, by entity name. */
  readonly entityColumns: ReadonlyMap<string, string>;
  /** The grain in which a time dimension is declared, by its column. */
  readonly grains: ReadonlyMap<string, string>;
}

/**
 * A `where` of dbt as a predicate over the entity's own columns.
 *
 * @throws NoFit for a template that is none of the three builders, and for what only a join could tell
 */
export function filterText(text: string, scope: FilterScope): string {
  mustBePlain(text);
  const builders: Builder[] = [];
  const sql = text.replace(BUILDER, (...match: readonly (string | undefined)[]) => {
    const [, kind = '', n1, n2, g1, g2, h1, h2] = match;
    builders.push({ kind, name: n1 ?? n2 ?? '', grain: g1 ?? g2 ?? h1 ?? h2 ?? null });
    return markedName(builders.length - 1);
  });
  if (isTemplate(sql)) throw new NoFit('its template is not one of Dimension, TimeDimension and Entity');
  const node = parseExpression(sql);
  if (hasAggregate(node)) throw new NoFit('it holds an aggregate');
  return print(node, {
    column: (parts) => {
      const [name = '', more] = parts;
      const builder = more === undefined ? builders[markOf(name) ?? -1] : undefined;
      if (builder === undefined) throw new NoFit(`\`${shown(parts.join('.'))}\` stands outside a template`);
      return builderText(builder, scope);
    },
  });
}

function builderText({ kind, name, grain }: Builder, scope: FilterScope): string {
  const column = columnOf(kind, name, scope);
  if (kind === 'Entity') {
    if (grain !== null) throw new NoFit('an entity has no grain');
    return identifier(column);
  }
  const declared = scope.grains.get(column) ?? null;
  const wanted = grain ?? (kind === 'TimeDimension' ? declared : null);
  if (wanted === null) return identifier(column);
  return `date_trunc('${grainOf(wanted)}', ${identifier(column)})`;
}

function grainOf(text: string): Grain {
  const grain = grainNamed(text);
  if (grain === null) throw new NoFit(`\`${shown(text)}\` is no grain`);
  return grain;
}

function columnOf(kind: string, name: string, { entity, prefix, entityColumns }: FilterScope): string {
  if (name === 'metric_time') {
    if (entity.time === null) throw new NoFit('there is no `metric_time`');
    return entity.time;
  }
  if (kind === 'Entity') {
    const own = entityColumns.get(name.toLowerCase());
    if (own === undefined)
      throw new NoFit(`entity \`${name}\` is of another model, which a filter cannot join`);
    return own;
  }
  const at = name.lastIndexOf('__');
  const owner = at === -1 ? prefix : name.slice(0, at);
  if (owner.toLowerCase() !== prefix.toLowerCase())
    throw new NoFit(`\`${name}\` is of another model, which the filter of a metric cannot join`);
  const column = entity.column(at === -1 ? name : name.slice(at + 2));
  if (column === null) throw new NoFit(`\`${name}\` is no column of \`${entity.name}\``);
  return column.name;
}
