import type { Column } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { ColumnDocument, ColumnsDocument } from '../document.js';
import type { DeclaredTableColumn, Table } from '../manifest.js';
import type { Problems } from './scope.js';
import { perhaps } from './scope.js';

/** Column names with a special meaning in OSL-SQL. */
export const RESERVED: ReadonlySet<string> = new Set(['evidence']);

/** Exposed columns in declared order. A column without a declared type is reported and left out. */
export function columnsOf(
  document: ColumnsDocument,
  path: Path,
  table: Table,
  primaryKey: readonly string[],
  problems: Problems,
): readonly Column[] {
  const seen = new Map<string, string>();
  const columns: Column[] = [];
  for (const [name, step, column] of entriesOf(document)) {
    const at = [...path, step];
    const before = seen.get(name.toLowerCase());
    if (before !== undefined) {
      problems.add(
        CODES.duplicateName,
        at,
        `column \`${name}\` is declared twice`,
        sameName(name, before),
        true,
      );
      continue;
    }
    seen.set(name.toLowerCase(), name);
    if (RESERVED.has(name.toLowerCase())) {
      problems.add(
        CODES.reserved,
        at,
        `\`${name}\` has a meaning of its own in OSL-SQL`,
        'choose another name for the column',
        true,
      );
    }
    const physical = column.column ?? name;
    const upstream = declared(
      physical,
      column.column === undefined ? at : [...at, 'column'],
      table,
      problems,
    );
    if (upstream !== null)
      columns.push(columnFrom(upstream, name, column.description, primaryKey, at, problems));
  }
  return Object.freeze(columns);
}

/** Name, step in the path, and declaration of each column, in either form. */
function entriesOf(
  document: ColumnsDocument,
): readonly (readonly [string, string | number, ColumnDocument])[] {
  if (isList(document)) return document.map((name, i) => [name, i, {}] as const);
  return Object.entries(document).map(([name, column]) => [name, name, column ?? {}] as const);
}

/** `Array.isArray` does not narrow a readonly array. */
function isList(document: ColumnsDocument): document is readonly string[] {
  return Array.isArray(document);
}

function columnFrom(
  upstream: DeclaredTableColumn,
  name: string,
  description: string | undefined,
  primaryKey: readonly string[],
  path: Path,
  problems: Problems,
): Column {
  const isKey = primaryKey.includes(name);
  if (isKey && upstream.nullable === true) {
    problems.add(CODES.conflict, path, `primary key column \`${name}\` is declared nullable`, null, true);
  }
  return Object.freeze({
    name,
    physical: upstream.name,
    type: upstream.type,
    ...(upstream.stored !== null && { stored: upstream.stored }),
    ...(upstream.labels !== null && { labels: upstream.labels }),
    ...(upstream.form !== null && { form: upstream.form }),
    description: description ?? null,
    nullable: upstream.nullable ?? !isKey,
    sensitivity: upstream.sensitivity,
    keyDomain: null,
  });
}

/** Column that the connector declares as `physical`; null after a reported problem. */
export function declared(
  physical: string,
  path: Path,
  table: Table,
  problems: Problems,
): DeclaredTableColumn | null {
  const column = table.columns.get(physical);
  if (column !== undefined) return column;
  const hint =
    perhaps(physical, table.columns.keys()) ??
    `declare its type under tables.${table.schema}.${table.table}.columns`;
  const message = `column \`${physical}\` of \`${table.schema}.${table.table}\` has no declared type`;
  problems.add(CODES.undeclaredColumn, path, message, hint);
  return null;
}

function sameName(name: string, before: string): string | null {
  return name === before ? null : `\`${before}\` is the same name: case does not count`;
}
