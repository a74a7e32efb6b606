import { quoteIdentifier } from 'osl-compiler/sql-text';
import {
  type CatalogContents,
  type CatalogForeignKey,
  escapeLiteral,
  MODEL_ROLE,
  qualifiedName,
  type TableModel,
} from '../../../../src/surfaces/catalog/engine-contract.js';
import { creationScripts } from '../../../../src/surfaces/catalog/worker/fill.js';

/** Commands of one transaction: a server has locks for so many. */
const AT_ONCE = 500;

/** The commands by which any Postgres gets the same tables, as the superuser; each script is one transaction. */
export function referenceDdl(contents: CatalogContents, version: 14 | 18): readonly string[] {
  const { tables, foreignKeys } = contents;
  const commands = [
    ...tables.map(createTable),
    ...tables.filter((t) => t.primaryKey.length > 0).map(addPrimaryKey),
    ...foreignKeys.map(addForeignKey),
    ...tables.flatMap(comments),
  ];
  const scripts: string[] = [];
  for (let from = 0; from < commands.length; from += AT_ONCE)
    scripts.push([`SET LOCAL ROLE ${MODEL_ROLE}`, ...commands.slice(from, from + AT_ONCE)].join(';\n'));
  return [
    ...creationScripts(contents),
    `GRANT CREATE ON SCHEMA entities TO ${MODEL_ROLE}`,
    ...scripts.map((script) => `BEGIN READ WRITE;\n${script};\nCOMMIT`),
    ...foreignKeys.flatMap(foreignKeyComment),
    `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`,
    `REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER${version < 17 ? '' : ', MAINTAIN'} ON ALL TABLES IN SCHEMA entities FROM ${MODEL_ROLE}`,
  ];
}

function createTable({ name, columns }: TableModel): string {
  const list = columns.map((c) => `${quoteIdentifier(c.name)} ${c.type}${c.notNull ? ' NOT NULL' : ''}`);
  return `CREATE TABLE ${qualifiedName(name)} (${list.join(', ')})`;
}

function addPrimaryKey({ name, primaryKey }: TableModel): string {
  return `ALTER TABLE ${qualifiedName(name)} ADD PRIMARY KEY (${list(primaryKey)})`;
}

function addForeignKey({ table, columns, target, targetColumns }: CatalogForeignKey): string {
  const references = `${qualifiedName(target)} (${list(targetColumns)})`;
  return `ALTER TABLE ${qualifiedName(table)} ADD FOREIGN KEY (${list(columns)}) REFERENCES ${references}`;
}

/** The comment of a foreign key, under whatever name Postgres made for it. */
function foreignKeyComment({ table, columns, target, comment }: CatalogForeignKey): readonly string[] {
  if (comment === null) return [];
  const owner = escapeLiteral(qualifiedName(table));
  const keyed = `(SELECT array_agg(a.attname::text ORDER BY u.at) FROM unnest(k.conkey) WITH ORDINALITY u(attnum, at) JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum)`;
  const found = `SELECT conname FROM pg_constraint k WHERE contype = 'f' AND conrelid = ${owner}::regclass AND confrelid = ${escapeLiteral(qualifiedName(target))}::regclass AND ${keyed} = ARRAY[${columns.map(escapeLiteral).join(', ')}]`;
  const command = `EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', made, ${owner}, ${escapeLiteral(comment)})`;
  return [
    `BEGIN READ WRITE; DO ${escapeLiteral(`DECLARE made name; BEGIN FOR made IN ${found} LOOP ${command}; END LOOP; END`)}; COMMIT`,
  ];
}

function comments({ name, comment, columns }: TableModel): readonly string[] {
  const own =
    comment === null ? [] : [`COMMENT ON TABLE ${qualifiedName(name)} IS ${escapeLiteral(comment)}`];
  const each = columns.flatMap((c) =>
    c.comment === null
      ? []
      : [
          `COMMENT ON COLUMN ${qualifiedName(name)}.${quoteIdentifier(c.name)} IS ${escapeLiteral(c.comment)}`,
        ],
  );
  return [...own, ...each];
}

function list(names: readonly string[]): string {
  return names.map(quoteIdentifier).join(', ');
}
