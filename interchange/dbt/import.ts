import { assemble, type ImportResult } from '../assemble.js';
import { type EntityDraft, endText, ImportDraft, isKeyOf, PolicyDraft } from '../draft.js';
import { safeText } from '../names.js';
import type { ModelImportOptions } from '../options.js';
import type { SourceFile, SourceMapping } from '../source.js';
import { attempt, NoMapping } from '../sql-expression.js';
import { type DbtMeasure, measuresOf, simpleMetric } from './measure.js';
import { addMetric, type MetricContext, metricParts } from './metric.js';
import { applyModelInfo, type DbtModel, entityOf, type ForeignKeyDraft, nestedEntityOf } from './model.js';
import { modelReference, readProject } from './read.js';
import type { ForeignKeyConstraint, ModelInfo } from './yaml-model.js';

/**
 * Imports dbt semantic models from `semantic_models`, `metrics` and `models` in YAML files, or from a
 * `semantic_manifest.json`. Templates are not evaluated.
 *
 * @throws ManifestProblems if a file has the wrong shape
 */
export function importDbt(files: readonly SourceFile[], options: ModelImportOptions): ImportResult {
  const draft = new ImportDraft();
  const project = readProject(files);
  const links: ForeignKeyDraft[] = [];
  const models: DbtModel[] = [];
  const byName = new Map<string, DbtModel>();
  const add = (name: string, model: DbtModel): void => {
    models.push(model);
    byName.set(name, model);
  };
  for (const part of project.semanticModels) {
    const model = entityOf(part, project, draft, options, links);
    if (model !== null) add(part.needText('name'), model);
  }
  const owners = new Map<SourceMapping, DbtModel>();
  for (const nested of project.nested) {
    nested.info.used = true;
    const model = nestedEntityOf(nested, draft, options, links);
    if (model === null) continue;
    add(nested.name, model);
    for (const { part, owner } of project.metrics) if (owner === nested) owners.set(part, model);
  }
  const measures = measuresOf(models);
  addLinks(links, models, draft);
  addConstraintLinks(models, project.models, draft);
  const parts = metricParts(project.metrics.map((m) => m.part));
  addMetrics({ draft, measures, parts, owners, models: byName, made: new Map(), simple: new Map() });
  for (const model of models) applyModelInfo(model);
  for (const [name, { used, part }] of project.models)
    if (!used) part.loseAll(`no semantic model stands on \`${safeText(name)}\``);
  for (const file of files) file.check();
  return assemble(draft, new PolicyDraft(), files, options);
}

function addMetrics(ctx: MetricContext): void {
  const { measures, parts } = ctx;
  for (const measure of measures.values()) addCreated(measure, ctx);
  for (const [name, part] of parts) addMetric(name, part, ctx);
  for (const { used, part, name, aggregate } of measures.values()) {
    if (used) continue;
    const why = aggregate.ok ? 'no metric is made of it' : aggregate.reason;
    part.loseAll(`measure \`${safeText(name)}\` is nothing that can be asked for: ${why}`);
  }
}

/** Adds a metric named after the measure if `create_metric` is true; else reports description and label as lost. */
function addCreated(measure: DbtMeasure, ctx: MetricContext): void {
  const { part, name } = measure;
  const description = part.text('description');
  const label = part.text('create_metric_display_name') ?? part.text('label');
  if (part.flag('create_metric') !== true) {
    if (description !== null)
      part.note('description', 'lost', 'a measure is not a metric, so nothing carries its description');
    if (label !== null) part.note('label', 'lost', 'a measure is not a metric, so nothing carries its label');
    return;
  }
  if (ctx.parts.has(name)) {
    part.note('create_metric', 'lost', `there is a metric \`${safeText(name)}\` already`);
    return;
  }
  const own = ctx.draft.named(ctx.draft.metricNames, name, part.place);
  if (own === null) return;
  const document = attempt(() => simpleMetric(measure, []));
  if (!document.ok) {
    part.note('create_metric', 'lost', `metric \`${safeText(name)}\` does not map: ${document.reason}`);
    return;
  }
  ctx.draft.addMetric(own, document.value, part.place, description);
  ctx.made.set(name, own);
  ctx.simple.set(own, { measure, filters: [] });
  if (label !== null) ctx.draft.words([label], own, part.place);
}

/**
 * Links each foreign entity to the model whose primary entity has the same name, if there is exactly one and the column
 * of that entity is its key here (an option or a constraint may name another key).
 */
function addLinks(links: readonly ForeignKeyDraft[], models: readonly DbtModel[], draft: ImportDraft): void {
  for (const { model, name, column, part, key: at } of links) {
    const targets = models.filter((m) => m !== model && m.prefix.toLowerCase() === name.toLowerCase());
    const [target, second] = targets;
    const key = target?.entityColumns.get(name.toLowerCase());
    const why =
      target === undefined
        ? `no model has \`${safeText(name)}\` as its primary entity`
        : second !== undefined
          ? `several models have \`${safeText(name)}\` as their primary entity`
          : key === undefined || !isKeyOf(target.entity, [key])
            ? `its entity \`${safeText(name)}\` is not the key of \`${target.entity.name}\``
            : null;
    if (why !== null || target === undefined || key === undefined) {
      part.note(at, 'lost', `the link to \`${safeText(name)}\` does not map: ${why}`);
      continue;
    }
    const wanted = `${model.entity.name}_${name}`;
    const own = draft.relationshipNames.take(wanted.replace(/[^A-Za-z0-9_]/g, '_').slice(0, 60));
    model.entity.links.add(column);
    model.parents.set(name.toLowerCase(), { relationship: own, model: target });
    const document = {
      from: `${model.entity.name}.${column}`,
      to: `${target.entity.name}.${key}`,
      kind: 'many_to_one' as const,
    };
    draft.relationships.push({ name: own, document, place: part.place });
  }
}

/**
 * Adds relationships for `foreign_key` constraints, which may have several columns. MetricFlow entities have a single
 * expression, so these constraints are the only description of multi-column keys in dbt.
 */
function addConstraintLinks(
  models: readonly DbtModel[],
  projectModels: ReadonlyMap<string, ModelInfo>,
  draft: ImportDraft,
): void {
  for (const model of models) {
    for (const constraint of model.info?.foreignKeys ?? []) {
      const added = attempt(() => addLink(model, constraint, models, projectModels, draft));
      if (!added.ok) constraint.part.note(null, 'lost', `the foreign key does not map: ${added.reason}`);
    }
  }
}

function addLink(
  { entity }: DbtModel,
  { columns, to, toColumns, part }: ForeignKeyConstraint,
  models: readonly DbtModel[],
  projectModels: ReadonlyMap<string, ModelInfo>,
  draft: ImportDraft,
): void {
  const target = targetOf(to, models, projectModels).entity;
  const far = toColumns.length === 0 ? target.key : toColumns.map((c) => columnNamed(target, c));
  if (!isKeyOf(target, far))
    throw new NoMapping(`it leads to other columns than the key of \`${target.name}\``);
  if (columns.length !== far.length)
    throw new NoMapping(
      `it has ${columns.length} columns, and the key of \`${target.name}\` has ${far.length}`,
    );
  const near = columns.map((c) => entity.expose(c, part.place, 'a foreign key').name);
  const document = {
    from: endText(entity.name, near),
    to: endText(target.name, far),
    kind: 'many_to_one' as const,
  };
  // A foreign entity may already have declared the same link.
  const ends = JSON.stringify([document.from, document.to]);
  if (draft.relationships.some(({ document: d }) => JSON.stringify([d.from, d.to]) === ends)) return;
  for (const column of near) entity.links.add(column);
  const name = draft.relationshipNames.take(`${entity.name}_${target.name}`.slice(0, 60));
  draft.relationships.push({ name, document, place: part.place });
}

/** Returns the model over the table that a constraint names. @throws NoMapping if there is not exactly one */
function targetOf(
  to: string,
  models: readonly DbtModel[],
  projectModels: ReadonlyMap<string, ModelInfo>,
): DbtModel {
  const [schema, table] = tableIn(to, projectModels);
  const found = models.filter(({ entity: { table: own } }) => {
    const sameSchema = schema === null || own.schema === null || own.schema === schema;
    return own.table === table && sameSchema;
  });
  const [target, second] = found;
  if (target === undefined) throw new NoMapping(`no semantic model stands on \`${safeText(table)}\``);
  if (second !== undefined) throw new NoMapping(`several semantic models stand on \`${safeText(table)}\``);
  return target;
}

function tableIn(
  to: string,
  projectModels: ReadonlyMap<string, ModelInfo>,
): readonly [string | null, string] {
  if (to.includes('(')) {
    const reference = modelReference(to);
    if (reference.kind === 'source') return [reference.schema, reference.table];
    return [null, projectModels.get(reference.name)?.table ?? reference.name];
  }
  const parts = to.replaceAll('"', '').split('.');
  return [parts.at(-2) ?? null, parts.at(-1) ?? ''];
}

function columnNamed(entity: EntityDraft, physical: string): string {
  const column = entity.physical(physical);
  if (column === null) throw new NoMapping(`\`${entity.name}\` has no column \`${safeText(physical)}\``);
  return column.name;
}
