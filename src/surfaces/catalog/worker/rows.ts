import type { CatalogContents, CatalogForeignKey, ColumnModel, TableModel } from '../engine-contract.js';
import { type CatalogCell, escapeCopyText, type KeyPattern, linkKey, type Patterns } from './patterns.js';

/** The tables in `pg_catalog` that are filled with rows for a caller's entities. */
export const FILLED_CATALOGS = [
  'pg_class',
  'pg_type',
  'pg_attribute_as_stored',
  'pg_index',
  'pg_constraint',
  'pg_trigger',
  'pg_depend',
  'pg_shdepend',
  'pg_description',
  'pg_constraint_column',
] as const;

export type FilledTable = (typeof FILLED_CATALOGS)[number];

export type SystemRow = readonly [table: FilledTable, line: string];

/** OIDs of the system catalogs, the same in every Postgres. */
const CLASS = 1259;
const TYPE = 1247;
const CONSTRAINT = 2606;
const NAMESPACE = 2615;
const TRIGGER = 2620;
/** Lowest OID of user objects; no dependencies are recorded on objects below it. */
const FIRST_USER_OID = 16_384;

interface CatalogTable {
  readonly model: TableModel;
  readonly oid: number;
  readonly rowType: number;
  readonly arrayType: number;
  readonly arrayTypeName: ArrayTypeName;
  readonly numbers: ReadonlyMap<string, number>;
  key: PrimaryKey | null;
  hasTriggers: boolean;
}

interface PrimaryKey {
  readonly name: string;
  readonly constraint: number;
  readonly index: number;
  readonly columns: readonly {
    readonly column: ColumnModel;
    readonly number: number;
    readonly pattern: KeyPattern;
  }[];
}

interface CatalogLink {
  readonly name: string;
  readonly oid: number;
  readonly from: CatalogTable;
  readonly to: CatalogTable;
  readonly key: PrimaryKey;
  readonly columns: readonly LinkColumn[];
  readonly comment: string | null;
}

interface LinkColumn {
  readonly name: string;
  readonly number: number;
  readonly target: string;
  readonly targetNumber: number;
  readonly operators: { readonly pf: string; readonly pp: string; readonly ff: string };
}

/**
 * Rows that CREATE TABLE, ADD PRIMARY KEY, ADD FOREIGN KEY and COMMENT would write for `contents`, in this order, but
 * at a tenth of the cost and without locks. Differences: tables have no TOAST table, and relations have no file. A
 * test compares the rows with Postgres.
 *
 * @param existing existing names of relations and types in the schema
 * @param firstOid start of a free range of OIDs
 */
export function* catalogRows(
  { tables, foreignKeys }: Pick<CatalogContents, 'tables' | 'foreignKeys'>,
  patterns: Patterns,
  existing: { readonly relations: readonly string[]; readonly types: readonly string[] },
  firstOid: number,
): Generator<SystemRow> {
  let next = firstOid;
  const nextOid = (): number => next++;
  const names = new SchemaNames(existing.relations, existing.types);
  const byName = new Map<string, CatalogTable>();
  for (const model of tables) {
    byName.set(model.name, {
      model,
      oid: nextOid(),
      arrayType: nextOid(),
      rowType: nextOid(),
      arrayTypeName: names.table(model.name),
      numbers: new Map(model.columns.map(({ name }, i) => [name, i + 1])),
      key: null,
      hasTriggers: false,
    });
  }
  for (const table of byName.values()) table.key = primaryKeyOf(table, patterns, names, nextOid);
  const links = foreignKeys.flatMap((key) => linksOf(key, byName, patterns, names, nextOid));
  for (const { from, to } of links) {
    from.hasTriggers = true;
    to.hasTriggers = true;
  }
  for (const table of byName.values()) {
    yield* tableRows(table, patterns);
    if (table.key !== null) yield* keyRows(table, table.key, patterns);
  }
  for (const link of links) yield* linkRows(link, patterns, nextOid);
}

function primaryKeyOf(
  table: CatalogTable,
  { keys }: Patterns,
  names: SchemaNames,
  nextOid: () => number,
): PrimaryKey | null {
  const columns = table.model.primaryKey.flatMap((name) => {
    const number = table.numbers.get(name) ?? 0;
    const column = table.model.columns[number - 1];
    const pattern = column === undefined ? undefined : keys.get(column.type);
    return column === undefined || pattern === undefined ? [] : [{ column, number, pattern }];
  });
  if (columns.length === 0 || columns.length < table.model.primaryKey.length) return null;
  return { name: names.primaryKey(table.model.name), index: nextOid(), constraint: nextOid(), columns };
}

function linksOf(
  { table, columns, target, targetColumns, comment }: CatalogForeignKey,
  tables: ReadonlyMap<string, CatalogTable>,
  { links }: Patterns,
  names: SchemaNames,
  nextOid: () => number,
): readonly CatalogLink[] {
  const [from, to] = [tables.get(table), tables.get(target)];
  if (from === undefined || to === undefined || to.key === null) return [];
  const linkColumns = columns.flatMap((name, i): readonly LinkColumn[] => {
    const targetName = targetColumns[i] ?? '';
    const [number = 0, targetNumber = 0] = [from.numbers.get(name), to.numbers.get(targetName)];
    const [a, b] = [from.model.columns[number - 1], to.model.columns[targetNumber - 1]];
    const operators = a === undefined || b === undefined ? undefined : links.get(linkKey(a.type, b.type));
    return operators === undefined ? [] : [{ name, number, target: targetName, targetNumber, operators }];
  });
  if (linkColumns.length < columns.length) return [];
  return [
    {
      name: names.foreignKey(table, columns),
      oid: nextOid(),
      from,
      to,
      key: to.key,
      columns: linkColumns,
      comment,
    },
  ];
}

function* tableRows(table: CatalogTable, patterns: Patterns): Generator<SystemRow> {
  const { model, oid, rowType, arrayType } = table;
  const name = escapeCopyText(model.name);
  yield [
    'pg_class',
    patterns.table.line({
      oid,
      relname: name,
      reltype: rowType,
      relfilenode: oid,
      relhasindex: table.key !== null,
      relnatts: model.columns.length,
      relhastriggers: table.hasTriggers,
    }),
  ];
  yield [
    'pg_type',
    patterns.rowType.line({ oid: rowType, typname: name, typrelid: oid, typarray: arrayType }),
  ];
  yield [
    'pg_type',
    patterns.arrayType.line({
      oid: arrayType,
      typname: escapeCopyText(table.arrayTypeName.name),
      typelem: rowType,
    }),
  ];
  yield ['pg_shdepend', patterns.owner.line({ objid: oid })];
  yield dependency(CLASS, oid, NAMESPACE, patterns.namespace, 0, 'n');
  yield dependency(TYPE, rowType, CLASS, oid, 0, 'i');
  yield dependency(TYPE, arrayType, TYPE, rowType, 0, 'i');
  if (model.comment !== null && model.comment !== '') yield description(CLASS, oid, 0, model.comment);
  for (const [i, column] of model.columns.entries()) yield* columnRows(table, column, i + 1, patterns);
  for (const pattern of patterns.systemColumns)
    yield ['pg_attribute_as_stored', pattern.line({ attrelid: oid })];
}

function* columnRows(
  table: CatalogTable,
  column: ColumnModel,
  number: number,
  patterns: Patterns,
): Generator<SystemRow> {
  const pattern = patterns.columns.get(column.type);
  if (pattern === undefined) throw new Error('a column of the catalog has a type that nobody asked for');
  const name = escapeCopyText(column.name);
  yield [
    'pg_attribute_as_stored',
    pattern.line({ attrelid: table.oid, attname: name, attnum: number, attnotnull: column.notNull }),
  ];
  const type = Number(pattern.field('atttypid'));
  if (type >= FIRST_USER_OID) yield dependency(CLASS, table.oid, TYPE, type, 0, 'n', number);
  if (column.comment !== null && column.comment !== '')
    yield description(CLASS, table.oid, number, column.comment);
  if (!column.notNull) return;
  const constraint = `${patterns.namespace}_${table.oid}_${number}_not_null`;
  yield constraintColumn(constraint, 'CHECK', escapeCopyText(table.model.name), name, 1, null);
}

function* keyRows(table: CatalogTable, key: PrimaryKey, patterns: Patterns): Generator<SystemRow> {
  const { index, constraint, columns } = key;
  const name = escapeCopyText(key.name);
  const [count, tableName] = [columns.length, escapeCopyText(table.model.name)];
  const keyField = (field: (pattern: KeyPattern) => string): string =>
    columns.map((c) => field(c.pattern)).join(' ');
  yield ['pg_class', patterns.index.line({ oid: index, relname: name, relfilenode: index, relnatts: count })];
  yield [
    'pg_index',
    patterns.indexEntry.line({
      indexrelid: index,
      indrelid: table.oid,
      indnatts: count,
      indnkeyatts: count,
      indkey: columns.map((c) => c.number).join(' '),
      indcollation: keyField((p) => p.collation),
      indclass: keyField((p) => p.operatorClass),
      indoption: keyField((p) => p.option),
    }),
  ];
  yield [
    'pg_constraint',
    patterns.primaryKey.line({
      oid: constraint,
      conname: name,
      conrelid: table.oid,
      conindid: index,
      conkey: arrayLiteral(columns.map((c) => c.number)),
    }),
  ];
  yield dependency(CLASS, index, CONSTRAINT, constraint, 0, 'i');
  for (const [i, { column, number, pattern }] of columns.entries()) {
    const columnName = escapeCopyText(column.name);
    yield [
      'pg_attribute_as_stored',
      pattern.attribute.line({ attrelid: index, attname: columnName, attnum: i + 1 }),
    ];
    yield dependency(CONSTRAINT, constraint, CLASS, table.oid, number, 'a');
    const target = { constraint: name, table: tableName, column: columnName, position: null };
    yield constraintColumn(name, 'PRIMARY KEY', tableName, columnName, i + 1, target);
  }
}

function* linkRows(link: CatalogLink, patterns: Patterns, nextOid: () => number): Generator<SystemRow> {
  const { from, to, key, columns } = link;
  const name = escapeCopyText(link.name);
  yield [
    'pg_constraint',
    patterns.foreignKey.line({
      oid: link.oid,
      conname: name,
      conrelid: from.oid,
      conindid: key.index,
      confrelid: to.oid,
      conkey: arrayLiteral(columns.map((c) => c.number)),
      confkey: arrayLiteral(columns.map((c) => c.targetNumber)),
      conpfeqop: arrayLiteral(columns.map((c) => c.operators.pf)),
      conppeqop: arrayLiteral(columns.map((c) => c.operators.pp)),
      conffeqop: arrayLiteral(columns.map((c) => c.operators.ff)),
    }),
  ];
  if (link.comment !== null && link.comment !== '') yield description(CONSTRAINT, link.oid, 0, link.comment);
  yield dependency(CONSTRAINT, link.oid, CLASS, key.index, 0, 'n');
  for (const [i, { name: column, number, target, targetNumber }] of columns.entries()) {
    yield dependency(CONSTRAINT, link.oid, CLASS, from.oid, number, 'a');
    yield dependency(CONSTRAINT, link.oid, CLASS, to.oid, targetNumber, 'n');
    yield constraintColumn(
      name,
      'FOREIGN KEY',
      escapeCopyText(from.model.name),
      escapeCopyText(column),
      i + 1,
      {
        constraint: escapeCopyText(key.name),
        table: escapeCopyText(to.model.name),
        column: escapeCopyText(target),
        position: key.columns.findIndex((c) => c.number === targetNumber) + 1,
      },
    );
  }
  for (const [i, pattern] of patterns.triggers.entries()) {
    const trigger = nextOid();
    const onTarget = i < 2;
    yield [
      'pg_trigger',
      pattern.line({
        oid: trigger,
        tgname: `RI_ConstraintTrigger_${onTarget ? 'a' : 'c'}_${trigger}`,
        tgrelid: onTarget ? to.oid : from.oid,
        tgconstrrelid: onTarget ? from.oid : to.oid,
        tgconstrindid: key.index,
        tgconstraint: link.oid,
      }),
    ];
    yield dependency(TRIGGER, trigger, CONSTRAINT, link.oid, 0, 'i');
  }
}

function arrayLiteral(items: readonly (number | string)[]): string {
  return `{${items.join(',')}}`;
}

function copyLine(...cells: readonly CatalogCell[]): string {
  return `${cells.map((c) => c ?? '\\N').join('\t')}\n`;
}

/** Returns the pg_depend row by which `object`, or one of its columns, depends on `target`. */
function dependency(
  catalog: number,
  object: number,
  targetCatalog: number,
  target: number | string,
  targetColumn: number,
  kind: 'a' | 'i' | 'n',
  column = 0,
): SystemRow {
  return ['pg_depend', copyLine(catalog, object, column, targetCatalog, target, targetColumn, kind)];
}

function description(catalog: number, object: number, column: number, text: string): SystemRow {
  return ['pg_description', copyLine(object, catalog, column, escapeCopyText(text))];
}

/** Returns a row of `pg_constraint_column` for information_schema; names must be escaped. */
function constraintColumn(
  constraint: string,
  type: 'PRIMARY KEY' | 'FOREIGN KEY' | 'CHECK',
  table: string,
  column: string,
  position: number,
  target: {
    readonly constraint: string;
    readonly table: string;
    readonly column: string;
    readonly position: number | null;
  } | null,
): SystemRow {
  return [
    'pg_constraint_column',
    copyLine(
      constraint,
      type,
      table,
      column,
      position,
      target?.constraint ?? null,
      target?.table ?? null,
      target?.column ?? null,
      target?.position ?? null,
    ),
  ];
}

const MAX_BYTES = 63;

/**
 * Names of a schema's relations, types and constraints, including those that Postgres generates depending on existing
 * names. A test compares them with Postgres.
 */
class SchemaNames {
  readonly #relations: Set<string>;
  readonly #constraints = new Set<string>();
  /** Type names. Array types map to objects, since Postgres renames them if another type needs their name. */
  readonly #types: Map<string, ArrayTypeName | null>;

  /** @param types existing types, which are never renamed */
  constructor(relations: Iterable<string>, types: Iterable<string>) {
    this.#relations = new Set(relations);
    this.#types = new Map([...types].map((name) => [name, null]));
  }

  table(name: string): ArrayTypeName {
    this.#relations.add(name);
    const existing = this.#types.get(name) ?? null;
    if (existing !== null) this.#nameArrayType(existing, name);
    this.#types.set(name, null);
    const array = { name: '' };
    this.#nameArrayType(array, name);
    return array;
  }

  primaryKey(table: string): string {
    const name = this.#unusedName(
      table,
      '',
      'pkey',
      (n) => this.#relations.has(n) || this.#constraints.has(n),
    );
    this.#relations.add(name);
    this.#constraints.add(name);
    return name;
  }

  foreignKey(table: string, columns: readonly string[]): string {
    const name = this.#unusedName(table, joinNames(columns), 'fkey', (n) => this.#constraints.has(n));
    this.#constraints.add(name);
    return name;
  }

  #nameArrayType(array: ArrayTypeName, element: string): void {
    array.name = objectName('', element, null);
    for (let pass = 1; this.#types.has(array.name); pass++) array.name = objectName('', element, `${pass}`);
    this.#types.set(array.name, array);
  }

  #unusedName(table: string, columns: string, label: string, isUsed: (name: string) => boolean): string {
    const second = columns === '' ? null : columns;
    let name = objectName(table, second, label);
    for (let pass = 1; isUsed(name); pass++) name = objectName(table, second, `${label}${pass}`);
    return name;
  }
}

interface ArrayTypeName {
  name: string;
}

function joinNames(columns: readonly string[]): string {
  let text = '';
  for (const column of columns) {
    text += `${text === '' ? '' : '_'}${column}`;
    if (Buffer.byteLength(text) > MAX_BYTES) break;
  }
  return text;
}

/**
 * Returns `first_second_label`, shortening the longer of the first two until it fits, like Postgres' `makeObjectName`.
 */
function objectName(first: string, second: string | null, label: string | null): string {
  const available =
    MAX_BYTES - (second === null ? 0 : 1) - (label === null ? 0 : Buffer.byteLength(label) + 1);
  let [a, b] = [Buffer.byteLength(first), Buffer.byteLength(second ?? '')];
  while (a + b > available) {
    if (a > b) a -= 1;
    else b -= 1;
  }
  return [
    truncate(first, a),
    ...(second === null ? [] : [truncate(second, b)]),
    ...(label === null ? [] : [label]),
  ].join('_');
}

function truncate(text: string, bytes: number): string {
  let available = bytes;
  let end = 0;
  for (const character of text) {
    available -= Buffer.byteLength(character);
    if (available < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}
