import { CODES } from '../../src/model/manifest/index.js';
import { endText, ImportDraft, isKeyOf } from '../draft.js';
import { legalName, shown } from '../names.js';
import type { ImportOptions } from '../options.js';
import { Part } from '../part.js';
import type { SourceFile } from '../source.js';
import { fit, NoFit } from '../sql/expression.js';
import { type Dataset, datasetOf, keyColumn } from './dataset.js';
import { loseExtensions, synonymsOf } from './expression.js';
import { addMetric } from './metric.js';

/** Contents of a file without the extension of this gateway. */
export interface Core {
  readonly draft: ImportDraft;
  readonly tenant: string | null;
  /** Semantic models, which contain the extensions. */
  readonly models: readonly Part[];
}

const VERSION = /^0\.[12](\.|$)/;

export function readCore(files: readonly SourceFile[], options: ImportOptions): Core {
  const draft = new ImportDraft();
  const models: Part[] = [];
  for (const file of files) {
    const root = Part.ofFile(file);
    if (root === null) continue;
    const version = root.scalar('version');
    if (version !== null && !VERSION.test(version))
      root.note('version', 'approximated', `version \`${shown(version)}\` was read as 0.2`);
    root.ignore('dialects', 'vendors');
    synonymsOf(root);
    models.push(...root.parts('semantic_model'));
  }
  const names = models.map((m) => m.needText('name'));
  for (const model of models) readModel(model, draft, options);
  return { draft, tenant: legalName(names[0] ?? ''), models };
}

function readModel(model: Part, draft: ImportDraft, options: ImportOptions): void {
  const name = model.needText('name');
  for (const word of synonymsOf(model))
    model.note('ai_context', 'lost', `a model has no synonyms: \`${shown(word)}\``);
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
        `dataset \`${shown(own)}\` of \`${shown(name)}\` is declared twice`,
      );
    declared.add(own);
    const dataset = datasetOf(part, draft, options);
    if (dataset !== null) datasets.set(own, dataset);
  }
  for (const part of model.parts('relationships')) {
    const source = part.needText('name');
    const made = fit(() => addRelationship(part, source, datasets, draft));
    if (!made.ok) part.loseAll(`relationship \`${shown(source)}\` does not map: ${made.reason}`);
  }
  const metrics = new Set<string>();
  for (const part of model.parts('metrics')) {
    const own = part.needText('name').toLowerCase();
    if (metrics.has(own))
      part.problem('name', CODES.duplicateName, `metric \`${shown(own)}\` is declared twice`);
    metrics.add(own);
    addMetric(part, datasets, draft);
  }
}

function addRelationship(
  part: Part,
  source: string,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): void {
  for (const word of synonymsOf(part))
    part.note('ai_context', 'lost', `a link has no synonyms: \`${shown(word)}\``);
  loseExtensions(part);
  const end = (key: string): Dataset => {
    const name = part.needText(key);
    const dataset = datasets.get(name.toLowerCase());
    if (dataset === undefined) throw new NoFit(`dataset \`${shown(name)}\` is not there, or was lost`);
    return dataset;
  };
  const [from, to] = [end('from').entity, end('to').entity];
  const [fromColumns, toColumns] = [part.texts('from_columns'), part.texts('to_columns')];
  if (fromColumns.length === 0 || fromColumns.length !== toColumns.length)
    throw new NoFit('its two ends have not as many columns');
  const keys = (columns: readonly string[], entity: Dataset['entity']): readonly string[] =>
    columns.map((column) => keyColumn(column, entity, part));
  const [fromKeys, toKeys] = [keys(fromColumns, from), keys(toColumns, to)];
  if (!isKeyOf(to, toKeys)) {
    const named = toKeys.map((column) => `\`${to.name}.${column}\``).join(', ');
    throw new NoFit(
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
