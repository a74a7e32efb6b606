import type { PGlite } from '@electric-sql/pglite';
import type { CatalogContents } from '../contents.js';
import { ddlOf } from '../ddl.js';
import { linkOf, patternsFor, type TypesInUse } from './patterns.js';
import { catalogRows, FILLED, type FilledTable } from './rows.js';

/** Maximum UTF-16 units of one line and of one COPY. */
const MAX_LINE = 65_536;
const COPIED_AT_ONCE = 262_144;

/** Fills an engine of the base image with the tables of one catalog, and analyzes them. */
export async function fill(pg: PGlite, contents: CatalogContents): Promise<void> {
  await pg.exec('SET default_transaction_read_only = off');
  for (const script of ddlOf(contents)) await pg.exec(script);
  const patterns = await patternsFor(pg, typesIn(contents));
  const { rows: taken } = await pg.query<{ relations: string[]; types: string[]; next: number }>(TAKEN);
  const [{ relations, types, next } = { relations: [], types: [], next: 0 }] = taken;
  const file = new RowsFile(pg);
  const waiting = new Map(FILLED.map((table) => [table, new TableCopy(pg, table, file)]));
  for (const [table, line] of catalogRows(contents, patterns, { relations, types }, next)) {
    const copy = waiting.get(table);
    if (copy?.add(line) === true) await copy.flush();
  }
  for (const copy of waiting.values()) await copy.flush();
  file.remove();
  // Frozen rows are never rewritten, so the engine's files stay equal to the shared image.
  await pg.exec(`VACUUM (FREEZE, ANALYZE) ${FILLED.map((table) => `pg_catalog.${table}`).join(', ')}`);
  await pg.exec('RESET default_transaction_read_only');
  await pg.exec('CHECKPOINT');
}

/** Existing names of the schema, and the first unused OID. */
const TAKEN = `
  SELECT ARRAY(SELECT relname::text FROM pg_catalog.pg_class WHERE relnamespace = 'entities'::regnamespace) AS relations,
    ARRAY(SELECT typname::text FROM pg_catalog.pg_type WHERE typnamespace = 'entities'::regnamespace) AS types,
    1 + (SELECT max(oid::int8) FROM (SELECT oid FROM pg_catalog.pg_class UNION ALL SELECT oid FROM pg_catalog.pg_type
      UNION ALL SELECT oid FROM pg_catalog.pg_constraint UNION ALL SELECT oid FROM pg_catalog.pg_trigger) AS o(oid)) AS next`;

/** File that COPY reads. It reuses one buffer, since garbage of this size would outlive filling. */
class RowsFile {
  static readonly PATH = '/tmp/rows';
  readonly #buffer = new Uint8Array(3 * (COPIED_AT_ONCE + MAX_LINE)); // maximum UTF-8 bytes of these UTF-16 units
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

  /** True once there are enough rows for a COPY. */
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
