import { type Grain, parseGrain } from 'osl-compiler';
import { safeText } from '../names.js';
import {
  hasAggregate,
  identifier,
  markedName,
  markOf,
  NoMapping,
  parseExpression,
  print,
  refuseControlCharacters,
} from '../sql-expression.js';
import { columnCalled, type DbtModel } from './model.js';
import { isTemplate } from './yaml-model.js';

const NAME = `(?:'([A-Za-z0-9_]{1,200})'|"([A-Za-z0-9_]{1,200})")`;
const BUILDER = new RegExp(
  `\\{\\{\\s*(Dimension|TimeDimension|Entity)\\s*\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)` +
    `\\s*(?:\\.\\s*grain\\s*\\(\\s*${NAME}\\s*\\)\\s*)?\\}\\}`,
  'g',
);

interface FilterCall {
  readonly kind: string;
  readonly name: string;
  readonly grain: string | null;
}

/**
 * Converts a dbt `where` to a predicate over the columns of the entity and of linked rows.
 *
 * @throws NoMapping for templates other than Dimension, TimeDimension and Entity, and values that need a join
 */
export function filterText(text: string, scope: DbtModel): string {
  refuseControlCharacters(text);
  const builders: FilterCall[] = [];
  const sql = text.replace(BUILDER, (...match: readonly (string | undefined)[]) => {
    const [, kind = '', n1, n2, g1, g2, h1, h2] = match;
    builders.push({ kind, name: n1 ?? n2 ?? '', grain: g1 ?? g2 ?? h1 ?? h2 ?? null });
    return markedName(builders.length - 1);
  });
  if (isTemplate(sql)) throw new NoMapping('its template is not one of Dimension, TimeDimension and Entity');
  const node = parseExpression(sql);
  if (hasAggregate(node)) throw new NoMapping('it holds an aggregate');
  return print(node, {
    column: (parts) => {
      const [name = '', more] = parts;
      const builder = more === undefined ? builders[markOf(name) ?? -1] : undefined;
      if (builder === undefined)
        throw new NoMapping(`\`${safeText(parts.join('.'))}\` stands outside a template`);
      return builderText(builder, scope);
    },
  });
}

function builderText({ kind, name, grain }: FilterCall, scope: DbtModel): string {
  const { column, of, way } = columnOf(kind, name, scope);
  const text = [...way, column].map(identifier).join('.');
  if (kind === 'Entity') {
    if (grain !== null) throw new NoMapping('an entity has no grain');
    return text;
  }
  const declared = of.grains.get(column) ?? null;
  const wanted = grain ?? (kind === 'TimeDimension' ? declared : null);
  return wanted === null ? text : `date_trunc('${grainOf(wanted)}', ${text})`;
}

function grainOf(text: string): Grain {
  const grain = parseGrain(text);
  if (grain === null) throw new NoMapping(`\`${safeText(text)}\` is not a grain`);
  return grain;
}

interface FilterColumn {
  readonly column: string;
  readonly of: DbtModel;
  readonly way: readonly string[];
}

function columnOf(kind: string, name: string, scope: DbtModel): FilterColumn {
  const { entity, prefix, entityColumns } = scope;
  if (name === 'metric_time') {
    if (entity.time === null) throw new NoMapping('there is no `metric_time`');
    return { column: entity.time, of: scope, way: [] };
  }
  if (kind === 'Entity') {
    const own = entityColumns.get(name.toLowerCase());
    if (own === undefined) throw new NoMapping(`entity \`${name}\` is of another model`);
    return { column: own, of: scope, way: [] };
  }
  const words = name.split('__');
  const owners = words.slice(0, -1);
  const links = owners[0]?.toLowerCase() === prefix.toLowerCase() ? owners.slice(1) : owners;
  let of = scope;
  const way: string[] = [];
  for (const link of links) {
    const parent = of.parents.get(link.toLowerCase());
    if (parent === undefined)
      throw new NoMapping(`no row of \`${of.entity.name}\` leads to \`${safeText(link)}\``);
    of = parent.model;
    way.push(parent.relationship);
  }
  const column = columnCalled(words.at(-1) ?? '', of);
  if (column === null) throw new NoMapping(`\`${name}\` is not a column of \`${of.entity.name}\``);
  return { column, of, way };
}
