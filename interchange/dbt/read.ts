import { type TypeName, typeNamed } from 'osl-compiler';
import { isObject } from '../../src/base/is-object.js';
import { safeText } from '../names.js';
import { type SourceFile, SourceMapping } from '../source.js';
import { NoMapping } from '../sql-expression.js';
import {
  descriptionOf,
  type ForeignKeyConstraint,
  type ModelColumn,
  type ModelInfo,
  type NestedModel,
  nestedModel,
} from './yaml-model.js';

const NAME = `(?:'([^'{}]{1,200})'|"([^"{}]{1,200})")`;
const REF = new RegExp(`^ref\\(\\s*${NAME}\\s*(?:,\\s*${NAME}\\s*)?\\)$`);
const SOURCE = new RegExp(`^source\\(\\s*${NAME}\\s*,\\s*${NAME}\\s*\\)$`);

type ModelReference =
  | { readonly kind: 'model'; readonly name: string }
  | { readonly kind: 'source'; readonly schema: string; readonly table: string };

/**
 * Parses `ref('orders')`, `ref('package', 'orders')` and `source('raw', 'orders')`, with or without braces. Nothing is
 * evaluated; anything else is rejected.
 *
 * @throws NoMapping
 */
export function modelReference(text: string): ModelReference {
  const bare = text
    .trim()
    .replace(/^\{\{([^{}]*)\}\}$/, '$1')
    .trim();
  const ref = REF.exec(bare);
  if (ref !== null) {
    const [, one, two, three, four] = ref;
    return { kind: 'model', name: three ?? four ?? one ?? two ?? '' };
  }
  const source = SOURCE.exec(bare);
  if (source === null) throw new NoMapping("only `ref('…')` and `source('…', '…')` are read");
  const [, one, two, three, four] = source;
  return { kind: 'source', schema: one ?? two ?? '', table: three ?? four ?? '' };
}

/** A metric. `owner` is the model that declares it; null if it is at the top level of a file. */
interface DbtMetric {
  readonly part: SourceMapping;
  readonly owner: NestedModel | null;
}

/** Parts of a project that are converted later, in file order. */
export interface DbtProject {
  readonly models: ReadonlyMap<string, ModelInfo>;
  readonly semanticModels: readonly SourceMapping[];
  /** Semantic models that are declared inside models, as in dbt 1.12 and Fusion. */
  readonly nested: readonly NestedModel[];
  readonly metrics: readonly DbtMetric[];
}

/** Splits the files of a project into parts. Problems are recorded on the files. */
export function readProject(files: readonly SourceFile[]): DbtProject {
  const models = new Map<string, ModelInfo>();
  const semanticModels: SourceMapping[] = [];
  const nested: NestedModel[] = [];
  const metrics: DbtMetric[] = [];
  for (const file of files) {
    const root = SourceMapping.ofFile(file);
    if (root === null) continue;
    root.ignore('version');
    for (const part of root.parts('models')) {
      const model = nestedModel(part, readModel(part, models));
      if (model === null) continue;
      nested.push(model);
      for (const metric of part.parts('metrics'))
        if (isEnabled(metric)) metrics.push({ part: metric, owner: model });
    }
    semanticModels.push(...root.parts('semantic_models').filter(isEnabled));
    for (const part of root.parts('metrics').filter(isEnabled)) metrics.push({ part, owner: null });
    root.lose('saved_queries', 'a saved query is asked by a client, and has no place in a manifest');
    root.lose('project_configuration', 'running totals have a row for every period without a time spine');
    root.lose('exposures', 'exposures have no counterpart');
    root.lose('sources', 'of a source only the reference to it is read');
  }
  return { models, semanticModels, nested, metrics };
}

/** Returns false and reports `part` as lost if its `config` disables it. A template there counts as enabled. */
function isEnabled(part: SourceMapping): boolean {
  const { config } = part.members;
  if (!isObject(config) || config['enabled'] !== false) return true;
  part.loseAll(`\`${safeText(part.needText('name'))}\` is disabled by its \`config\``);
  return false;
}

function readModel(model: SourceMapping, models: Map<string, ModelInfo>): ModelInfo {
  const name = model.needText('name');
  if (models.has(name)) model.declaredTwice('model', name);
  model.lose('time_spine', 'running totals have a row for every period without a time spine');
  const columns = new Map<string, ModelColumn>();
  const keys: string[] = [];
  const foreignKeys: ForeignKeyConstraint[] = [];
  for (const part of model.parts('columns')) {
    const own = part.needText('name');
    const [column, isKey] = readColumn(part, own, foreignKeys);
    columns.set(own.toLowerCase(), column);
    if (isKey) keys.push(own);
  }
  const config = model.child('config');
  const alias = config?.text('alias') ?? model.text('alias');
  config?.lose('schema', 'how a schema is named is the matter of the project; use --schema');
  const declared = keyConstraint(model, foreignKeys);
  const info: ModelInfo = {
    table: alias ?? name,
    description: descriptionOf(model),
    columns,
    primaryKey: declared ?? (keys.length > 0 ? keys : null),
    foreignKeys,
    part: model,
    used: false,
  };
  models.set(name, info);
  return info;
}

function readColumn(
  part: SourceMapping,
  own: string,
  foreignKeys: ForeignKeyConstraint[],
): readonly [ModelColumn, boolean] {
  const written = part.text('data_type');
  const type = written === null ? null : columnType(written);
  if (written !== null && type === null)
    part.note('data_type', 'decision', `\`${safeText(written)}\` is not a type of the model`);
  for (const key of ['tests', 'data_tests']) part.lose(key, 'a test checks data, and declares nothing');
  let notNull = false;
  let isKey = false;
  for (const constraint of part.parts('constraints')) {
    const kind = constraint.text('type');
    if (kind === 'not_null') notNull = true;
    else if (kind === 'primary_key') isKey = true;
    else if (kind === 'foreign_key') foreignKeys.push(...foreignKey(constraint, [own]));
    else constraint.loseAll(`a constraint \`${safeText(kind ?? '')}\` has no counterpart`);
  }
  return [{ type, notNull, description: descriptionOf(part), part }, isKey];
}

/** Returns the manifest type for a declared type; null if unknown. Lengths as in `varchar(20)` are dropped. */
function columnType(written: string): TypeName | null {
  return typeNamed(written.replace(/\s*\([\d\s,]*\)/, ''));
}

/** Reads a `foreign_key` constraint on `columns`. If it names no target, reports that and returns an empty list. */
function foreignKey(constraint: SourceMapping, columns: readonly string[]): readonly ForeignKeyConstraint[] {
  constraint.ignore('name', 'warn_unenforced', 'warn_unsupported');
  const to = constraint.text('to');
  const toColumns = constraint.texts('to_columns');
  const expression = constraint.text('expression');
  if (to !== null) {
    if (expression !== null) constraint.note('expression', 'lost', 'the constraint says `to` as well');
    return [{ columns, to, toColumns, part: constraint }];
  }
  // `schema.table (a, b)`, optionally after REFERENCES.
  const [, table, listed] =
    /^\s*(?:references\s+)?([\w."]+)\s*(?:\(([\w\s,"]*)\))?\s*$/i.exec(expression ?? '') ?? [];
  if (table !== undefined) {
    const named = (listed ?? '').split(',').map((c) => c.replaceAll('"', '').trim());
    return [{ columns, to: table, toColumns: named.filter((c) => c !== ''), part: constraint }];
  }
  constraint.loseAll('a foreign key that does not say where it leads has no counterpart');
  return [];
}

function keyConstraint(model: SourceMapping, foreignKeys: ForeignKeyConstraint[]): readonly string[] | null {
  let key: readonly string[] | null = null;
  for (const constraint of model.parts('constraints')) {
    const kind = constraint.text('type');
    if (kind === 'primary_key') key = constraint.texts('columns');
    else if (kind === 'foreign_key') foreignKeys.push(...foreignKey(constraint, constraint.texts('columns')));
    else constraint.loseAll(`a constraint \`${safeText(kind ?? '')}\` has no counterpart`);
  }
  return key;
}
