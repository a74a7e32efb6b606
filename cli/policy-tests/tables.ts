import { arrayText, quoteIdentifier, quoteLiteral, storedType, tableSql } from 'osl-compiler';
import { generatedSql, type Sql } from '../../src/base/sql.js';
import type { Connector, DeclaredTableColumn, Table } from '../../src/model/manifest/index.js';
import type { JsonRow } from './document.js';

export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
}

export function tablesSql({ tables }: Connector): Sql {
  const all = [...tables.values()];
  const schemas = new Set(all.map((t) => t.schema));
  const statements = [
    ...[...schemas].map((schema) => `CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)};`),
    ...enumsSql(all),
    ...all.map(
      (table) =>
        `CREATE TABLE ${tableSql(table)} (${[...table.columns.values()].map(columnSql).join(', ')});`,
    ),
  ];
  return generatedSql(statements.join('\n'));
}

export function truncateSql(tables: readonly Table[]): Sql {
  return generatedSql(`TRUNCATE ${tables.map(tableSql).join(', ')};`);
}

/** SQL for enums with declared labels. A column of any other user-defined type is stored as text. */
function enumsSql(tables: readonly Table[]): readonly string[] {
  const enums = new Map<string, readonly string[]>();
  for (const { columns } of tables)
    for (const column of columns.values()) {
      const type = declaredEnum(column);
      if (type !== null) enums.set(type, column.labels ?? []);
    }
  return [...enums].flatMap(([type, labels]) => [
    `CREATE SCHEMA IF NOT EXISTS ${type.slice(0, type.lastIndexOf('.'))};`,
    `CREATE TYPE ${type} AS ENUM (${labels.map(quoteLiteral).join(', ')});`,
  ]);
}

function declaredEnum({ stored, labels }: DeclaredTableColumn): string | null {
  const type = stored === null ? null : storedType(stored);
  return type?.isEnum === true && labels !== null ? type.sql : null;
}

function columnSql(column: DeclaredTableColumn): string {
  return `${quoteIdentifier(column.name)} ${typeSql(column)}`;
}

function typeSql(column: DeclaredTableColumn): string {
  const { stored, type } = column;
  if (stored === null) return type;
  const found = storedType(stored);
  const own = found !== null && !found.isEnum && !found.sql.includes('.');
  if (own) return found.isArray ? `${found.sql}[]` : found.sql;
  return declaredEnum(column) ?? type;
}

/** Rows in COPY format, with the columns they use. @throws UnfitRows */
export function copyOf(
  table: Table,
  rows: readonly JsonRow[],
): { readonly columns: readonly string[]; readonly rows: readonly (readonly (string | null)[])[] } {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const unknown = columns.find((name) => !table.columns.has(name));
  if (unknown !== undefined)
    throw new UnfitRows(`table ${table.schema}.${table.table} of the manifest has no column \`${unknown}\``);
  return {
    columns,
    rows: rows.map((row) => columns.map((name) => textOf(row[name], table.columns.get(name)))),
  };
}

function textOf(value: unknown, column: DeclaredTableColumn | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value) && column?.type.endsWith('[]') === true)
    return arrayText(value.map((item: unknown) => textOf(item, undefined)));
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}
