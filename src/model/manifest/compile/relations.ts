import { type Column, isMoment, type Relation } from 'osl-compiler';
import { CODES, membersOf, type Path, type Problems, type RelationMap, suggestion } from '../diagnostic.js';
import type {
  BridgeDocument,
  ColumnDocument,
  ColumnsDocument,
  EntityDocument,
  ManifestDocument,
} from '../document.js';
import { type Connector, type DeclaredTableColumn, frozenMap, type Table } from '../manifest.js';
import { tableName } from '../name.js';
import { sourceOf, type TableSource } from './connectors.js';

/**
 * Returns entities, then bridges, in file order. Key domains are added later; relations of unknown source are left out.
 */
export function relationsOf(
  document: ManifestDocument,
  connectors: ReadonlyMap<string, Connector>,
  problems: Problems,
): RelationMap {
  const relations = new Map<string, Relation>();
  const names = new Map<string, string>();
  const declare = (kind: Relation['kind'], name: string, path: Path, shape: RelationDocument): void => {
    const before = names.get(name.toLowerCase());
    if (before !== undefined) {
      const hint = `entities and bridges share one set of names, and case does not count: \`${before}\``;
      problems.add(CODES.duplicateName, path, `\`${name}\` is declared twice`, hint, true);
      return;
    }
    names.set(name.toLowerCase(), name);
    const relation = relationOf(kind, name, path, shape, connectors, problems);
    if (relation === null) problems.broken.add(name);
    else relations.set(name, relation);
  };
  for (const [name, e] of membersOf(document.entities))
    declare('entity', name, ['entities', name], entityShape(e));
  for (const [name, b] of membersOf(document.bridges))
    declare('bridge', name, ['bridges', name], bridgeShape(b));
  return relations;
}

type RelationDocument = Pick<EntityDocument, 'source' | 'columns'> & {
  readonly primary_key: readonly string[];
  readonly description: string | null;
  readonly sealed: readonly (readonly [string, Path])[];
  /** True if `primary_key` has to be checked separately, because `sealed` holds other key columns. */
  readonly ownKey: boolean;
  readonly time: string | undefined;
};

function entityShape(e: EntityDocument): RelationDocument {
  const own = e.entity_key_columns !== undefined;
  const at = own ? 'entity_key_columns' : 'primary_key';
  const sealed = (e[at] ?? []).map((name, i): readonly [string, Path] => [name, [at, i]]);
  return {
    source: e.source,
    columns: e.columns,
    primary_key: e.primary_key ?? [],
    description: e.description ?? null,
    sealed,
    ownKey: own,
    time: e.time_dimension,
  };
}

function bridgeShape(b: BridgeDocument): RelationDocument {
  const side = (at: 'left' | 'right') =>
    b[at].columns.map((name, i): readonly [string, Path] => [name, [at, 'columns', i]]);
  const sealed = [...side('left'), ...side('right')];
  const primary_key = b.primary_key ?? [...new Set(sealed.map(([name]) => name))];
  return {
    source: b.source,
    columns: b.columns,
    primary_key,
    description: b.description ?? null,
    sealed,
    ownKey: b.primary_key !== undefined,
    time: undefined,
  };
}

function relationOf(
  kind: Relation['kind'],
  name: string,
  path: Path,
  shape: RelationDocument,
  connectors: ReadonlyMap<string, Connector>,
  problems: Problems,
): Relation | null {
  const source = sourceOf(shape.source, [...path, 'source'], connectors, problems);
  if (source === null) return null;
  const columns = columnsOf(shape.columns, [...path, 'columns'], source.table, shape.primary_key, problems);
  const listed = new Set(Array.isArray(shape.columns) ? shape.columns : Object.keys(shape.columns));
  const mustBeColumn = (key: string, at: Path): void => {
    if (listed.has(key)) return;
    problems.add(
      CODES.keyNotColumn,
      [...path, ...at],
      `key \`${key}\` is not a column of \`${name}\``,
      'a key must be among its columns',
    );
  };
  for (const [key, at] of shape.sealed) mustBeColumn(key, at);
  if (shape.ownKey) for (const [i, key] of shape.primary_key.entries()) mustBeColumn(key, ['primary_key', i]);
  const time = timeOf(shape.time, name, [...path, 'time_dimension'], columns, problems);
  return {
    ...(time !== null && { timeDimension: time }),
    kind,
    name,
    description: shape.description,
    connector: source.connector,
    schema: source.table.schema,
    table: source.table.table,
    columns,
    primaryKey: Object.freeze([...shape.primary_key]),
    sealedKeys: Object.freeze([...new Set(shape.sealed.map(([key]) => key))]),
  };
}

function timeOf(
  name: string | undefined,
  entity: string,
  path: Path,
  columns: readonly Column[],
  problems: Problems,
): string | null {
  if (name === undefined) return null;
  const column = columns.find((c) => c.name === name);
  if (column === undefined) {
    const known = columns.map((c) => `${entity}.${c.name}`);
    problems.unknown(path, 'column', `${entity}.${name}`, known);
  } else if (!isMoment(column.type)) {
    const message = `\`${name}\` is ${column.type}, which is not time`;
    problems.add(CODES.typeMismatch, path, message, 'a time dimension is a date, timestamp or timestamptz');
  }
  return name;
}

/** Column names with a special meaning in OSL-SQL. */
export const RESERVED: ReadonlySet<string> = new Set(['evidence']);

/** Returns the exposed columns in declared order. A column whose type is not declared is reported and left out. */
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
    const upstream = declaredColumnNamed(
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

/** Returns the name, path step and declaration of each column, from a list or a mapping. */
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

/** Returns the column that the connector declares as `physical`; reports an undeclared one and returns null. */
export function declaredColumnNamed(
  physical: string,
  path: Path,
  table: Table,
  problems: Problems,
): DeclaredTableColumn | null {
  const column = table.columns.get(physical);
  if (column !== undefined) return column;
  const hint =
    suggestion(physical, table.columns.keys()) ??
    `declare its type under tables.${table.schema}.${table.table}.columns`;
  const message = `column \`${physical}\` of \`${table.schema}.${table.table}\` has no declared type`;
  problems.add(CODES.undeclaredColumn, path, message, hint);
  return null;
}

function sameName(name: string, before: string): string | null {
  return name === before ? null : `\`${before}\` is the same name: case does not count`;
}

/**
 * Returns the allowlist for raw SQL: tables by `schema.table`, each with the only entity or bridge that governs it. A
 * table without an entity would have no policy; with several, it would be ambiguous which policy applies.
 */
export function rawTablesOf(
  document: ManifestDocument,
  connectors: ReadonlyMap<string, Connector>,
  relations: RelationMap,
  problems: Problems,
): RelationMap {
  const tables = new Map<string, Relation>();
  const sources = new Map<string, string>();
  for (const [i, entry] of (document.raw_sql?.allow ?? []).entries()) {
    const path: Path = ['raw_sql', 'allow', i];
    const source = sourceOf(entry, path, connectors, problems);
    if (source === null) continue;
    const name = `${source.table.schema}.${source.table.table}`;
    const before = sources.get(name);
    if (before !== undefined) {
      const hint =
        before === source.connector ? null : `it is one of \`${before}\` and one of \`${source.connector}\``;
      problems.add(CODES.duplicateName, path, `table \`${name}\` is allowed twice`, hint);
      continue;
    }
    sources.set(name, source.connector);
    if (source.table.schema === ENTITIES) {
      const hint = 'in OSL-SQL it is where entities stand';
      problems.add(
        CODES.reserved,
        path,
        `a table of schema \`${ENTITIES}\` cannot be named in raw SQL`,
        hint,
      );
    }
    if (tableName(source.table) !== name)
      problems.add(
        CODES.conflict,
        path,
        `raw SQL cannot name \`${name}\`, which has a dot in its name`,
        null,
      );
    const governing = governorOf(source, name, path, relations, problems);
    if (governing !== null) tables.set(name, governing);
  }
  return frozenMap(tables);
}

/** The middle part of an entity's name in queries, `osl.entities.<name>`. */
const ENTITIES = 'entities';

function governorOf(
  { connector, table }: TableSource,
  name: string,
  path: Path,
  relations: RelationMap,
  problems: Problems,
): Relation | null {
  const [only, ...others] = [...relations.values()].filter(
    (r) => r.connector === connector && r.schema === table.schema && r.table === table.table,
  );
  if (only === undefined) {
    // The table's entity may be among those that could not be compiled.
    if (problems.broken.size === 0) {
      const hint = 'declare an entity of it: its grants are those of the entity';
      problems.add(CODES.notGoverned, path, `no entity governs table \`${name}\``, hint);
    }
    return null;
  }
  if (others.length > 0) {
    const names = [only, ...others].map((r) => `\`${r.name}\``).join(', ');
    const hint = `it must be the source of one entity or bridge, not of ${names}`;
    problems.add(CODES.conflict, path, `table \`${name}\` is governed ${others.length + 1} times`, hint);
    return null;
  }
  mustNameColumnsOnce(only, name, path, problems);
  return only;
}

/** Reports columns that are exposed twice: grants use the entity's column names, so a column must have one name. */
function mustNameColumnsOnce(relation: Relation, table: string, path: Path, problems: Problems): void {
  const names = new Map<string, string>();
  for (const { name, physical } of relation.columns) {
    const before = names.get(physical);
    names.set(physical, name);
    if (before === undefined) continue;
    const hint = `\`${before}\` and \`${name}\` of \`${relation.name}\` both are it`;
    problems.add(CODES.conflict, path, `column \`${physical}\` of \`${table}\` is exposed twice`, hint);
  }
}
