import type { PGlite } from '@electric-sql/pglite';
import { identifier, quoteIdentifier, quoteLiteral } from 'osl-compiler/sql-text';
import {
  type CatalogContents,
  type EnumModel,
  escapeLiteral,
  type FacetModel,
  type MetricsModel,
  MODEL_ROLE,
  qualifiedName,
} from '../engine-contract.js';
import { linkKey, patternsFor, type TypesInUse } from './patterns.js';
import { catalogRows, FILLED_CATALOGS, type FilledTable } from './rows.js';

/** Maximum length of one line, and the length from which on lines are sent in a COPY, both in UTF-16 code units. */
const MAX_LINE_LENGTH = 65_536;
const COPY_LENGTH = 262_144;

/** Fills an engine booted from the base image with the tables of one catalog and analyzes them. */
export async function fill(pg: PGlite, contents: CatalogContents): Promise<void> {
  await pg.exec('SET default_transaction_read_only = off');
  for (const transaction of creationScripts(contents)) await pg.exec(transaction);
  const patterns = await patternsFor(pg, typesUsed(contents));
  const { rows: existing } = await pg.query<{ relations: string[]; types: string[]; next: number }>(
    EXISTING_NAMES,
  );
  const [{ relations, types, next } = { relations: [], types: [], next: 0 }] = existing;
  const file = new RowsFile(pg);
  const copies = new Map(FILLED_CATALOGS.map((table) => [table, new TableCopy(pg, table, file)]));
  for (const [table, line] of catalogRows(contents, patterns, { relations, types }, next)) {
    const copy = copies.get(table);
    if (copy?.add(line) === true) await copy.flush();
  }
  for (const copy of copies.values()) await copy.flush();
  file.remove();
  // Frozen rows are never rewritten, so the engine's files stay identical to the shared image.
  await pg.exec(
    `VACUUM (FREEZE, ANALYZE) ${FILLED_CATALOGS.map((table) => `pg_catalog.${table}`).join(', ')}`,
  );
  await pg.exec('RESET default_transaction_read_only');
  await pg.exec('CHECKPOINT');
}

const EXISTING_NAMES = `
  SELECT ARRAY(SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = 'entities'::regnamespace) AS relations,
    ARRAY(SELECT typname::text FROM pg_catalog.pg_type WHERE typnamespace = 'entities'::regnamespace) AS types,
    1 + (SELECT max(oid::int8) FROM (SELECT oid FROM pg_catalog.pg_class UNION ALL SELECT oid FROM pg_catalog.pg_type
      UNION ALL SELECT oid FROM pg_catalog.pg_constraint UNION ALL SELECT oid FROM pg_catalog.pg_trigger) AS o(oid)) AS next`;

/** The file that COPY reads. One buffer is reused, since garbage of this size would outlive filling. */
class RowsFile {
  static readonly PATH = '/tmp/rows';
  readonly #buffer = new Uint8Array(3 * (COPY_LENGTH + MAX_LINE_LENGTH)); // UTF-8 needs at most three bytes per UTF-16 unit
  readonly #fs: PGlite['Module']['FS'];

  constructor(pg: PGlite) {
    this.#fs = pg.Module.FS;
    this.write('');
  }

  write(text: string): void {
    const { written } = new TextEncoder().encodeInto(text, this.#buffer);
    this.#fs.writeFile(RowsFile.PATH, this.#buffer.subarray(0, written), { canOwn: true });
  }

  remove(): void {
    this.#fs.unlink(RowsFile.PATH);
  }
}

class TableCopy {
  readonly #pg: PGlite;
  readonly #table: FilledTable;
  readonly #file: RowsFile;
  #lines: string[] = [];
  #length = 0;

  constructor(pg: PGlite, table: FilledTable, file: RowsFile) {
    this.#pg = pg;
    this.#table = table;
    this.#file = file;
  }

  add(line: string): boolean {
    this.#lines.push(line);
    this.#length += line.length;
    return this.#length >= COPY_LENGTH;
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    this.#file.write(this.#lines.join(''));
    this.#lines = [];
    this.#length = 0;
    await this.#pg.exec(`COPY pg_catalog.${this.#table} FROM '${RowsFile.PATH}'`);
  }
}

function typesUsed({ tables, foreignKeys }: CatalogContents): TypesInUse {
  const columns = new Set<string>();
  const keys = new Set<string>();
  const links = new Map<string, readonly [string, string]>();
  const typesOf = new Map<string, ReadonlyMap<string, string>>();
  for (const table of tables) {
    const types = new Map(table.columns.map(({ name, type }) => [name, type]));
    for (const type of types.values()) columns.add(type);
    for (const name of table.primaryKey) keys.add(types.get(name) ?? '');
    typesOf.set(table.name, types);
  }
  for (const key of foreignKeys) {
    for (const [i, name] of key.columns.entries()) {
      const from = typesOf.get(key.table)?.get(name);
      const to = typesOf.get(key.target)?.get(key.targetColumns[i] ?? '');
      if (from !== undefined && to !== undefined) links.set(linkKey(from, to), [from, to]);
    }
  }
  return { columns, keys, links: links.values() };
}

/** Number of objects created per transaction; the engine's lock table is small. */
const BATCH_SIZE = 100;

/**
 * Scripts that create enums, metric views and facet functions before the tables. They run as the bootstrap superuser,
 * each in one transaction.
 */
export function* creationScripts({ enums, metrics, facets }: CatalogContents): Generator<string> {
  const grantCreate = `GRANT CREATE ON SCHEMA entities TO ${MODEL_ROLE}`;
  const asModel = [grantCreate, `SET LOCAL ROLE ${MODEL_ROLE}`];
  const revokeCreate = ['RESET ROLE', `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`];
  for (const batch of batches(enums))
    yield transaction(...asModel, ...batch.map(createEnum), ...revokeCreate);
  if (metrics.length > 0) yield transaction(...METRICS_SCHEMA);
  for (const batch of batches(metrics.filter(fitsName))) yield transaction(...batch.flatMap(metricsView));
  for (const batch of batches(facets)) yield transaction(...batch.flatMap(facetFunction));
}

function transaction(...commands: readonly string[]): string {
  return ['BEGIN READ WRITE', ...commands, 'COMMIT'].join(';\n');
}

function* batches<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += BATCH_SIZE) yield items.slice(from, from + BATCH_SIZE);
}

function createEnum({ name, labels }: EnumModel): string {
  return `CREATE TYPE ${qualifiedName(name)} AS ENUM (${labels.map(escapeLiteral).join(', ')})`;
}

const METRICS_SCHEMA = ['CREATE SCHEMA metrics', 'GRANT USAGE ON SCHEMA metrics TO PUBLIC'] as const;

/** Suffix of metric views: tools look up tables by name alone, so a view must not share its entity's name. */
const METRICS_SUFFIX = '_metrics';
/**
 * Maximum bytes of a Postgres name. If an entity's view name would be truncated, its metrics are listed only in its
 * comment.
 */
const MAX_BYTES = 63;

function fitsName({ entity }: MetricsModel): boolean {
  return Buffer.byteLength(entity) + METRICS_SUFFIX.length <= MAX_BYTES;
}

/** Creates a view that exists only for tools to list: data queries cannot name it. */
function metricsView({ entity, metrics }: MetricsModel): readonly string[] {
  const view = `metrics.${quoteIdentifier(`${entity}${METRICS_SUFFIX}`)}`;
  const columns = metrics.map((m) => `NULL::${m.type} AS ${quoteIdentifier(m.name)}`);
  return [
    `CREATE VIEW ${view} AS SELECT ${columns.join(', ')} WHERE false`,
    `GRANT SELECT ON ${view} TO ${MODEL_ROLE}`,
    `COMMENT ON VIEW ${view} IS ${escapeLiteral(`Metrics of ${entity}: SELECT MEASURE(name) FROM ${identifier(entity)}.`)}`,
    ...metrics.map(({ name, description }) => {
      const comment = [description, `Use MEASURE(${identifier(name)}).`].filter((w) => w !== null).join(' ');
      return `COMMENT ON COLUMN ${view}.${quoteIdentifier(name)} IS ${escapeLiteral(comment)}`;
    }),
  ];
}

/**
 * Creates a function that exists only for tools to list. Calling it raises an error, since an empty result would be
 * wrong.
 */
function facetFunction({ name, description, columns }: FacetModel): readonly string[] {
  const columnNames = new Set(columns.map(([column]) => column));
  const parameters = [
    ['query', 'text'],
    ['top_k', 'integer'],
  ].map(([argument = '', type = '']) => (columnNames.has(argument) ? type : `${argument} ${type}`));
  const resultColumns = columns.map(([column, type]) => `${quoteIdentifier(column)} ${type}`);
  const call = `RETRIEVE(facet => ${quoteLiteral(name)}, query => '…', top_k => 5)`;
  const body = `BEGIN RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = ${escapeLiteral(`facet "${name}" is not a function to call`)}, HINT = ${escapeLiteral(`SELECT … FROM ${call}`)}; END`;
  const comment = [description, `Ask ${call}.`].filter((w) => w !== null).join(' ');
  return [
    `CREATE FUNCTION ${qualifiedName(name)}(${parameters.join(', ')}) RETURNS TABLE (${resultColumns.join(', ')}) LANGUAGE plpgsql STABLE AS ${escapeLiteral(body)}`,
    `COMMENT ON FUNCTION ${qualifiedName(name)}(text, integer) IS ${escapeLiteral(comment)}`,
  ];
}
