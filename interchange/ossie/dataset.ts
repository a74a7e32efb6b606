import { typeNamed } from 'osl-compiler';
import { type ColumnDraft, EntityDraft, type ImportDraft, type TableDraft } from '../draft.js';
import { legalName, shown } from '../names.js';
import type { ImportOptions } from '../options.js';
import { reportSchema, tableNamed, upstreamOf } from '../options.js';
import type { Part } from '../part.js';
import { fit, NoFit, nameOf, tableOfQuery } from '../sql/expression.js';
import { columnText, computedText } from '../types.js';
import { DATATYPES } from './document.js';
import { expressionOf, loseExtensions, ownExtension, synonymsOf } from './expression.js';

/** Type words of several widths, which are read as the widest. */
const VAGUE: ReadonlySet<string> = new Set(['Integer', 'Float']);

const TEMPORAL: ReadonlySet<string> = new Set(['Date', 'DateTime', 'DateTimeTz']);

/** A dataset as an entity. `source` is its name in the file. */
export interface Dataset {
  readonly source: string;
  readonly part: Part;
  readonly entity: EntityDraft;
}

export function datasetOf(part: Part, draft: ImportDraft, options: ImportOptions): Dataset | null {
  const source = part.needText('name');
  const table = fit(() => tableOf(part, options));
  if (!table.ok) {
    part.loseAll(`dataset \`${shown(source)}\` has no table: ${table.reason}`);
    return null;
  }
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

export function describedBy(part: Part): string | null {
  const text = part.text('description');
  if (text === null || text === '') return null;
  return part.cut('description', text, 'the description');
}

function tableOf(part: Part, options: ImportOptions): TableDraft {
  const text = (part.isText('source') ? part.text('source') : part.child('source')?.text('object')) ?? '';
  const object = part.isText('source') ? null : part.child('source');
  if (object !== null && object.text('kind') !== 'table')
    throw new NoFit('its source is a query: make a view of it');
  const parts = tableOfQuery(text) ?? tableOfQuery(`select * from ${text}`);
  if (parts === null) throw new NoFit('its source is more than a table: make a view of it');
  const table = tableNamed(parts, options.connector);
  reportSchema(table, part.at('source'), options);
  return table;
}

/** Adds a field; returns its column name if it is an event time. */
function addField(part: Part, entity: EntityDraft, draft: ImportDraft): string | null {
  const name = part.needText('name');
  const words = synonymsOf(part);
  const datatype = part.text('datatype');
  const isTime = part.child('dimension')?.flag('is_time') ?? TEMPORAL.has(datatype ?? '');
  part.lose('label', 'labels have no counterpart');
  const own = ownExtension(part);
  const read = fit(() => expressionOf(part));
  if (!read.ok) {
    part.loseAll(`field \`${shown(name)}\` does not map: ${read.reason}`);
    return null;
  }
  const parts = nameOf(read.value.node);
  const physical = parts?.at(-1);
  if (physical === undefined) {
    const { node } = read.value;
    entity.computed.set(name.toLowerCase(), node);
    const what = `computed column \`${shown(name)}\``;
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
    part.note('datatype', 'decision', `\`${shown(datatype)}\` is no type of the model`);
  const description = describedBy(part);
  const column = fit(() => entity.add(name, physical, part.place, { description, type }));
  if (!column.ok) {
    part.loseAll(column.reason);
    return null;
  }
  if (isTime) column.value.fallback = 'timestamp';
  if (own === null && type !== null && VAGUE.has(datatype ?? '')) column.value.vague = datatype;
  if (own !== null) fromExtension(own, column.value);
  draft.words(words, `${entity.name}.${column.value.name}`, part.at('ai_context'));
  return isTime ? column.value.name : null;
}

/** Applies this gateway's own extension of a field. */
function fromExtension(own: Readonly<Record<string, unknown>>, column: ColumnDraft): void {
  const { type, sensitivity, nullable } = own;
  if (typeof type === 'string') column.type = typeNamed(type) ?? column.type;
  if (typeof sensitivity === 'string' && legalName(sensitivity) === sensitivity)
    column.sensitivity = sensitivity;
  if (nullable === false) column.nullable = false;
}

function settleTime(part: Part, entity: EntityDraft, times: readonly string[]): void {
  const [time, second] = times;
  if (time === undefined) return;
  const which = times.map((t) => `\`${t}\``).join(', ');
  if (second === undefined) {
    entity.time = time;
    part.note(null, 'decision', `${which}, the only time, was taken for that of all metrics`);
  } else part.note(null, 'decision', `several times, ${which}: \`time_dimension\` is left open`);
}

function settleKey(part: Part, source: string, entity: EntityDraft, options: ImportOptions): void {
  const stated = part.texts('primary_key');
  const unique = uniqueKeys(part);
  const upstream = upstreamOf(entity.table, options)?.primaryKey;
  const written = options.keys.get(source) ?? (stated.length > 0 ? stated : (unique[0] ?? upstream ?? []));
  const others = unique.filter((k) => k.join('\n') !== written.join('\n'));
  if (others.length > 0) part.note('unique_keys', 'lost', 'an entity has one key, its primary key');
  if (stated.length === 0 && written === unique[0])
    part.note('unique_keys', 'approximated', 'the first unique key was taken for the primary key');
  const key = fit(() => written.map((name) => keyColumn(name, entity, part)));
  if (key.ok) entity.key = key.value;
  else part.note('primary_key', 'lost', `the primary key does not map: ${key.reason}`);
}

function uniqueKeys(part: Part): readonly (readonly string[])[] {
  const keys = part.lists('unique_keys');
  return keys.filter((k) => k.length > 0);
}

/** Column of a key, by the name of the field or of the table's column. @throws NoFit */
export function keyColumn(name: string, entity: EntityDraft, part: Part): string {
  const known = entity.column(name) ?? entity.physical(name);
  return (known ?? entity.need(name, part.place, `a key of \`${entity.name}\``)).name;
}

/** SQL of a field in an expression over the dataset's rows. @throws NoFit */
export function fieldText(field: string, entity: EntityDraft, part: Part, what: string): string {
  return columnText(field, { entity, first: 'field', place: part.place, what });
}
