import { type ColumnDraft, EntityDraft, type ImportDraft, type TableDraft } from '../draft.js';
import { safeText } from '../names.js';
import { type ModelImportOptions, reportSchema, tableNamed, upstreamOf } from '../options.js';
import { report, type SourceMapping } from '../source.js';
import { attempt, parseExpression } from '../sql-expression.js';
import { computedText } from '../types.js';
import { type DbtProject, modelReference } from './read.js';
import {
  descriptionOf,
  isTemplate,
  loseElement,
  type ModelColumn,
  type ModelElement,
  type ModelInfo,
  type NestedModel,
  statedElement,
} from './yaml-model.js';

/** A semantic model converted to an entity, with the names that its metrics use. */
export interface DbtModel {
  readonly part: SourceMapping;
  readonly entity: EntityDraft;
  /** Primary entity, used as the prefix before `__` in names. */
  readonly prefix: string;
  /** Columns of the model's entities, by lower-case entity name. */
  readonly entityColumns: Map<string, string>;
  /** Models that the foreign entities refer to, and the relationships to them, by lower-case entity name. */
  readonly parents: Map<string, { readonly relationship: string; readonly model: DbtModel }>;
  readonly grains: Map<string, string>;
  /** Column of each dimension, by lower-case name; null if it is computed or could not be imported. */
  readonly dimensions: Map<string, string | null>;
  /** Lower-case names of the time dimensions that are plain columns. */
  readonly times: Set<string>;
  readonly measures: readonly SourceMapping[];
  readonly defaultTime: string | null;
  readonly info: ModelInfo | null;
}

/** Reference from `model` to another model through the dbt entity `name`; `column` holds the key. */
export interface ForeignKeyDraft {
  readonly model: DbtModel;
  readonly name: string;
  readonly column: string;
  readonly part: SourceMapping;
  /** Key of `part` that declares the reference; null if the whole part does. */
  readonly key: 'entity' | null;
}

/** Parts of a semantic model, common to both forms of dbt's YAML. */
interface ModelSource {
  readonly part: SourceMapping;
  readonly own: string;
  readonly table: TableDraft;
  readonly info: ModelInfo | null;
  readonly description: string | null;
  readonly entities: readonly ModelElement[];
  readonly dimensions: readonly ModelElement[];
  readonly measures: readonly SourceMapping[];
  readonly primaryEntity: string | null;
  readonly defaultTime: string | null;
  /** The part that declares the default time; null if no part does. */
  readonly defaults: SourceMapping | null;
}

/** Adds the entity for a semantic model. If the model has no table, reports that and returns null. */
export function entityOf(
  part: SourceMapping,
  project: DbtProject,
  draft: ImportDraft,
  options: ModelImportOptions,
  links: ForeignKeyDraft[],
): DbtModel | null {
  const own = part.needText('name');
  const found = attempt(() => tableOf(part, project, options));
  if (!found.ok) return part.loseAll(`semantic model \`${safeText(own)}\` has no table: ${found.reason}`);
  const { table, info } = found.value;
  const defaults = part.child('defaults');
  const model = addModel(
    {
      part,
      own,
      table,
      info,
      description: descriptionOf(part) ?? info?.description ?? null,
      entities: part.parts('entities').map(statedElement),
      dimensions: part.parts('dimensions').map(statedElement),
      measures: part.parts('measures'),
      primaryEntity: part.text('primary_entity'),
      defaultTime: defaults?.text('agg_time_dimension') ?? null,
      defaults,
    },
    draft,
    options,
    links,
  );
  if (model === null) return null;
  part.ignore('metadata');
  part.lose('config', 'configuration of dbt has no counterpart');
  if (info?.description != null && part.has('description'))
    info.part.note('description', 'lost', 'its semantic model has a description of its own');
  const label = part.text('label');
  if (label !== null) draft.words([label], model.entity.name, part.at('label'));
  return model;
}

/** Adds the entity for a semantic model that is declared inside its model. */
export function nestedEntityOf(
  { part, name, info, elements }: NestedModel,
  draft: ImportDraft,
  options: ModelImportOptions,
  links: ForeignKeyDraft[],
): DbtModel | null {
  const found = attempt(() => tableNamed([info.table], options.connector));
  if (!found.ok) return part.loseAll(`semantic model \`${safeText(name)}\` has no table: ${found.reason}`);
  reportSchema(found.value, part.at('name'), options);
  const { entities, dimensions } = elements();
  return addModel(
    {
      part,
      own: name,
      table: found.value,
      info,
      description: info.description,
      entities,
      dimensions,
      measures: [],
      primaryEntity: part.text('primary_entity'),
      defaultTime: part.text('agg_time_dimension'),
      defaults: part,
    },
    draft,
    options,
    links,
  );
}

function addModel(
  source: ModelSource,
  draft: ImportDraft,
  options: ModelImportOptions,
  links: ForeignKeyDraft[],
): DbtModel | null {
  const { part, own, entities, info } = source;
  const primary = entities.find((e) => e.kind === 'primary') ?? entities.find((e) => e.kind === 'unique');
  const prefix = primary?.name ?? source.primaryEntity ?? own;
  if (source.primaryEntity !== null && source.primaryEntity !== prefix)
    part.note('primary_entity', 'lost', `its key is entity \`${safeText(prefix)}\``);
  const name = nameFor(own, prefix, part, draft);
  if (name === null) return null;
  const entity = new EntityDraft(name, source.table, part.place);
  entity.description = source.description;
  const model: DbtModel = {
    part,
    entity,
    prefix,
    entityColumns: new Map(),
    parents: new Map(),
    grains: new Map(),
    dimensions: new Map(),
    times: new Set(),
    measures: source.measures,
    defaultTime: source.defaultTime,
    info,
  };
  for (const e of entities) addEntityColumn(e, model, links);
  for (const d of source.dimensions) addDimension(d, model);
  settleKey(model, own, primary, options);
  settleTime(model, source.defaults);
  if (own !== name && prefix !== own)
    part.note('name', 'approximated', `\`${safeText(own)}\` is called \`${name}\`, as questions call it`);
  settleInfo(model);
  draft.addEntity(entity);
  return model;
}

/**
 * Chooses the entity's name: the name of the primary entity, which queries use as in `customer__region`, or the model's
 * own name if that is taken. Returns null if the name cannot be made valid.
 */
function nameFor(own: string, prefix: string, part: SourceMapping, draft: ImportDraft): string | null {
  const wanted = draft.entityNames.has(prefix) ? own : prefix;
  const name = draft.named(draft.entityNames, wanted, part.place);
  if (name !== null && wanted === own && own !== prefix)
    report(
      part.place,
      'approximated',
      `\`${safeText(prefix)}\` is the primary entity of another model too, so this one is called \`${name}\``,
    );
  return name;
}

function tableOf(
  part: SourceMapping,
  project: DbtProject,
  options: ModelImportOptions,
): { readonly table: TableDraft; readonly info: ModelInfo | null } {
  const relation = part.child('node_relation');
  if (relation !== null) {
    const alias = relation.needText('alias');
    const schema = relation.text('schema_name');
    relation.ignore('relation_name');
    relation.lose('database', 'a manifest names a connector instead of a database; use --connector');
    const table = tableNamed(schema === null ? [alias] : [schema, alias], options.connector);
    return { table, info: project.models.get(alias) ?? null };
  }
  const reference = modelReference(part.needText('model'));
  if (reference.kind === 'source')
    return { table: tableNamed([reference.schema, reference.table], options.connector), info: null };
  const info = project.models.get(reference.name) ?? null;
  const table = tableNamed([info?.table ?? reference.name], options.connector);
  reportSchema(table, part.at('model'), options);
  return { table, info };
}

function addEntityColumn(element: ModelElement, model: DbtModel, links: ForeignKeyDraft[]): void {
  const { part, name, kind, physical } = element;
  if (!['primary', 'unique', 'foreign', 'natural'].includes(kind)) {
    loseElement(element, `\`${safeText(name)}\`: \`${safeText(kind)}\` is not a kind of entity`);
    return;
  }
  if (physical === null) {
    loseElement(
      element,
      `entity \`${safeText(name)}\` is a key that is computed, which has no counterpart: a manifest names columns`,
    );
    return;
  }
  const added = attempt(
    () =>
      model.entity.physical(physical) ??
      model.entity.add(keyName(kind, name, physical), physical, part.place, {
        description: element.description,
      }),
  );
  if (!added.ok) {
    loseElement(element, added.reason);
    return;
  }
  const { name: column } = added.value;
  model.entityColumns.set(name.toLowerCase(), column);
  if (element.kindKey === 'type') {
    for (const key of ['role', 'label', 'config', 'entity'])
      part.lose(key, `the \`${key}\` of an entity has no counterpart`);
  }
  if (kind === 'foreign')
    links.push({ model, name, column, part, key: element.kindKey === 'entity' ? 'entity' : null });
  else if (kind === 'natural')
    part.note(
      element.kindKey,
      'approximated',
      'a natural key is a column like any other: rows are not matched by time',
    );
  else if (kind === 'unique')
    part.note(
      element.kindKey,
      'approximated',
      'a manifest declares one key of an entity, so this column is not known to be unique',
    );
}

/** Returns the column name for a dbt entity: for a primary or foreign one, the physical name, such as `customer_id`. */
function keyName(kind: string, name: string, physical: string): string {
  return kind === 'primary' || kind === 'foreign' ? physical : name;
}

/**
 * Returns the column that a model calls `name`: that of its dimension, or else one that it exposes. A column may have
 * the name of a dimension that is computed, or that is called otherwise here.
 */
export function columnCalled(
  name: string,
  { entity, dimensions }: Pick<DbtModel, 'entity' | 'dimensions'>,
): string | null {
  const own = dimensions.get(name.toLowerCase());
  return own === undefined ? (entity.column(name)?.name ?? null) : own;
}

function addDimension(element: ModelElement, model: DbtModel): void {
  const { part, name, kind, physical } = element;
  model.dimensions.set(name.toLowerCase(), null);
  if (kind !== 'categorical' && kind !== 'time') {
    loseElement(element, `\`${safeText(name)}\`: \`${safeText(kind)}\` is not a kind of dimension`);
    return;
  }
  if (physical === null) {
    addComputed(element, model);
    return;
  }
  const column = attempt(() => dimensionColumn(element, physical, model));
  if (!column.ok) {
    loseElement(element, column.reason);
    return;
  }
  model.dimensions.set(name.toLowerCase(), column.value.name);
  if (kind === 'time') {
    const { grain } = element;
    model.times.add(name.toLowerCase());
    if (grain !== null) model.grains.set(column.value.name, grain.text);
    column.value.fallback = 'timestamp';
    grain?.part.note(
      grain.key,
      'approximated',
      'a time is stored in its own grain, and may be asked for in any',
    );
  } else if (element.grain !== null)
    element.grain.part.note(element.grain.key, 'lost', 'a dimension that is not time has no grain');
  element.validity?.lose('validity_params', 'rows are not matched by the time in which they are valid');
  if (element.kindKey !== 'type') return;
  if (part.flag('is_partition') === true) part.lose('is_partition', 'partitions have no counterpart');
  part.lose('config', 'configuration of dbt has no counterpart');
  part.lose('label', 'the label of a dimension has no counterpart');
}

/** Returns the column of a dimension: the column already exposed under the same name, or a new one. */
function dimensionColumn(
  { name, part, description }: ModelElement,
  physical: string,
  { entity }: DbtModel,
): ColumnDraft {
  const known = entity.physical(physical);
  if (known?.name !== name) return entity.add(name, physical, part.place, { description });
  if (known.description === null) known.description = description;
  else if (description !== null) part.note('description', 'lost', `\`${name}\` has a description of its own`);
  return known;
}

function addComputed(element: ModelElement, { entity }: DbtModel): void {
  const { part, name, expr, description } = element;
  const parsed = isTemplate(expr) ? null : attempt(() => parseExpression(expr));
  if (parsed?.ok !== true) {
    const why = parsed?.reason ?? 'it is a template';
    loseElement(element, `\`${safeText(name)}\` is computed, and does not map: ${why}`);
    return;
  }
  entity.computed.set(name.toLowerCase(), parsed.value);
  const what = `computed column \`${safeText(name)}\``;
  const own = parsed.value;
  entity.computing.push({
    name,
    part,
    description,
    text: () => computedText(own, { entity, first: 'physical', place: part.place, what }),
  });
}

function settleKey(
  model: DbtModel,
  own: string,
  primary: ModelElement | undefined,
  options: ModelImportOptions,
): void {
  const { entity, info } = model;
  const configured = options.keys.get(own) ?? options.keys.get(entity.name);
  const upstream = upstreamOf(entity.table, options)?.primaryKey;
  const declared = primary === undefined ? undefined : model.entityColumns.get(primary.name.toLowerCase());
  const physical = configured ?? (declared === undefined ? (info?.primaryKey ?? upstream ?? []) : null);
  if (physical !== null) entity.setKey(physical, model.part.place);
  else entity.key = declared === undefined ? [] : [declared];
}

function settleTime(model: DbtModel, defaults: SourceMapping | null): void {
  const { entity, defaultTime, times } = model;
  if (defaultTime === null) return;
  const column = columnCalled(defaultTime, model);
  if (column === null || !times.has(defaultTime.toLowerCase()))
    defaults?.note(
      'agg_time_dimension',
      'lost',
      `\`${safeText(defaultTime)}\` is not time dimension that is a column`,
    );
  else entity.time = column;
}

/** Reports the primary key of the entry in `models:` if it differs from the entity's, and marks the entry as used. */
function settleInfo({ entity, info }: DbtModel): void {
  if (info === null) return;
  info.used = true;
  const key = entity.key.map((k) => entity.column(k)?.physical.toLowerCase()).join('\n');
  if (info.primaryKey !== null && info.primaryKey.map((k) => k.toLowerCase()).join('\n') !== key)
    info.part.note('constraints', 'lost', `the primary key of \`${entity.name}\` is another one`);
}

/** Applies the column declarations in `models:`, and reports those of columns that are not exposed. */
export function applyModelInfo({ entity, info }: DbtModel): void {
  for (const [name, { part }] of info?.columns ?? []) {
    if (entity.physical(name) === null)
      part.loseAll(`column \`${safeText(name)}\` is not exposed: nothing names it`);
  }
  for (const column of entity.columns) {
    const known = info?.columns.get(column.physical.toLowerCase());
    if (known === undefined) continue;
    column.type = known.type;
    if (known.notNull) column.nullable = false;
    if (known.description !== null) describe(column, known);
  }
}

function describe(column: ColumnDraft, { part, description }: ModelColumn): void {
  if (column.description === null) column.description = description;
  else part.note('description', 'lost', `\`${column.name}\` has a description of its own`);
}
