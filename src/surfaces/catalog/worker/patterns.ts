import type { PGlite } from '@electric-sql/pglite';
import { MODEL_ROLE } from '../engine-contract.js';

export type CatalogCell = string | number | boolean | null;

/** A system catalog row as Postgres wrote it, used as a template for rows that differ from it only in some columns. */
class RowPattern<Column extends string> {
  readonly #varying: readonly Column[];
  readonly #fixedParts: readonly string[];
  readonly #fields: ReadonlyMap<string, string>;

  constructor(fields: ReadonlyMap<string, string>, varying: readonly Column[]) {
    const missing = varying.find((column) => !fields.has(column));
    if (missing !== undefined) throw new Error(`a system catalog has no column ${missing}`);
    const names = [...fields.keys()];
    const order = [...varying].sort((a, b) => names.indexOf(a) - names.indexOf(b));
    const varyingNames: ReadonlySet<string> = new Set(varying);
    const template = [...fields].map(([name, value]) => (varyingNames.has(name) ? '\0' : value)).join('\t');
    this.#fields = fields;
    this.#varying = order;
    this.#fixedParts = `${template}\n`.split('\0');
  }

  field(column: string): string {
    const value = this.#fields.get(column);
    if (value === undefined) throw new Error(`a system catalog has no column ${column}`);
    return value;
  }

  /** Returns a line for COPY. Text values must first be passed through `escapeCopyText`. */
  line(row: Readonly<Record<Column, CatalogCell>>): string {
    const [first = '', ...others] = this.#fixedParts;
    let line = first;
    for (const [i, fixedPart] of others.entries()) {
      const column = this.#varying[i];
      line += copyCell(column === undefined ? null : row[column]) + fixedPart;
    }
    return line;
  }
}

function copyCell(value: CatalogCell): string | number {
  if (value === null) return '\\N';
  return typeof value === 'boolean' ? (value ? 't' : 'f') : value;
}

export function escapeCopyText(text: string): string {
  return /[\\\t\n\r]/.test(text)
    ? text.replace(/[\\\t\n\r]/g, (c) => `\\${c === '\t' ? 't' : c === '\n' ? 'n' : c === '\r' ? 'r' : c}`)
    : text;
}

type ColumnPattern = RowPattern<'attrelid' | 'attname' | 'attnum' | 'attnotnull'>;

/** System catalog entries that Postgres writes for a primary key column of one type. */
export interface KeyPattern {
  readonly attribute: RowPattern<'attrelid' | 'attname' | 'attnum'>;
  readonly operatorClass: string;
  readonly collation: string;
  readonly option: string;
}

interface LinkPattern {
  readonly pf: string;
  readonly pp: string;
  readonly ff: string;
}

/** Catalog rows written by Postgres for one example of each kind of table, key and type. */
export type Patterns = Awaited<ReturnType<typeof readPatterns>>;

export function linkKey(from: string, to: string): string {
  return JSON.stringify([from, to]);
}

export interface TypesInUse {
  readonly columns: Iterable<string>;
  readonly keys: Iterable<string>;
  readonly links: Iterable<readonly [from: string, to: string]>;
}

/** Creates example tables with each type and kind of key, reads the rows Postgres wrote for them, and rolls back. */
export async function patternsFor(pg: PGlite, types: TypesInUse): Promise<Patterns> {
  await pg.exec(`BEGIN READ WRITE;
    CREATE SCHEMA ${SCHEMA} AUTHORIZATION ${MODEL_ROLE};
    SET LOCAL ROLE ${MODEL_ROLE};
    CREATE TABLE ${TABLE} (id int8 PRIMARY KEY, parent int8 REFERENCES ${TABLE});
    REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER, MAINTAIN ON TABLE ${TABLE} FROM ${MODEL_ROLE}`);
  const columnByType = await createColumns(pg, types.columns);
  const { keys, links } = await createKeys(pg, types, columnByType);
  await pg.exec('RESET ROLE');
  try {
    return await readPatterns(pg, { columnByType, keys, links });
  } finally {
    await pg.exec('ROLLBACK');
  }
}

const SCHEMA = 'osl_patterns';
const TABLE = `${SCHEMA}.keyed`;
/** Maximum columns per table; Postgres itself allows 1,600. */
const MAX_COLUMNS = 1_000;

interface ColumnLocation {
  readonly table: string;
  readonly column: string;
}

interface CreatedObjects {
  readonly columnByType: ReadonlyMap<string, ColumnLocation>;
  readonly keys: ReadonlyMap<string, string>;
  readonly links: ReadonlyMap<string, string>;
}

async function createColumns(
  pg: PGlite,
  types: Iterable<string>,
): Promise<ReadonlyMap<string, ColumnLocation>> {
  const locations = new Map<string, ColumnLocation>();
  const tables = new Map<string, string[]>();
  for (const type of types) {
    const location = {
      table: `${SCHEMA}.typed_${Math.floor(locations.size / MAX_COLUMNS)}`,
      column: `c${locations.size}`,
    };
    locations.set(type, location);
    tables.set(location.table, [...(tables.get(location.table) ?? []), `${location.column} ${type}`]);
  }
  for (const [table, columns] of tables) await pg.exec(`CREATE TABLE ${table} (${columns.join(', ')})`);
  return locations;
}

async function createKeys(
  pg: PGlite,
  types: TypesInUse,
  columnByType: CreatedObjects['columnByType'],
): Promise<Pick<CreatedObjects, 'keys' | 'links'>> {
  const keys = new Map<string, string>();
  const links = new Map<string, string>();
  for (const type of types.keys) {
    const location = columnByType.get(type);
    const index = `key_${keys.size}`;
    if (location === undefined || keys.has(type)) continue;
    if (await isPossible(pg, `CREATE UNIQUE INDEX ${index} ON ${location.table} (${location.column})`))
      keys.set(type, index);
  }
  for (const [from, to] of types.links) {
    const [a, b] = [columnByType.get(from), columnByType.get(to)];
    const link = linkKey(from, to);
    const name = `link_${links.size}`;
    if (a === undefined || b === undefined || !keys.has(to) || links.has(link)) continue;
    const constraint = `CONSTRAINT ${name} FOREIGN KEY (${a.column}) REFERENCES ${b.table} (${b.column})`;
    if (await isPossible(pg, `ALTER TABLE ${a.table} ADD ${constraint}`)) links.set(link, name);
  }
  return { keys, links };
}

/** SQLSTATEs of commands that fail because an operator class, operator or conversion does not exist. */
const NOT_POSSIBLE: ReadonlySet<unknown> = new Set(['42704', '42804', '42830', '42883']);

async function isPossible(pg: PGlite, command: string): Promise<boolean> {
  await pg.exec('SAVEPOINT possible');
  try {
    await pg.exec(command);
    return true;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && NOT_POSSIBLE.has(error.code))) throw error;
    await pg.exec('ROLLBACK TO possible');
    return false;
  }
}

type CatalogFields = ReadonlyMap<string, string>;

async function readPatterns(pg: PGlite, created: CreatedObjects) {
  const rows = (catalog: string, condition: string): Promise<readonly CatalogFields[]> =>
    rowsOf(pg, `SELECT * FROM pg_catalog.${catalog} WHERE ${condition}`);
  const row = async (catalog: string, condition: string): Promise<CatalogFields> =>
    onlyRow(await rows(catalog, condition));
  const table = await row('pg_class', `oid = '${TABLE}'::regclass`);
  const namespace =
    onlyRow(await rowsOf(pg, `SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'entities'`)).get(
      'oid',
    ) ?? '';
  const oid = table.get('oid');
  const withSchema = (fields: CatalogFields, column: string): CatalogFields =>
    new Map([...fields, [column, namespace]]);
  const indexId = `(SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = ${oid})`;
  return {
    namespace,
    table: new RowPattern(withSchema(table, 'relnamespace'), [
      'oid',
      'relname',
      'reltype',
      'relfilenode',
      'relhasindex',
      'relnatts',
      'relhastriggers',
    ]),
    index: new RowPattern(withSchema(await row('pg_class', `oid = ${indexId}`), 'relnamespace'), [
      'oid',
      'relname',
      'relfilenode',
      'relnatts',
    ]),
    rowType: new RowPattern(withSchema(await row('pg_type', `typrelid = ${oid}`), 'typnamespace'), [
      'oid',
      'typname',
      'typrelid',
      'typarray',
    ]),
    arrayType: new RowPattern(
      withSchema(
        await row('pg_type', `typelem = (SELECT reltype FROM pg_catalog.pg_class WHERE oid = ${oid})`),
        'typnamespace',
      ),
      ['oid', 'typname', 'typelem'],
    ),
    systemColumns: (await rows('pg_attribute_as_stored', `attrelid = ${oid} AND attnum < 0`)).map(
      (fields) => new RowPattern(fields, ['attrelid']),
    ),
    indexEntry: new RowPattern(await row('pg_index', `indrelid = ${oid}`), [
      'indexrelid',
      'indrelid',
      'indnatts',
      'indnkeyatts',
      'indkey',
      'indcollation',
      'indclass',
      'indoption',
    ]),
    primaryKey: new RowPattern(
      withSchema(await row('pg_constraint', `conrelid = ${oid} AND contype = 'p'`), 'connamespace'),
      ['oid', 'conname', 'conrelid', 'conindid', 'conkey'],
    ),
    foreignKey: new RowPattern(
      withSchema(await row('pg_constraint', `conrelid = ${oid} AND contype = 'f'`), 'connamespace'),
      [
        'oid',
        'conname',
        'conrelid',
        'conindid',
        'confrelid',
        'conkey',
        'confkey',
        'conpfeqop',
        'conppeqop',
        'conffeqop',
      ],
    ),
    triggers: (await rows('pg_trigger', `tgrelid = ${oid} ORDER BY oid`)).map(
      (fields) =>
        new RowPattern(fields, [
          'oid',
          'tgname',
          'tgrelid',
          'tgconstrrelid',
          'tgconstrindid',
          'tgconstraint',
        ]),
    ),
    owner: new RowPattern(await row('pg_shdepend', `objid = ${oid} AND deptype = 'o'`), ['objid']),
    columns: await columnPatterns(pg, created.columnByType),
    keys: await keyPatterns(pg, created.keys),
    links: await linkPatterns(pg, created.links),
  };
}

async function columnPatterns(
  pg: PGlite,
  columnByType: CreatedObjects['columnByType'],
): Promise<ReadonlyMap<string, ColumnPattern>> {
  const rows = await rowsOf(
    pg,
    `SELECT a.* FROM pg_catalog.pg_attribute_as_stored a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = '${SCHEMA}'::regnamespace AND c.relname LIKE 'typed%' AND a.attnum > 0`,
  );
  const byName = new Map(rows.map((fields) => [fields.get('attname') ?? '', fields]));
  const patterns = new Map<string, ColumnPattern>();
  for (const [type, { column }] of columnByType) {
    const fields = byName.get(column);
    if (fields === undefined) throw new Error(`the engine has no column of type ${type}`);
    patterns.set(type, new RowPattern(fields, ['attrelid', 'attname', 'attnum', 'attnotnull']));
  }
  return patterns;
}

async function keyPatterns(
  pg: PGlite,
  keys: CreatedObjects['keys'],
): Promise<ReadonlyMap<string, KeyPattern>> {
  const patterns = new Map<string, KeyPattern>();
  for (const [type, index] of keys) {
    const id = `'${SCHEMA}.${index}'::regclass`;
    const entry = onlyRow(await rowsOf(pg, `SELECT * FROM pg_catalog.pg_index WHERE indexrelid = ${id}`));
    const attribute = onlyRow(
      await rowsOf(pg, `SELECT * FROM pg_catalog.pg_attribute_as_stored WHERE attrelid = ${id}`),
    );
    patterns.set(type, {
      attribute: new RowPattern(attribute, ['attrelid', 'attname', 'attnum']),
      operatorClass: entry.get('indclass') ?? '',
      collation: entry.get('indcollation') ?? '',
      option: entry.get('indoption') ?? '',
    });
  }
  return patterns;
}

async function linkPatterns(
  pg: PGlite,
  links: CreatedObjects['links'],
): Promise<ReadonlyMap<string, LinkPattern>> {
  const patterns = new Map<string, LinkPattern>();
  for (const [link, name] of links) {
    const operators = onlyRow(
      await rowsOf(
        pg,
        `SELECT conpfeqop[1] AS pf, conppeqop[1] AS pp, conffeqop[1] AS ff FROM pg_catalog.pg_constraint
         WHERE conname = '${name}' AND connamespace = '${SCHEMA}'::regnamespace`,
      ),
    );
    patterns.set(link, {
      pf: operators.get('pf') ?? '',
      pp: operators.get('pp') ?? '',
      ff: operators.get('ff') ?? '',
    });
  }
  return patterns;
}

async function rowsOf(pg: PGlite, query: string): Promise<readonly CatalogFields[]> {
  const { blob } = await pg.query(`COPY (${query}) TO '/dev/blob' WITH (HEADER)`);
  const [header = '', ...lines] = ((await blob?.text()) ?? '').replace(/\n$/, '').split('\n');
  const names = header.split('\t');
  return lines.map((line) => new Map(line.split('\t').map((value, i) => [names[i] ?? '', value])));
}

function onlyRow(rows: readonly CatalogFields[]): CatalogFields {
  const [row, ...others] = rows;
  if (row === undefined || others.length > 0) throw new Error('a pattern of the catalog is not one row');
  return row;
}
