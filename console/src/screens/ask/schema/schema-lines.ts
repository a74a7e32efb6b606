import { identifier } from 'osl-compiler/sql-text';
import type { Schema } from '../../../../../clients/typescript/types.js';
import { codeOf, scopeOf } from '../editor/completions-at.js';

/** One line of the list of entities, columns and metrics. */
export interface SchemaLine {
  readonly kind: 'entity' | 'column' | 'metric';
  readonly name: string;
  /** Entity or bridge of a column; otherwise the same as `name`. */
  readonly entity: string;
  /** Text after the name: a column's type and restriction, a metric's type and entity, or `bridge`. */
  readonly detail: string;
  readonly masked: 'none' | 'some' | 'all';
  readonly description: string | null;
}

type ListedSchema = Pick<Schema, 'entities' | 'metrics' | 'relationships'>;

type NamedThing = Pick<SchemaLine, 'name' | 'description'> & { readonly synonyms?: readonly string[] };

/**
 * Returns the lines that match a search. Entities, columns and metrics match if all words occur in their name, synonyms
 * or description. Matching columns follow their entity; an entity in `open` is followed by all of its columns.
 */
export function schemaLines(
  schema: ListedSchema,
  search: string,
  open: ReadonlySet<string>,
): readonly SchemaLine[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ name, description, synonyms = [] }: NamedThing): boolean => {
    const text = [name, description ?? '', ...synonyms].join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const entities = sourcesOf(schema).flatMap(({ line, columns, synonyms }) => {
    const found = words.length === 0 ? [] : columns.filter(matches);
    if (found.length === 0 && !matches({ ...line, synonyms })) return [];
    return [line, ...(open.has(line.name) ? columns : found)];
  });
  const metrics = schema.metrics
    .filter((metric) => metric.measurable && matches(metric))
    .map(
      ({ name, type, entity, description }): SchemaLine => ({
        kind: 'metric',
        name,
        entity: name,
        detail: entity === null ? type : `${type} · ${entity}`,
        masked: 'none',
        description,
      }),
    );
  return [...entities, ...metrics];
}

interface ListedSource {
  readonly line: SchemaLine;
  readonly columns: readonly (SchemaLine & NamedThing)[];
  readonly synonyms: readonly string[];
}

/** Returns entities and bridges with their columns. */
function sourcesOf({ entities, relationships }: ListedSchema): readonly ListedSource[] {
  const bridges = relationships.flatMap(({ bridge, description }) =>
    bridge === null ? [] : [{ ...bridge, description, synonyms: [], derived: [], kind: 'bridge' }],
  );
  return [...entities.map((entity) => ({ ...entity, kind: '' })), ...bridges].map(
    ({ name, description, synonyms, columns, derived, kind }) => ({
      line: { kind: 'entity', name, entity: name, detail: kind, masked: 'none', description },
      synonyms,
      columns: [
        ...columns.map((column) => ({
          ...column,
          kind: 'column' as const,
          entity: name,
          detail: column.use === 'rows' ? column.type : `${column.type} · in figures only`,
        })),
        ...derived.map((column) => ({
          ...column,
          kind: 'column' as const,
          entity: name,
          detail: `${column.type} · from text`,
          masked: 'none' as const,
        })),
      ],
    }),
  );
}

/**
 * Returns the text to insert for a line at `from … to` of a query: the name as it must be written there, preceded by a
 * comma or a space and followed by a space if the text needs one.
 */
export function insertionAt(text: string, from: number, to: number, line: SchemaLine): string {
  const before = codeOf(text.slice(0, from));
  const follows = /[\p{L}\p{N}_$]/u.test(text.slice(to, to + 1)) ? ' ' : '';
  if (/\.\s*$/.test(before)) return `${identifier(line.name)}${follows}`;
  return `${separatorAfter(before, line)}${nameIn(text, line)}${follows}`;
}

function nameIn(text: string, { kind, name, entity }: SchemaLine): string {
  switch (kind) {
    case 'entity':
      return `osl.entities.${identifier(name)}`;
    case 'metric':
      return `measure(${identifier(name)})`;
    case 'column': {
      const scope = scopeOf(text);
      const alias = scope.size < 2 ? undefined : [...scope].find(([, source]) => source === entity)?.[0];
      return `${alias === undefined ? '' : `${identifier(alias)}.`}${identifier(name)}`;
    }
  }
}

const CLAUSE = /\b(select|distinct|by|from|join|where|on|using|having|limit)\b/gi;

/** Returns the separator before an inserted name: a comma within a SELECT or BY list, else a space if needed. */
function separatorAfter(before: string, { kind }: SchemaLine): string {
  if (!/[\p{L}\p{N}_$"')*\]]\s*$/u.test(before)) return '';
  const clause = [...before.matchAll(CLAUSE)].at(-1);
  const isList = /^(?:select|distinct|by)$/i.test(clause?.[0] ?? '');
  const isFirst = before.slice((clause?.index ?? 0) + (clause?.[0].length ?? 0)).trim() === '';
  if (kind !== 'entity' && isList && !isFirst) return ', ';
  return /\s$/.test(before) ? '' : ' ';
}
