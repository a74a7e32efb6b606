import { type ColumnDraft, EntityDraft, type ImportDraft, type TableDraft } from '../draft.js';
import { safeText } from '../names.js';
import { type ImportOptions, reportSchema, tableNamed, upstreamOf } from '../options.js';
import type { Part } from '../part.js';
import { report } from '../source.js';
import { attempt, nameOf, parseExpression } from '../sql/expression.js';
import { computedText } from '../types.js';
import {
  type DbtProject,
  descriptionOf,
  isTemplate,
  type ModelColumn,
  type ModelInfo,
  modelReference,
} from './read.js';

/** A semantic model converted to an entity, with the names that its metrics use. */
export interface DbtModel {
  readonly part: Part;
  readonly entity: EntityDraft;
  /** Primary entity, used as the prefix before `__` in names. */
  readonly prefix: string;
  /** Columns of the model's entities, by lower-case entity name. */
  readonly entityColumns: Map<string, string>;
  /** Models reached through foreign entities, with the relationship, by lower-case entity name. */
  readonly parents: Map<string, { readonly relationship: string; readonly model: DbtModel }>;
  readonly grains: Map<string, string>;
  /** Names of the time dimensions that are plain columns. */
  readonly times: Set<string>;
  readonly defaultTime: string | null;
  readonly info: ModelInfo | null;
}

/** Reference to another model through entity `name`, whose value is a column of this model. */
export interface ForeignKeyDraft {
  readonly model: DbtModel;
  readonly name: string;
  readonly column: string;
  readonly part: Part;
}

/** Adds the entity for a semantic model. If the model has no table, reports that and returns null. */
export function entityOf(
  part: Part,
  project: DbtProject,
  draft: ImportDraft,
  options: ImportOptions,
  links: ForeignKeyDraft[],
): DbtModel | null {
  const own = part.needText('name');
  const found = attempt(() => tableOf(part, project, options));
  if (!found.ok) return part.loseAll(`semantic model \`${safeText(own)}\` has no table: ${found.reason}`);
  const { table, info } = found.value;
  const entities = part.parts('entities');
  const primary =
    entities.find((e) => kindOf(e) === 'primary') ?? entities.find((e) => kindOf(e) === 'unique');
  const prefix = primary?.needText('name') ?? part.text('primary_entity') ?? own;
  part.text('primary_entity');
  const name = nameFor(own, prefix, part, draft);
  if (name === null) return null;
  const entity = new EntityDraft(name, table, part.place);
  entity.description = descriptionOf(part) ?? info?.description ?? null;
  const defaults = part.child('defaults');
  const model: DbtModel = {
    part,
    entity,
    prefix,
    entityColumns: new Map(),
    parents: new Map(),
    grains: new Map(),
    times: new Set(),
    defaultTime: defaults?.text('agg_time_dimension') ?? null,
    info,
  };
  part.ignore('metadata');
  part.lose('config', 'configuration of dbt has no counterpart');
  for (const e of entities) addEntityColumn(e, model, links);
  for (const d of part.parts('dimensions')) addDimension(d, model);
  settleKey(model, own, primary, options);
  settleTime(model, defaults);
  if (own !== name && prefix !== own)
    part.note('name', 'approximated', `\`${safeText(own)}\` is called \`${name}\`, as questions call it`);
  settleInfo(model);
  const label = part.text('label');
  if (label !== null) draft.words([label], name, part.at('label'));
  draft.addEntity(entity);
  return model;
}

/** Name for the entity: that of the primary entity, as in queries such as `customer__region`, unless it is taken. */
function nameFor(own: string, prefix: string, part: Part, draft: ImportDraft): string | null {
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
  part: Part,
  project: DbtProject,
  options: ImportOptions,
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

function kindOf(entity: Part): string {
  return (entity.text('type') ?? '').toLowerCase();
}

/** Expression of an entity, dimension or measure; defaults to its name. */
export function exprOf(part: Part): string {
  const written = part.scalar('expr');
  return written === null || written === '' ? part.needText('name') : written;
}

/** Column name, if the expression is a single column; otherwise null. */
function plainColumn(text: string): string | null {
  const parsed = attempt(() => nameOf(parseExpression(text)));
  return parsed.ok && parsed.value !== null && parsed.value.length === 1 ? (parsed.value[0] ?? null) : null;
}

function addEntityColumn(part: Part, model: DbtModel, links: ForeignKeyDraft[]): void {
  const name = part.needText('name');
  const kind = kindOf(part);
  const physical = plainColumn(exprOf(part));
  if (!['primary', 'unique', 'foreign', 'natural'].includes(kind)) {
    part.loseAll(`\`${safeText(kind)}\` is no kind of entity`);
    return;
  }
  if (physical === null) {
    part.loseAll('a key that is computed has no counterpart: a manifest names columns');
    return;
  }
  const description = descriptionOf(part);
  const added = attempt(
    () =>
      model.entity.physical(physical) ??
      model.entity.add(keyName(kind, name, physical), physical, part.place, { description }),
  );
  if (!added.ok) {
    part.loseAll(added.reason);
    return;
  }
  const { name: column } = added.value;
  model.entityColumns.set(name.toLowerCase(), column);
  for (const key of ['role', 'label', 'config', 'entity'])
    part.lose(key, `the \`${key}\` of an entity has no counterpart`);
  if (kind === 'foreign') links.push({ model, name, column, part });
  else if (kind === 'natural')
    part.note(
      'type',
      'approximated',
      'a natural key is a column like any other: rows are not matched by time',
    );
  else if (kind === 'unique')
    part.note(
      'type',
      'approximated',
      'a manifest declares one key of an entity, so this column is not known to be unique',
    );
}

/** Column name for an entity: that of its column (`customer_id`, not `customer`) for primary and foreign entities. */
function keyName(kind: string, name: string, physical: string): string {
  return kind === 'primary' || kind === 'foreign' ? physical : name;
}

function addDimension(part: Part, model: DbtModel): void {
  const { entity } = model;
  const name = part.needText('name');
  const kind = (part.text('type') ?? '').toLowerCase();
  const text = exprOf(part);
  const physical = plainColumn(text);
  const params = part.child('type_params');
  const grain = params?.text('time_granularity')?.toLowerCase() ?? null;
  if (kind !== 'categorical' && kind !== 'time') {
    part.loseAll(`\`${safeText(kind)}\` is no kind of dimension`);
    return;
  }
  if (physical === null) {
    const parsed = isTemplate(text) ? null : attempt(() => parseExpression(text));
    if (parsed?.ok !== true) {
      part.loseAll(
        `\`${safeText(name)}\` is computed, and does not map: ${parsed?.reason ?? 'it is a template'}`,
      );
      return;
    }
    entity.computed.set(name.toLowerCase(), parsed.value);
    const what = `computed column \`${safeText(name)}\``;
    const own = parsed.value;
    entity.computing.push({
      name,
      part,
      description: descriptionOf(part),
      text: () => computedText(own, { entity, first: 'physical', place: part.place, what }),
    });
    return;
  }
  const description = descriptionOf(part);
  const column = attempt(() => entity.add(name, physical, part.place, { description }));
  if (!column.ok) {
    part.loseAll(column.reason);
    return;
  }
  if (kind === 'time') {
    model.times.add(name.toLowerCase());
    if (grain !== null) model.grains.set(column.value.name, grain);
    column.value.fallback = 'timestamp';
    params?.note(
      'time_granularity',
      'approximated',
      'a time is stored in its own grain, and may be asked for in any',
    );
  }
  params?.lose('validity_params', 'rows are not matched by the time in which they are valid', 'normal');
  if (part.flag('is_partition') === true) part.lose('is_partition', 'partitions have no counterpart');
  part.lose('config', 'configuration of dbt has no counterpart');
  part.lose('label', 'the label of a dimension has no counterpart');
}

function settleKey(model: DbtModel, own: string, primary: Part | undefined, options: ImportOptions): void {
  const { entity, info } = model;
  const configured = options.keys.get(own) ?? options.keys.get(entity.name);
  const upstream = upstreamOf(entity.table, options)?.primaryKey;
  const declared =
    primary === undefined ? undefined : model.entityColumns.get(primary.needText('name').toLowerCase());
  const physical = configured ?? (declared === undefined ? (info?.primaryKey ?? upstream ?? []) : null);
  if (physical !== null) entity.setKey(physical, model.part.place);
  else entity.key = declared === undefined ? [] : [declared];
}

function settleTime(model: DbtModel, defaults: Part | null): void {
  const { entity, defaultTime, times } = model;
  if (defaultTime === null) return;
  const column = entity.column(defaultTime);
  if (column === null || !times.has(defaultTime.toLowerCase()))
    defaults?.note(
      'agg_time_dimension',
      'lost',
      `\`${safeText(defaultTime)}\` is no time dimension that is a column`,
    );
  else entity.time = column.name;
}

/** Reports values in `models:` that differ from those of the semantic model, which take precedence. */
function settleInfo({ part, entity, info }: DbtModel): void {
  if (info === null) return;
  info.used = true;
  const key = entity.key.map((k) => entity.column(k)?.physical.toLowerCase()).join('\n');
  if (info.primaryKey !== null && info.primaryKey.map((k) => k.toLowerCase()).join('\n') !== key)
    info.part.note('constraints', 'lost', `the primary key of \`${entity.name}\` is another one`);
  if (info.description !== null && part.has('description'))
    info.part.note('description', 'lost', 'its semantic model has a description of its own');
}

/** Applies the column declarations in `models:`. */
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
