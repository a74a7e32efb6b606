import type { Node } from '@pgsql/types';
import { typeNamed } from 'osl-compiler';
import { CODES, type ManifestDocument } from '../../src/model/manifest/index.js';
import {
  type ColumnDraft,
  EntityDraft,
  endText,
  ImportDraft,
  isKeyOf,
  type MetricBody,
  type TableDraft,
} from '../draft.js';
import { legalName, safeText } from '../names.js';
import { type ModelImportOptions, reportSchema, tableNamed, upstreamOf } from '../options.js';
import { report, type SourceFile, SourceMapping } from '../source.js';
import {
  attempt,
  identifier,
  isAggregate,
  NoMapping,
  nameOf,
  namesIn,
  print,
  tableOfQuery,
} from '../sql-expression.js';
import { columnText, computedText, reportDivision } from '../types.js';
import { DATATYPES, expressionOf, loseExtensions, ownExtension, synonymsOf } from './document.js';

/** Contents of a file, excluding this gateway's extension. */
export interface Core {
  readonly draft: ImportDraft;
  readonly tenant: string | null;
  readonly models: readonly SourceMapping[];
}

const VERSION = /^0\.[12](\.|$)/;

type Entities = ManifestDocument['entities'];

/** Reads the heads of files, and returns their models. */
export function readModels(files: readonly SourceFile[]): readonly SourceMapping[] {
  const models: SourceMapping[] = [];
  for (const file of files) {
    const root = SourceMapping.ofFile(file);
    if (root === null) continue;
    const version = root.scalar('version');
    if (version !== null && !VERSION.test(version))
      root.note('version', 'approximated', `version \`${safeText(version)}\` was read as 0.2`);
    root.ignore('dialects', 'vendors');
    synonymsOf(root);
    models.push(...root.parts('semantic_model'));
  }
  return models;
}

/** Reads models; `kept` are the entities of this gateway's extension, whose computed columns metrics can name. */
export function readCore(
  models: readonly SourceMapping[],
  options: ModelImportOptions,
  kept: Entities | null,
): Core {
  const draft = new ImportDraft();
  const names = models.map((m) => m.needText('name'));
  for (const model of models) readModel(model, draft, options, kept);
  return { draft, tenant: legalName(names[0] ?? ''), models };
}

function readModel(
  model: SourceMapping,
  draft: ImportDraft,
  options: ModelImportOptions,
  kept: Entities | null,
): void {
  const name = model.needText('name');
  for (const word of synonymsOf(model))
    model.note('ai_context', 'lost', `a model has no synonyms: \`${safeText(word)}\``);
  model.lose('description', 'a manifest has no description');
  loseExtensions(model);
  const datasets = new Map<string, Dataset>();
  const declared = new Set<string>();
  for (const part of model.parts('datasets')) {
    const own = part.needText('name').toLowerCase();
    if (declared.has(own))
      part.problem(
        'name',
        CODES.duplicateName,
        `dataset \`${safeText(own)}\` of \`${safeText(name)}\` is declared twice`,
      );
    declared.add(own);
    const dataset = datasetOf(part, draft, options);
    if (dataset === null) continue;
    datasets.set(own, dataset);
    const { entity } = dataset;
    for (const column of Object.keys(kept?.[entity.name]?.computed ?? {}))
      entity.kept.set(column.toLowerCase(), column);
  }
  for (const part of model.parts('relationships')) {
    const source = part.needText('name');
    const made = attempt(() => addRelationship(part, source, datasets, draft));
    if (!made.ok) part.loseAll(`relationship \`${safeText(source)}\` does not map: ${made.reason}`);
  }
  const metrics = new Set<string>();
  for (const part of model.parts('metrics')) {
    const own = part.needText('name').toLowerCase();
    if (metrics.has(own)) part.declaredTwice('metric', own);
    metrics.add(own);
    addMetric(part, datasets, draft);
  }
}

function addRelationship(
  part: SourceMapping,
  source: string,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): void {
  for (const word of synonymsOf(part))
    part.note('ai_context', 'lost', `a link has no synonyms: \`${safeText(word)}\``);
  loseExtensions(part);
  const end = (key: string): Dataset => {
    const name = part.needText(key);
    const dataset = datasets.get(name.toLowerCase());
    if (dataset === undefined) throw new NoMapping(`dataset \`${safeText(name)}\` is not there, or was lost`);
    return dataset;
  };
  const [from, to] = [end('from').entity, end('to').entity];
  const [fromColumns, toColumns] = [part.texts('from_columns'), part.texts('to_columns')];
  if (fromColumns.length === 0 || fromColumns.length !== toColumns.length)
    throw new NoMapping('its two ends have not as many columns');
  const keys = (columns: readonly string[], entity: Dataset['entity']): readonly string[] =>
    columns.map((column) => keyColumn(column, entity, part));
  const [fromKeys, toKeys] = [keys(fromColumns, from), keys(toColumns, to)];
  if (!isKeyOf(to, toKeys)) {
    const named = toKeys.map((column) => `\`${to.name}.${column}\``).join(', ');
    throw new NoMapping(
      `${named} ${toKeys.length === 1 ? 'is' : 'are'} not the primary key, so it may not be unique`,
    );
  }
  const name = draft.named(draft.relationshipNames, source, part.place);
  if (name === null) return;
  for (const column of fromKeys) from.links.add(column);
  const kind = isKeyOf(from, fromKeys) ? ('one_to_one' as const) : ('many_to_one' as const);
  draft.relationships.push({
    name,
    document: { from: endText(from.name, fromKeys), to: endText(to.name, toKeys), kind },
    place: part.place,
  });
}

/** Type names that cover several widths and are read as the widest. */
const VAGUE: ReadonlySet<string> = new Set(['Integer', 'Float']);

const TEMPORAL: ReadonlySet<string> = new Set(['Date', 'DateTime', 'DateTimeTz']);

/** A dataset converted to an entity. `source` is its name in the file. */
interface Dataset {
  readonly source: string;
  readonly part: SourceMapping;
  readonly entity: EntityDraft;
}

function datasetOf(part: SourceMapping, draft: ImportDraft, options: ModelImportOptions): Dataset | null {
  const source = part.needText('name');
  const table = attempt(() => tableOf(part, options));
  if (!table.ok) return part.loseAll(`dataset \`${safeText(source)}\` has no table: ${table.reason}`);
  const name = draft.named(draft.entityNames, source, part.place);
  if (name === null) return null;
  const entity = new EntityDraft(name, table.value, part.place);
  entity.description = describedBy(part);
  draft.words(synonymsOf(part), name, part.at('ai_context'));
  const times = part.parts('fields').flatMap((field) => addField(field, entity, draft) ?? []);
  settleTime(part, entity, times);
  settleKey(part, source, entity, options);
  loseExtensions(part);
  draft.addEntity(entity);
  return { source, part, entity };
}

function describedBy(part: SourceMapping): string | null {
  const text = part.text('description');
  if (text === null || text === '') return null;
  return part.cut('description', text, 'the description');
}

function tableOf(part: SourceMapping, options: ModelImportOptions): TableDraft {
  const text = (part.isText('source') ? part.text('source') : part.child('source')?.text('object')) ?? '';
  const object = part.isText('source') ? null : part.child('source');
  if (object !== null && object.text('kind') !== 'table')
    throw new NoMapping('its source is a query: make a view of it');
  const parts = tableOfQuery(text) ?? tableOfQuery(`select * from ${text}`);
  if (parts === null) throw new NoMapping('its source is more than a table: make a view of it');
  const table = tableNamed(parts, options.connector);
  reportSchema(table, part.at('source'), options);
  return table;
}

/** Adds a field. Returns its column name if the field is an event time; otherwise null. */
function addField(part: SourceMapping, entity: EntityDraft, draft: ImportDraft): string | null {
  const name = part.needText('name');
  const words = synonymsOf(part);
  const datatype = part.text('datatype');
  const isTime = part.child('dimension')?.flag('is_time') ?? TEMPORAL.has(datatype ?? '');
  part.lose('label', 'labels have no counterpart');
  const own = ownExtension(part);
  const read = attempt(() => expressionOf(part));
  if (!read.ok)
    return loseField(part, name, entity, `field \`${safeText(name)}\` does not map: ${read.reason}`);
  const parts = nameOf(read.value.node);
  const physical = parts?.at(-1);
  if (physical === undefined) {
    const { node } = read.value;
    entity.computed.set(name.toLowerCase(), node);
    const what = `computed column \`${safeText(name)}\``;
    entity.computing.push({
      name,
      part,
      description: describedBy(part),
      text: () => computedText(node, { entity, first: 'physical', place: part.place, what }),
    });
    return null;
  }
  const type = datatype === null ? null : (DATATYPES.get(datatype) ?? null);
  if (datatype !== null && type === null && own?.['type'] === undefined)
    part.note('datatype', 'decision', `\`${safeText(datatype)}\` is not a type of the model`);
  const description = describedBy(part);
  const column = attempt(() => entity.add(name, physical, part.place, { description, type }));
  if (!column.ok) return loseField(part, name, entity, column.reason);
  if (isTime) column.value.fallback = 'timestamp';
  if (own === null && type !== null && VAGUE.has(datatype ?? '')) column.value.vague = datatype;
  if (own !== null) fromExtension(own, column.value);
  draft.words(words, `${entity.name}.${column.value.name}`, part.at('ai_context'));
  return isTime ? column.value.name : null;
}

/** Reports a field as lost, and records its name so that it is not taken for a column of the table. */
function loseField(part: SourceMapping, name: string, entity: EntityDraft, reason: string): null {
  entity.lost.add(name.toLowerCase());
  return part.loseAll(reason);
}

/** Applies the type, sensitivity and nullability in this gateway's extension of a field. */
function fromExtension(own: Readonly<Record<string, unknown>>, column: ColumnDraft): void {
  const { type, sensitivity, nullable } = own;
  if (typeof type === 'string') column.type = typeNamed(type) ?? column.type;
  if (typeof sensitivity === 'string' && legalName(sensitivity) === sensitivity)
    column.sensitivity = sensitivity;
  if (nullable === false) column.nullable = false;
}

function settleTime(part: SourceMapping, entity: EntityDraft, times: readonly string[]): void {
  const [time, second] = times;
  if (time === undefined) return;
  const which = times.map((t) => `\`${t}\``).join(', ');
  if (second === undefined) {
    entity.time = time;
    part.note(null, 'decision', `${which}, the only time, was taken for that of all metrics`);
  } else part.note(null, 'decision', `several times, ${which}: \`time_dimension\` is left open`);
}

function settleKey(
  part: SourceMapping,
  source: string,
  entity: EntityDraft,
  options: ModelImportOptions,
): void {
  const stated = part.texts('primary_key');
  const unique = uniqueKeys(part);
  const upstream = upstreamOf(entity.table, options)?.primaryKey;
  const written = options.keys.get(source) ?? (stated.length > 0 ? stated : (unique[0] ?? upstream ?? []));
  const others = unique.filter((k) => k.join('\n') !== written.join('\n'));
  if (others.length > 0) part.note('unique_keys', 'lost', 'an entity has one key, its primary key');
  if (stated.length === 0 && written === unique[0])
    part.note('unique_keys', 'approximated', 'the first unique key was taken for the primary key');
  const key = attempt(() => written.map((name) => keyColumn(name, entity, part)));
  if (key.ok) entity.key = key.value;
  else part.note('primary_key', 'lost', `the primary key does not map: ${key.reason}`);
}

function uniqueKeys(part: SourceMapping): readonly (readonly string[])[] {
  const keys = part.lists('unique_keys');
  return keys.filter((k) => k.length > 0);
}

/** Returns the entity's column for a key column, which is named by its field or its table column. @throws NoMapping */
function keyColumn(name: string, entity: EntityDraft, part: SourceMapping): string {
  const known = entity.column(name) ?? entity.physical(name);
  return (known ?? entity.expose(name, part.place, `a key of \`${entity.name}\``)).name;
}

/** Returns SQL for a field, for use in an expression over the dataset's rows. @throws NoMapping */
function fieldText(field: string, entity: EntityDraft, part: SourceMapping, what: string): string {
  return columnText(field, { entity, first: 'field', place: part.place, what });
}

/** Adds a metric to the draft, or reports why it cannot be converted. */
function addMetric(part: SourceMapping, datasets: ReadonlyMap<string, Dataset>, draft: ImportDraft): void {
  const source = part.needText('name');
  const words = synonymsOf(part);
  loseExtensions(part);
  part.lose('datatype', 'the type of a metric is that of its expression');
  const name = draft.named(draft.metricNames, source, part.place);
  if (name === null) return;
  const description = describedBy(part);
  const read = attempt(() => documentOf(name, part, datasets, draft));
  if (!read.ok) {
    part.loseAll(`metric \`${safeText(source)}\` does not map: ${read.reason}`);
    return;
  }
  draft.addMetric(name, read.value, part.place, description);
  draft.words(words, name, part.at('ai_context'));
}

function documentOf(
  name: string,
  part: SourceMapping,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): MetricBody {
  const { node } = expressionOf(part);
  const owners = [...ownersOf(node, datasets)];
  const [owner, second] = owners.length === 0 && datasets.size === 1 ? [...datasets.values()] : owners;
  if (owner === undefined) throw new NoMapping('it names no dataset, so it is not said whose rows it counts');
  if (second === undefined) return simple(node, owner, part, datasets, name);
  return derived(name, node, part, datasets, draft);
}

function ownersOf(node: Node, datasets: ReadonlyMap<string, Dataset>): ReadonlySet<Dataset> {
  return new Set(namesIn(node).map((parts) => fieldNamed(parts, datasets).dataset));
}

interface DatasetField {
  readonly dataset: Dataset;
  readonly field: string;
}

/** Resolves `dataset.field`, or a field name that occurs in only one dataset. @throws NoMapping */
function fieldNamed(parts: readonly string[], datasets: ReadonlyMap<string, Dataset>): DatasetField {
  const [first = '', field, more] = parts;
  if (more !== undefined) throw new NoMapping(`\`${safeText(parts.join('.'))}\` is no field of a dataset`);
  if (field !== undefined) {
    const dataset = datasets.get(first.toLowerCase());
    if (dataset === undefined)
      throw new NoMapping(`dataset \`${safeText(first)}\` is not there, or was lost`);
    return { dataset, field };
  }
  const having = [...datasets.values()].filter((d) => hasField(d, first));
  const [dataset, second] = datasets.size === 1 ? [...datasets.values()] : having;
  if (dataset === undefined) throw new NoMapping(`\`${safeText(first)}\` is a field of no dataset`);
  if (second !== undefined) throw new NoMapping(`\`${safeText(first)}\` is a field of several datasets`);
  return { dataset, field: first };
}

function hasField({ entity }: Dataset, name: string): boolean {
  return entity.column(name) !== null || entity.computed.has(name.toLowerCase());
}

function simple(
  node: Node,
  owner: Dataset,
  part: SourceMapping,
  datasets: ReadonlyMap<string, Dataset>,
  name: string,
): MetricBody {
  const what = `metric \`${name}\``;
  const expression = print(node, {
    column: (parts) => {
      const { dataset, field } = fieldNamed(parts, datasets);
      if (dataset !== owner) throw new NoMapping('one aggregate takes the rows of several datasets');
      return fieldText(field, owner.entity, part, what);
    },
  });
  return { entity: owner.entity.name, expression };
}

/** Converts an expression over several datasets to a derived metric. Each aggregate in it becomes a separate metric. */
function derived(
  name: string,
  node: Node,
  part: SourceMapping,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): MetricBody {
  const made: { readonly name: string; readonly document: MetricBody }[] = [];
  const expression = print(node, {
    column: (parts) => {
      throw new NoMapping(`\`${safeText(parts.join('.'))}\` stands outside an aggregate`);
    },
    call: (call) => {
      if (!isAggregate(call)) return null;
      const [owner, second] = [...ownersOf(call, datasets)];
      if (owner === undefined || second !== undefined)
        throw new NoMapping('it is not said whose rows one of its aggregates takes');
      const own = draft.metricNames.take(`${name.slice(0, 50)}_part_${made.length + 1}`);
      made.push({ name: own, document: simple(call, owner, part, datasets, name) });
      return identifier(own);
    },
  });
  for (const metric of made) draft.addMetric(metric.name, metric.document, part.place);
  const names = made.map((m) => `\`${m.name}\``).join(', ');
  report(
    part.place,
    'approximated',
    `\`${name}\` is over several datasets: each is added up by itself (${names})`,
  );
  reportDivision(node, part.at('expression'));
  return { type: 'derived', expression };
}
