import type { CatalogModel, ForeignKey, TableModel } from './model.js';
import { MODEL_ROLE } from './roles.js';

/**
 * The script that fills a base image with one caller's tables, as the bootstrap superuser. Constraints and indexes
 * get the names that Postgres makes from ours; upstream's names are nowhere in it.
 */
export function ddlOf(model: CatalogModel): string {
  return [
    'BEGIN READ WRITE',
    `GRANT CREATE ON SCHEMA entities TO ${MODEL_ROLE}`,
    `SET LOCAL ROLE ${MODEL_ROLE}`,
    ...model.tables.map(createTable),
    ...model.tables.filter((t) => t.primaryKey.length > 0).map(addPrimaryKey),
    ...model.foreignKeys.map(addForeignKey),
    ...model.tables.flatMap(comments),
    `REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER, MAINTAIN ON ALL TABLES IN SCHEMA entities FROM ${MODEL_ROLE}`,
    'RESET ROLE',
    `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`,
    'COMMIT',
    'CHECKPOINT',
  ].join(';\n');
}

function createTable({ name, columns }: TableModel): string {
  const list = columns.map((c) => `${identifier(c.name)} ${c.type}${c.notNull ? ' NOT NULL' : ''}`);
  return `CREATE TABLE ${entity(name)} (${list.join(', ')})`;
}

function addPrimaryKey({ name, primaryKey }: TableModel): string {
  return `ALTER TABLE ${entity(name)} ADD PRIMARY KEY (${list(primaryKey)})`;
}

function addForeignKey({ table, columns, target, targetColumns }: ForeignKey): string {
  const references = `${entity(target)} (${list(targetColumns)})`;
  return `ALTER TABLE ${entity(table)} ADD FOREIGN KEY (${list(columns)}) REFERENCES ${references}`;
}

function comments({ name, comment, columns }: TableModel): readonly string[] {
  const own = comment === null ? [] : [`COMMENT ON TABLE ${entity(name)} IS ${literal(comment)}`];
  const each = columns.flatMap((c) =>
    c.comment === null
      ? []
      : [`COMMENT ON COLUMN ${entity(name)}.${identifier(c.name)} IS ${literal(c.comment)}`],
  );
  return [...own, ...each];
}

function entity(name: string): string {
  return `entities.${identifier(name)}`;
}

function list(names: readonly string[]): string {
  return names.map(identifier).join(', ');
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** An escape string, so that no setting changes what it means. NUL is in no manifest and in no token. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
