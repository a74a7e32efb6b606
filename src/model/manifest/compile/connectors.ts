import { type DeclaredColumn, declaredColumn, SCALAR_TYPES, storedType, type TypeName } from 'osl-compiler';
import { CODES, membersOf, type Path, type Problems, suggestion } from '../diagnostic.js';
import type {
  ConnectorDocument,
  ManifestDocument,
  SourceDocument,
  TableColumnDocument,
} from '../document.js';
import {
  type Connector,
  type ConnectorStandbys,
  type DeclaredTableColumn,
  frozenMap,
  type Table,
} from '../manifest.js';
import { isTruncated, tableName, tableNamed } from '../name.js';

export function connectorsOf(document: ManifestDocument, problems: Problems): ReadonlyMap<string, Connector> {
  return frozenMap(
    membersOf(document.connectors).map(([name, c]): [string, Connector] => [
      name,
      connectorOf(name, c, problems),
    ]),
  );
}

function connectorOf(name: string, document: ConnectorDocument, problems: Problems): Connector {
  const path: Path = ['connectors', name];
  const conflict = (at: Path, message: string, hint: string | null) =>
    problems.add(CODES.conflict, [...path, ...at], message, hint, true);
  if (document.kind === 'postgres' && document.url_env === undefined) {
    problems.add(
      CODES.missingKey,
      path,
      `\`${name}\` has no \`url_env\``,
      'name the variable that holds the URL',
      true,
    );
  }
  if (document.kind === 'pglite' && document.url_env !== undefined) {
    conflict(['url_env'], 'the embedded engine has no URL', 'remove it, or use `kind: postgres`');
  }
  if (document.kind === 'pglite' && document.standbys !== undefined) {
    conflict(['standbys'], 'the embedded engine has no standbys', 'remove them, or use `kind: postgres`');
  }
  if (document.kind === 'pglite' && document.row_security === true) {
    conflict(
      ['row_security'],
      'the embedded engine belongs to the gateway alone: row security would guard it from itself',
      'remove it, or use `kind: postgres`',
    );
  }
  const dotted = Object.keys(document.tables).find((key) => key !== plainName(key));
  if (document.row_security === true && dotted !== undefined) {
    const message = `row security cannot name \`${dotted}\`, which has a dot or a quote in its name`;
    conflict(['tables', dotted], message, null);
  }
  // INVARIANT: a table is declared once. Under a second name its columns could lack their labels.
  const keyByName = new Map<string, string>();
  const tables = membersOf(document.tables).map(([key, t]): [string, Table] => {
    const tableKey = tableName(tableNamed(key));
    const first = keyByName.get(tableKey) ?? key;
    keyByName.set(tableKey, first);
    if (first !== key)
      conflict(
        ['tables', key],
        `\`${key}\` is the table \`${first}\`, which is declared above`,
        'declare it once',
      );
    return [key, tableOf(key, t.columns, [...path, 'tables', key], problems)];
  });
  return Object.freeze({
    name,
    kind: document.kind,
    urlEnv: document.url_env ?? null,
    standbys: standbysOf(document),
    rowSecurity: document.row_security === true,
    tables: frozenMap(tables),
  });
}

const MAX_LAG_MS = 5_000;

function standbysOf({ standbys }: ConnectorDocument): ConnectorStandbys | null {
  if (standbys === undefined) return null;
  const { url_envs, max_lag_ms = MAX_LAG_MS } = standbys;
  return Object.freeze({ urlEnvs: Object.freeze([...new Set(url_envs)]), maxLagMs: max_lag_ms });
}

/** Returns `schema.table` without quotes, which differs from `key` if either part needs quotes. */
function plainName(key: string): string {
  const { schema, table } = tableNamed(key);
  return `${schema}.${table}`;
}

function tableOf(
  key: string,
  columns: Readonly<Record<string, TableColumnDocument>>,
  path: Path,
  problems: Problems,
): Table {
  const { schema, table } = tableNamed(key);
  if (schema.startsWith('pg_') || schema === 'information_schema') {
    problems.add(
      CODES.reserved,
      path,
      `\`${schema}\` is a system schema`,
      'system catalogs cannot be published',
      true,
    );
  }
  // INVARIANT: different names are different tables and columns. Truncated, a labelled column could have a second name.
  const checkLength = (name: string, of: Path): void => {
    if (isTruncated(name))
      problems.add(CODES.badName, of, `\`${name}\` is longer than 63 bytes of UTF-8`, TRUNCATED_HINT, true);
  };
  for (const part of [schema, table]) checkLength(part, path);
  const declared = membersOf(columns).map(([name, c]): [string, DeclaredTableColumn] => {
    checkLength(name, [...path, 'columns', name]);
    return [name, tableColumnOf(name, c, [...path, 'columns', name], problems)];
  });
  return Object.freeze({ schema, table, columns: frozenMap(declared) });
}

const TRUNCATED_HINT = 'Postgres truncates longer names: give the name that the database has';

function tableColumnOf(
  name: string,
  document: TableColumnDocument,
  path: Path,
  problems: Problems,
): DeclaredTableColumn {
  const declared = declaredColumn(document.type);
  if (declared === null) {
    const length = document.type.includes('(') ? 'a length or precision that the type has' : null;
    const asText = `{ type: text, stored: ${document.type} } reads the column as text`;
    // `json` is a type of values, and no column has it.
    const types = SCALAR_TYPES.filter((type) => declaredColumn(type) !== null);
    const near = document.type === 'json' ? asText : suggestion(document.type, types);
    const hint = length ?? near ?? `known types: ${types.join(', ')}; ${asText}`;
    problems.add(CODES.unknownType, [...path, 'type'], `type \`${document.type}\` is not known`, hint);
  }
  return Object.freeze({
    name,
    stored: storedOf(document, declared, path, problems),
    labels: labelsOf(document, path, problems),
    type: declared?.type ?? 'text', // a placeholder, since the reported problem makes loading fail
    form: document.stored === undefined ? (declared?.form ?? null) : null,
    sensitivity: sensitivityOf(document, path, problems),
    nullable: document.nullable ?? null,
  });
}

function storedOf(
  { stored }: TableColumnDocument,
  declared: DeclaredColumn | null,
  path: Path,
  problems: Problems,
): string | null {
  if (stored === undefined) return null;
  const expected: TypeName = storedType(stored)?.isArray === true ? 'text[]' : 'text';
  if (declared !== null && declared.type !== expected) {
    const message = `a column that is stored as \`${stored}\` is read as \`${expected}\`, not as \`${declared.type}\``;
    problems.add(CODES.conflict, [...path, 'type'], message, `declare it as \`type: ${expected}\``, true);
  }
  return stored;
}

function labelsOf(
  { stored, labels }: TableColumnDocument,
  path: Path,
  problems: Problems,
): readonly string[] | null {
  if (labels === undefined) return null;
  if (stored === undefined || storedType(stored)?.isEnum !== true) {
    const message = 'labels are those of an enum';
    problems.add(CODES.conflict, [...path, 'labels'], message, 'say `stored: enum schema.name`', true);
  }
  return Object.freeze([...labels]);
}

function sensitivityOf(document: TableColumnDocument, path: Path, problems: Problems): string | null {
  const { pii, sensitivity } = document;
  if (sensitivity === undefined) return pii === true ? 'pii' : null;
  if (pii !== undefined && pii !== (sensitivity === 'pii')) {
    problems.add(
      CODES.conflict,
      [...path, 'pii'],
      '`pii` and `sensitivity` disagree',
      'keep one of them',
      true,
    );
  }
  return sensitivity;
}

export interface TableSource {
  readonly connector: string;
  readonly table: Table;
}

/** Returns the table that `source` names. If it is not declared, reports that and returns null. */
export function sourceOf(
  source: SourceDocument,
  path: Path,
  connectors: ReadonlyMap<string, Connector>,
  problems: Problems,
): TableSource | null {
  const text = typeof source === 'string';
  const dot = text ? source.indexOf('.') : 0;
  const name = text ? source.slice(0, dot) : source.connector;
  const key = text ? source.slice(dot + 1) : source.table;
  const connector = connectors.get(name);
  if (connector === undefined) {
    problems.unknown(text ? path : [...path, 'connector'], 'connector', name, connectors.keys());
    return null;
  }
  const table = connector.tables.get(key);
  if (table === undefined) {
    problems.unknown(text ? path : [...path, 'table'], 'table', key, connector.tables.keys());
    return null;
  }
  return { connector: name, table };
}
