import { choicesOf, type FileKind, meaningOf, PLAIN_NAMES, type PlaceMeaning, schemaAt } from './meaning.js';
import type { ManifestNames } from './names.js';
import { argumentOf, columnsIn, isName, type Statement, sourcesIn } from './osql-scope.js';
import type { YamlPlace } from './yaml/place.js';

export interface HoverTarget {
  readonly declared: { readonly file: FileKind; readonly steps: readonly string[] };
  /** The object's name in queries, such as `order.amount`; null if access to it cannot be shown. */
  readonly object: string | null;
}

/** The declared object that the word at a position names; null if there is none. */
export function targetAt(kind: FileKind, place: YamlPlace, names: ManifestNames): HoverTarget | null {
  const roles = place.role === 'either' ? (['value', 'key'] as const) : [place.role];
  for (const role of roles) {
    const meaning = meaningOf(kind, place, role);
    const target = meaning === null ? null : targetOf(meaning, place.word, place, names);
    if (target !== null) return target;
  }
  return null;
}

function targetOf(
  meaning: PlaceMeaning,
  word: string,
  place: YamlPlace,
  names: ManifestNames,
): HoverTarget | null {
  switch (meaning.kind) {
    case 'relation':
      return relationTarget(word, names);
    case 'column':
      return columnTarget(meaning.of, word, names);
    case 'table column':
      return tableColumnTarget(meaning.of, word, place, names);
    case 'entity column':
    case 'term': {
      const [relation = '', column] = word.split('.');
      const found =
        column === undefined ? relationTarget(relation, names) : columnTarget(relation, column, names);
      return found ?? declared('manifest', ['metrics', word], names.metrics.includes(word));
    }
    case 'table':
      return tableTarget(meaning.of, word, names);
    default: {
      const { file, section, names: known } = PLAIN_NAMES[meaning.kind];
      return declared(file, [section, word], known(names).includes(word));
    }
  }
}

function declared(file: FileKind, steps: readonly string[], exists: boolean): HoverTarget | null {
  return exists ? { declared: { file, steps }, object: null } : null;
}

const SECTIONS = { entity: 'entities', bridge: 'bridges', facet: 'facets' } as const;

function relationTarget(name: string, { relations }: ManifestNames): HoverTarget | null {
  const found = relations.find((relation) => relation.name === name);
  if (found === undefined) return null;
  return { declared: { file: 'manifest', steps: [SECTIONS[found.kind], name] }, object: name };
}

function columnTarget(relation: string, column: string, { relations }: ManifestNames): HoverTarget | null {
  const found = relations.find(({ name }) => name === relation);
  const own = found?.columns.find(({ name }) => name === column);
  if (found === undefined || own === undefined) return null;
  const steps = [SECTIONS[found.kind], relation, own.section, column];
  return { declared: { file: 'manifest', steps }, object: `${relation}.${column}` };
}

/**
 * Target for a table column: its declaration in the connector. `object` is set if the entity lists the column under the
 * same name.
 */
function tableColumnTarget(
  relation: string,
  column: string,
  { steps }: YamlPlace,
  names: ManifestNames,
): HoverTarget | null {
  const table = names.relations.find(({ name }) => name === relation)?.table ?? null;
  if (table === null) return null;
  const path = ['connectors', table.connector, 'tables', table.name, 'columns', column];
  const listed = steps.at(-1) === '[]' ? columnTarget(relation, column, names) : null;
  return { declared: { file: 'manifest', steps: path }, object: listed?.object ?? null };
}

function tableTarget(
  connector: string | null,
  word: string,
  { connectors }: ManifestNames,
): HoverTarget | null {
  const of = connector ?? word.slice(0, Math.max(0, word.indexOf('.')));
  const table = connector === null ? word.slice(of.length + 1) : word;
  const exists = connectors.some(({ name, tables }) => name === of && tables.some((t) => t.name === table));
  return declared('manifest', ['connectors', of, 'tables', table], exists);
}

/** Schema description of the key at a position, or of the key whose value is there. */
export function schemaText(kind: FileKind, place: YamlPlace): string | null {
  const steps = place.role === 'value' ? place.steps : [...place.steps, place.word];
  const part = schemaAt(kind, steps) ?? schemaAt(kind, place.steps);
  if (part?.description === undefined) return null;
  const choices = part.enum === undefined ? [] : choicesOf(part);
  return choices.length === 0
    ? part.description
    : `${part.description}\n\nOne of ${choices.map((c) => `\`${c}\``).join(', ')}.`;
}

/** The object named by the word at offset `at` of a query, with the range of the word. */
export function questionTarget(
  { tokens }: Statement,
  at: number,
  names: ManifestNames,
): (HoverTarget & { readonly from: number; readonly to: number; readonly detail: string | null }) | null {
  const index = tokens.findIndex(
    (token) => token.from <= at && at <= token.to && (isName(token) || token.kind === 'string'),
  );
  const token = tokens[index];
  if (token === undefined) return null;
  const { from, to } = token;
  if (token.kind === 'string') {
    const argument = ['facet', 'anchor', 'target'].find(
      (name) => argumentOf(tokens.slice(Math.max(0, index - 2), index + 1), name) !== null,
    );
    const target = argument === undefined ? null : relationTarget(token.text.slice(1, -1), names);
    return target === null ? null : { ...target, from, to, detail: null };
  }
  const sources = sourcesIn(tokens, names);
  const owner = tokens[index - 1]?.text === '.' ? tokens[index - 2] : undefined;
  if (isName(owner) && owner.text !== 'entities') {
    const source = sources.find(({ alias }) => alias === owner.text);
    return source === undefined ? null : columnFound(source.relation, token.text, from, to, names);
  }
  const relation = sources.find(({ alias }) => alias === token.text)?.relation ?? token.text;
  const found = relationTarget(relation, names);
  if (found !== null) return { ...found, from, to, detail: null };
  if (names.metrics.includes(token.text))
    return {
      declared: { file: 'manifest', steps: ['metrics', token.text] },
      object: null,
      from,
      to,
      detail: 'metric',
    };
  const having = sources.find((source) => columnsIn(source, names).some(({ name }) => name === token.text));
  return having === undefined ? null : columnFound(having.relation, token.text, from, to, names);
}

function columnFound(relation: string, column: string, from: number, to: number, names: ManifestNames) {
  const target = columnTarget(relation, column, names);
  if (target === null) return null;
  const detail = names.relations
    .find(({ name }) => name === relation)
    ?.columns.find(({ name }) => name === column);
  return { ...target, from, to, detail: detail?.type ?? null };
}

export function objectText(
  { object, declared: { steps } }: HoverTarget,
  names: ManifestNames,
): string | null {
  if (object === null) return steps[0] === 'metrics' ? `metric **${steps[1]}**` : null;
  const [, name = '', , column] = steps;
  const relation = names.relations.find((one) => one.name === name);
  if (relation === undefined) return null;
  const own = relation.columns.find((one) => one.name === column);
  const head =
    own === undefined
      ? `${relation.kind} **${name}**`
      : `**${name}.${own.name}**${own.type === null ? '' : ` ${own.type}`}`;
  const description = own === undefined ? relation.description : own.description;
  return description === null ? head : `${head}\n\n${description}`;
}
