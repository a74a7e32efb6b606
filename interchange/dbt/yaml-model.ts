import type { TypeName } from 'osl-compiler';
import { safeText } from '../names.js';
import type { SourceMapping } from '../source.js';
import { attempt, nameOf, parseExpression } from '../sql-expression.js';

/** An entity or a dimension of a semantic model, read from either form of dbt's YAML. */
export interface ModelElement {
  readonly name: string;
  /** Type of the entity or dimension, in lower case. */
  readonly kind: string;
  readonly expr: string;
  /** Name of the column, if the expression is a single column; null if the element is computed. */
  readonly physical: string | null;
  readonly description: string | null;
  /** Grain of a time dimension and the key that declares it; null if no grain is declared. */
  readonly grain: { readonly text: string; readonly part: SourceMapping; readonly key: string } | null;
  /** The mapping that may contain `validity_params`; null if the element has no such mapping. */
  readonly validity: SourceMapping | null;
  /** The mapping that declares the element; for the short form `dimension: time`, the mapping of the column. */
  readonly part: SourceMapping;
  /** Key of `part` that holds the type. */
  readonly kindKey: 'type' | 'entity' | 'dimension';
}

/** Reports an element as lost. If a single key of a column declares the element, only that key is reported. */
export function loseElement({ part, kindKey }: ModelElement, reason: string): void {
  if (kindKey === 'type') part.loseAll(reason);
  else part.lose(kindKey, reason);
}

/** Reads an item of `entities` or `dimensions` of a semantic model at the top level of a file. */
export function statedElement(part: SourceMapping): ModelElement {
  const params = part.child('type_params');
  const grain = params?.text('time_granularity')?.toLowerCase() ?? null;
  return {
    ...ownElement(part),
    grain: params === null || grain === null ? null : { text: grain, part: params, key: 'time_granularity' },
    validity: params,
  };
}

/** Reads an item of `derived_semantics`. */
function derivedElement(part: SourceMapping): ModelElement {
  const grain = part.text('granularity')?.toLowerCase() ?? null;
  return {
    ...ownElement(part),
    grain: grain === null ? null : { text: grain, part, key: 'granularity' },
    validity: part,
  };
}

function ownElement(part: SourceMapping): Omit<ModelElement, 'grain' | 'validity'> {
  const expr = exprOf(part, part.needText('name'));
  return {
    name: part.needText('name'),
    kind: (part.text('type') ?? '').toLowerCase(),
    expr,
    physical: plainColumn(expr),
    description: descriptionOf(part),
    part,
    kindKey: 'type',
  };
}

/** Reads the entity or the dimension that a column declares; null if it declares none. */
function columnElement(column: SourceMapping, key: 'entity' | 'dimension'): ModelElement | null {
  if (!column.has(key)) return null;
  const name = column.needText('name');
  const text = key === 'dimension' ? (column.text('granularity')?.toLowerCase() ?? null) : null;
  const common = {
    expr: name,
    physical: name,
    grain: text === null ? null : { text, part: column, key: 'granularity' },
  };
  if (column.isText(key)) {
    const kind = (column.text(key) ?? '').toLowerCase();
    return { ...common, name, kind, description: null, validity: null, part: column, kindKey: key };
  }
  const part = column.child(key);
  if (part === null) return null;
  return {
    ...common,
    name: part.text('name') ?? name,
    kind: (part.text('type') ?? '').toLowerCase(),
    description: descriptionOf(part),
    validity: part,
    part,
    kindKey: 'type',
  };
}

/** Returns the expression of an entity, dimension or measure, which defaults to `name`. */
export function exprOf(part: SourceMapping, name: string): string {
  const written = part.scalar('expr');
  return written === null || written === '' ? name : written;
}

/** Returns the column name if the expression is a single column; otherwise null. */
function plainColumn(text: string): string | null {
  const parsed = attempt(() => nameOf(parseExpression(text)));
  return parsed.ok && parsed.value !== null && parsed.value.length === 1 ? (parsed.value[0] ?? null) : null;
}

/** True if `text` contains a template, which is never evaluated. */
export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%') || text.includes('{#');
}

/** Returns the description; null if absent or a template, which is reported instead of being evaluated. */
export function descriptionOf(part: SourceMapping): string | null {
  const text = part.text('description');
  if (text === null || text.trim() === '') return null;
  if (isTemplate(text)) {
    part.note('description', 'lost', 'a template in a description is not evaluated');
    return null;
  }
  return part.cut('description', text, 'the description');
}

/** Declarations for a table in `models:`, as far as a manifest can express them. */
export interface ModelInfo {
  readonly table: string;
  readonly description: string | null;
  readonly columns: ReadonlyMap<string, ModelColumn>;
  readonly primaryKey: readonly string[] | null;
  readonly foreignKeys: readonly ForeignKeyConstraint[];
  readonly part: SourceMapping;
  used: boolean;
}

/** A `foreign_key` constraint of a model, or of one of its columns. */
export interface ForeignKeyConstraint {
  readonly columns: readonly string[];
  /** Target table as written: `ref('orders')`, `source('raw', 'orders')` or `raw.orders`. */
  readonly to: string;
  /** Target columns; empty if the constraint names none and so refers to the primary key. */
  readonly toColumns: readonly string[];
  readonly part: SourceMapping;
}

export interface ModelColumn {
  readonly type: TypeName | null;
  readonly notNull: boolean;
  readonly description: string | null;
  readonly part: SourceMapping;
}

/** A semantic model that is declared inside its dbt model, the form used by dbt 1.12 and Fusion. */
export interface NestedModel {
  readonly part: SourceMapping;
  /** Name of the semantic model; by default, the name of the model. */
  readonly name: string;
  readonly info: ModelInfo;
  /** Reads the entities and dimensions declared by the columns and by `derived_semantics`. */
  readonly elements: () => ModelElements;
}

interface ModelElements {
  readonly entities: readonly ModelElement[];
  readonly dimensions: readonly ModelElement[];
}

/** Returns the semantic model of a dbt model. If none is enabled, reports the keys that need one and returns null. */
export function nestedModel(part: SourceMapping, info: ModelInfo): NestedModel | null {
  const stated = part.isFlag('semantic_model') ? null : part.child('semantic_model');
  const enabled =
    stated === null ? part.isFlag('semantic_model') && part.flag('semantic_model') : isOn(stated);
  stated?.lose('group', 'a group of dbt has no counterpart');
  stated?.lose('config', 'configuration of dbt has no counterpart');
  const own = stated?.text('name') ?? part.needText('name');
  if (enabled === true) return { part, name: own, info, elements: () => elementsOf(part) };
  const why = `no semantic model of \`${safeText(own)}\` is enabled`;
  for (const key of ['agg_time_dimension', 'primary_entity', 'derived_semantics', 'metrics'])
    part.lose(key, why);
  for (const column of part.parts('columns'))
    for (const key of ['entity', 'dimension', 'granularity']) column.lose(key, why);
  return null;
}

function isOn(stated: SourceMapping): boolean {
  return stated.flag('enabled') ?? true;
}

function elementsOf(part: SourceMapping): ModelElements {
  const columns = part.parts('columns');
  const derived = part.child('derived_semantics');
  for (const column of columns)
    if (!column.has('dimension')) column.lose('granularity', 'a column that is not a dimension has no grain');
  return {
    entities: [
      ...columns.flatMap((c) => columnElement(c, 'entity') ?? []),
      ...(derived?.parts('entities') ?? []).map(derivedElement),
    ],
    dimensions: [
      ...columns.flatMap((c) => columnElement(c, 'dimension') ?? []),
      ...(derived?.parts('dimensions') ?? []).map(derivedElement),
    ],
  };
}
