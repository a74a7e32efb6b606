import type { PGlite } from '@electric-sql/pglite';
import { identifier, quoteIdentifier, quoteLiteral } from 'osl-compiler/sql-text';
import {
  type CatalogContents,
  type EnumModel,
  type FacetModel,
  inEntities,
  literal,
  type MetricsModel,
  MODEL_ROLE,
} from '../engine-contract.js';
import { linkOf, patternsFor, type TypesInUse } from './patterns.js';
import { catalogRows, FILLED_CATALOGS, type FilledTable } from './rows.js';

/** Maximum length of one line, and the length from which on lines are sent in a COPY, both in UTF-16 code units. */
const MAX_LINE = 65_536;
const COPIED_AT_ONCE = 262_144;

/** Fills an engine booted from the base image with the tables of one catalog and analyzes them. */
export async function fill(pg: PGlite, contents: CatalogContents): Promise<void> {
  await pg.exec('SET default_transaction_read_only = off');
  for (const script of creationScripts(contents)) await pg.exec(script);
  const patterns = await patternsFor(pg, typesIn(contents));
  const { rows: taken } = await pg.query<{ relations: string[]; types: string[]; next: number }>(TAKEN);
  const [{ relations, types, next } = { relations: [], types: [], next: 0 }] = taken;
  const file = new RowsFile(pg);
  const waiting = new Map(FILLED_CATALOGS.map((table) => [table, new TableCopy(pg, table, file)]));
  for (const [table, line] of catalogRows(contents, patterns, { relations, types }, next)) {
    const copy = waiting.get(table);
    if (copy?.add(line) === true) await copy.flush();
  }
  for (const copy of waiting.values()) await copy.flush();
  file.remove();
  // Frozen rows are never rewritten, so the engine's files stay identical to the shared image.
  await pg.exec(
    `VACUUM (FREEZE, ANALYZE) ${FILLED_CATALOGS.map((table) => `pg_catalog.${table}`).join(', ')}`,
  );
  await pg.exec('RESET default_transaction_read_only');
  await pg.exec('CHECKPOINT');
}

const TAKEN = `
  SELECT ARRAY(SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = 'entities'::regnamespace) AS relations,
    ARRAY(SELECT typname::text FROM pg_catalog.pg_type WHERE typnamespace = 'entities'::regnamespace) AS types,
    1 + (SELECT max(oid::int8) FROM (SELECT oid FROM pg_catalog.pg_class UNION ALL SELECT oid FROM pg_catalog.pg_type
      UNION ALL SELECT oid FROM pg_catalog.pg_constraint UNION ALL SELECT oid FROM pg_catalog.pg_trigger) AS o(oid)) AS next`;

/** The file that COPY reads. One buffer is reused, since garbage of this size would outlive filling. */
class RowsFile {
  static readonly PATH = '/tmp/rows';
  readonly #buffer = new Uint8Array(3 * (COPIED_AT_ONCE + MAX_LINE)); // UTF-8 needs at most three bytes per UTF-16 unit
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
  #units = 0;

  constructor(pg: PGlite, table: FilledTable, file: RowsFile) {
    this.#pg = pg;
    this.#table = table;
    this.#file = file;
  }

  add(line: string): boolean {
    this.#lines.push(line);
    this.#units += line.length;
    return this.#units >= COPIED_AT_ONCE;
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    this.#file.write(this.#lines.join(''));
    this.#lines = [];
    this.#units = 0;
    await this.#pg.exec(`COPY pg_catalog.${this.#table} FROM '${RowsFile.PATH}'`);
  }
}

function typesIn({ tables, foreignKeys }: CatalogContents): TypesInUse {
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
      if (from !== undefined && to !== undefined) links.set(linkOf(from, to), [from, to]);
    }
  }
  return { columns, keys, links: links.values() };
}

/** Number of objects created per transaction; the engine's lock table is small. */
const AT_ONCE = 100;

/**
 * Scripts that create enums, metric views and facet functions before the tables. They run as the bootstrap superuser,
 * each in one transaction.
 */
export function* creationScripts({ enums, metrics, facets }: CatalogContents): Generator<string> {
  const entities = `GRANT CREATE ON SCHEMA entities TO ${MODEL_ROLE}`;
  const asModel = [entities, `SET LOCAL ROLE ${MODEL_ROLE}`];
  const noMore = ['RESET ROLE', `REVOKE CREATE ON SCHEMA entities FROM ${MODEL_ROLE}`];
  for (const some of slicesOf(enums)) yield script(...asModel, ...some.map(createEnum), ...noMore);
  if (metrics.length > 0) yield script(...METRICS_SCHEMA);
  for (const some of slicesOf(metrics.filter(hasRoom))) yield script(...some.flatMap(metricsView));
  for (const some of slicesOf(facets)) yield script(...some.flatMap(facetFunction));
}

function script(...commands: readonly string[]): string {
  return ['BEGIN READ WRITE', ...commands, 'COMMIT'].join(';\n');
}

function* slicesOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += AT_ONCE) yield items.slice(from, from + AT_ONCE);
}

function createEnum({ name, labels }: EnumModel): string {
  return `CREATE TYPE ${inEntities(name)} AS ENUM (${labels.map(literal).join(', ')})`;
}

const METRICS_SCHEMA = ['CREATE SCHEMA metrics', 'GRANT USAGE ON SCHEMA metrics TO PUBLIC'] as const;

/** Suffix of metric views: tools look up tables by name alone, so a view must not share its entity's name. */
const METRICS_SUFFIX = '_metrics';
/**
 * Maximum bytes of a Postgres name. If an entity's view name would be truncated, its metrics are listed only in its
 * comment.
 */
const MAX_BYTES = 63;

function hasRoom({ entity }: MetricsModel): boolean {
  return Buffer.byteLength(entity) + METRICS_SUFFIX.length <= MAX_BYTES;
}

/** Creates a view that exists only for tools to list: data queries cannot name it. */
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

/**
 * Creates a function that exists only for tools to list. Calling it raises an error, since an empty result would be
 * wrong.
 */
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
    `CREATE FUNCTION ${inEntities(name)}(${takes.join(', ')}) RETURNS TABLE (${gives.join(', ')}) LANGUAGE plpgsql STABLE AS ${literal(body)}`,
    `COMMENT ON FUNCTION ${inEntities(name)}(text, integer) IS ${literal(words)}`,
  ];
}
