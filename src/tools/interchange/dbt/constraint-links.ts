import { type Draft, type EntityDraft, endText, isKeyOf } from '../draft.js';
import { shown } from '../shown.js';
import { fit, NoFit } from '../sql/expression.js';
import type { DbtModel } from './model.js';
import type { ForeignKeyConstraint, ModelInfo } from './read.js';
import { modelReference } from './reference.js';

/**
 * Constraints `foreign_key` of the models that semantic models stand on, over one column or several, as relationships:
 * an entity of MetricFlow is one expression, so that nothing else of dbt tells of a key of several columns.
 */
export function addConstraintLinks(
  models: readonly DbtModel[],
  projectModels: ReadonlyMap<string, ModelInfo>,
  draft: Draft,
): void {
  for (const model of models) {
    for (const constraint of model.info?.foreignKeys ?? []) {
      const added = fit(() => addLink(model, constraint, models, projectModels, draft));
      if (!added.ok) constraint.part.note(null, 'lost', `the foreign key does not map: ${added.reason}`);
    }
  }
}

function addLink(
  { entity }: DbtModel,
  { columns, to, toColumns, part }: ForeignKeyConstraint,
  models: readonly DbtModel[],
  projectModels: ReadonlyMap<string, ModelInfo>,
  draft: Draft,
): void {
  const target = targetOf(to, models, projectModels).entity;
  const far = toColumns.length === 0 ? target.key : toColumns.map((c) => columnNamed(target, c));
  if (!isKeyOf(target, far)) throw new NoFit(`it leads to other columns than the key of \`${target.name}\``);
  if (columns.length !== far.length)
    throw new NoFit(`it has ${columns.length} columns, and the key of \`${target.name}\` has ${far.length}`);
  const near = columns.map((c) => entity.need(c, part.place, 'a foreign key').name);
  const document = {
    from: endText(entity.name, near),
    to: endText(target.name, far),
    kind: 'many_to_one' as const,
  };
  // A foreign entity may have said the same.
  const ends = JSON.stringify([document.from, document.to]);
  if (draft.relationships.some(({ document: d }) => JSON.stringify([d.from, d.to]) === ends)) return;
  for (const column of near) entity.links.add(column);
  const name = draft.relationshipNames.take(`${entity.name}_${target.name}`.slice(0, 60));
  draft.relationships.push({ name, document, place: part.place });
}

/** The one model over the table that a constraint names. @throws NoFit */
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
  if (target === undefined) throw new NoFit(`no semantic model stands on \`${shown(table)}\``);
  if (second !== undefined) throw new NoFit(`several semantic models stand on \`${shown(table)}\``);
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
  if (column === null) throw new NoFit(`\`${entity.name}\` has no column \`${shown(physical)}\``);
  return column.name;
}
