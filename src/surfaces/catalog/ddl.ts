import { identifier, quoteIdentifier, quoteLiteral } from 'osl-compiler';
import type { CatalogModel, EnumModel, FacetModel, ForeignKey, MetricsModel, TableModel } from './model.js';
import { WITHOUT_NOT_NULL_CONSTRAINTS } from './relations-of-version.js';
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
    ...model.enums.map(createEnum),
    ...model.tables.map(createTable),
    ...model.tables.filter((t) => t.primaryKey.length > 0).map(addPrimaryKey),
    ...model.foreignKeys.map(addForeignKey),
    ...model.tables.flatMap(comments),
    `REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER, MAINTAIN ON ALL TABLES IN SCHEMA entities FROM ${MODEL_ROLE}`,
    'RESET ROLE',
    ...model.foreignKeys.flatMap(foreignKeyComment),
    `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`,
    WITHOUT_NOT_NULL_CONSTRAINTS,
    ...(model.metrics.length === 0 ? [] : METRICS_SCHEMA),
    ...model.metrics.filter(hasRoom).flatMap(metricsView),
    ...model.facets.flatMap(facetFunction),
    'COMMIT',
    'CHECKPOINT',
  ].join(';\n');
}

function createEnum({ name, labels }: EnumModel): string {
  return `CREATE TYPE ${entity(name)} AS ENUM (${labels.map(literal).join(', ')})`;
}

function createTable({ name, columns }: TableModel): string {
  const list = columns.map(
    (c) =>
      `${quoteIdentifier(c.name)} ${c.enumName === null ? c.declared : entity(c.enumName)}${c.notNull ? ' NOT NULL' : ''}`,
  );
  return `CREATE TABLE ${entity(name)} (${list.join(', ')})`;
}

function addPrimaryKey({ name, primaryKey }: TableModel): string {
  return `ALTER TABLE ${entity(name)} ADD PRIMARY KEY (${list(primaryKey)})`;
}

function addForeignKey({ table, columns, target, targetColumns }: ForeignKey): string {
  const references = `${entity(target)} (${list(targetColumns)})`;
  return `ALTER TABLE ${entity(table)} ADD FOREIGN KEY (${list(columns)}) REFERENCES ${references}`;
}

/** The comment of a foreign key, under whatever name Postgres made for it. */
function foreignKeyComment({ table, columns, target, comment }: ForeignKey): readonly string[] {
  if (comment === null) return [];
  const owner = literal(entity(table));
  const keyed = `(SELECT array_agg(a.attname::text ORDER BY u.at) FROM unnest(k.conkey) WITH ORDINALITY u(attnum, at) JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum)`;
  const found = `SELECT conname FROM pg_constraint k WHERE contype = 'f' AND conrelid = ${owner}::regclass AND confrelid = ${literal(entity(target))}::regclass AND ${keyed} = ARRAY[${columns.map(literal).join(', ')}]`;
  const told = `EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', made, ${owner}, ${literal(comment)})`;
  return [`DO ${literal(`DECLARE made name; BEGIN FOR made IN ${found} LOOP ${told}; END LOOP; END`)}`];
}

function comments({ name, comment, columns }: TableModel): readonly string[] {
  const own = comment === null ? [] : [`COMMENT ON TABLE ${entity(name)} IS ${literal(comment)}`];
  const each = columns.flatMap((c) =>
    c.comment === null
      ? []
      : [`COMMENT ON COLUMN ${entity(name)}.${quoteIdentifier(c.name)} IS ${literal(c.comment)}`],
  );
  return [...own, ...each];
}

const METRICS_SCHEMA = ['CREATE SCHEMA metrics', 'GRANT USAGE ON SCHEMA metrics TO PUBLIC'] as const;

/** Tools look tables up by name alone, so a view is not called as its entity. */
const METRICS_SUFFIX = '_metrics';
/** Bytes of a Postgres name. An entity whose view would be cut has its metrics in its comment only. */
const MAX_BYTES = 63;

function hasRoom({ entity }: MetricsModel): boolean {
  return Buffer.byteLength(entity) + METRICS_SUFFIX.length <= MAX_BYTES;
}

/** A table to be listed, not to be read: the data lane has no such table. */
function metricsView({ entity, metrics }: MetricsModel): readonly string[] {
  const view = `metrics.${quoteIdentifier(`${entity}${METRICS_SUFFIX}`)}`;
  const columns = metrics.map((m) => `NULL::${m.type} AS ${quoteIdentifier(m.name)}`);
  return [
    `CREATE VIEW ${view} AS SELECT ${columns.join(', ')} WHERE false`,
    `GRANT SELECT ON ${view} TO ${MODEL_ROLE}`,
    `COMMENT ON VIEW ${view} IS ${literal(`Metrics of ${entity}: SELECT MEASURE(name) FROM ${identifier(entity)}.`)}`,
    ...metrics.map(({ name, description }) => {
      const words = [description, `Use MEASURE(${identifier(name)}).`].filter((w) => w !== null).join(' ');
      return `COMMENT ON COLUMN ${view}.${quoteIdentifier(name)} IS ${literal(words)}`;
    }),
  ];
}

/** A function to be listed, not to be called: an empty answer would be a false one, so it raises. */
function facetFunction({ name, description, columns }: FacetModel): readonly string[] {
  const given = new Set(columns.map(([column]) => column));
  const takes = [
    ['query', 'text'],
    ['top_k', 'integer'],
  ].map(([argument = '', type = '']) => (given.has(argument) ? type : `${argument} ${type}`));
  const gives = columns.map(([column, type]) => `${quoteIdentifier(column)} ${type}`);
  const call = `RETRIEVE(facet => ${quoteLiteral(name)}, query => '…', top_k => 5)`;
  const body = `BEGIN RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = ${literal(`facet "${name}" is not a function to call`)}, HINT = ${literal(`SELECT … FROM ${call}`)}; END`;
  const words = [description, `Ask ${call}.`].filter((w) => w !== null).join(' ');
  return [
    `CREATE FUNCTION ${entity(name)}(${takes.join(', ')}) RETURNS TABLE (${gives.join(', ')}) LANGUAGE plpgsql STABLE AS ${literal(body)}`,
    `COMMENT ON FUNCTION ${entity(name)}(text, integer) IS ${literal(words)}`,
  ];
}

function entity(name: string): string {
  return `entities.${quoteIdentifier(name)}`;
}

function list(names: readonly string[]): string {
  return names.map(quoteIdentifier).join(', ');
}

/** An escape string, so that no setting changes what it means. NUL is in no manifest and in no token. */
export function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
