import { isArray, type TypeName } from 'osl-compiler';
import { type Sql, sql, sqlName, sqlTable } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type {
  Connector,
  DeclaredFacetVersion,
  DeclaredTableColumn,
  Table,
} from '../../model/manifest/index.js';
import { DEFAULT_MIN_LENGTH } from '../store/control.js';
import type { DeclaredValue } from './matcher.js';
import { type RedactionRules, type Redactor, redactorOf } from './redactor.js';

/** A declared column whose values cannot be searched for in text. */
export interface SkippedColumn {
  /** `schema.table.column`. */
  readonly column: string;
  readonly type: string;
}

interface Dictionary {
  readonly values: readonly DeclaredValue[];
  readonly skipped: readonly SkippedColumn[];
}

/** All values of the columns of `connector` with one of the version's labels. */
async function readDictionary(
  system: SystemQueries,
  connector: Connector,
  version: DeclaredFacetVersion,
): Promise<Dictionary> {
  const labels = new Set(version.redact);
  const values: DeclaredValue[] = [];
  const skipped: SkippedColumn[] = [];
  for (const table of connector.tables.values()) {
    for (const column of table.columns.values()) {
      if (column.sensitivity === null || !labels.has(column.sensitivity)) continue;
      const statement = valuesSql(table, column);
      if (statement === null) {
        skipped.push({ column: `${table.schema}.${table.table}.${column.name}`, type: column.type });
        continue;
      }
      for (const row of await system.query(statement)) {
        values.push({ value: String(row['v']), label: column.sensitivity });
      }
    }
  }
  return { values, skipped };
}

function valuesSql(table: Table, { name, type }: DeclaredTableColumn): Sql | null {
  const found = valueIn(sqlName(name), type);
  if (found === null) return null;
  const { value, lateral } = found;
  return sql`select distinct ${value} as v from ${sqlTable(table)}${lateral} where ${value} is not null`;
}

/** Searchable texts in a value: elements of arrays, texts and numbers in jsonb, nothing in bytea. */
export function valueIn(column: Sql, type: TypeName): { readonly value: Sql; readonly lateral: Sql } | null {
  if (type === 'bytea' || type === 'bytea[]' || type === 'jsonb[]' || type === 'bool') return null;
  if (type === 'jsonb') {
    const leaves = sql`pg_catalog.jsonb_path_query(${column}, 'strict $.** ? (@.type() == "string" || @.type() == "number")')`;
    return { value: sql`j.v #>> '{}'`, lateral: sql` cross join lateral ${leaves} as j(v)` };
  }
  if (isArray(type))
    return {
      value: sql`a.v::pg_catalog.text`,
      lateral: sql` cross join lateral pg_catalog.unnest(${column}) as a(v)`,
    };
  return { value: sql`${column}::pg_catalog.text`, lateral: sql`` };
}

/** Redactor of `version` with the dictionary of the whole connector. */
export async function openRedactor(
  system: SystemQueries,
  connector: Connector,
  version: DeclaredFacetVersion,
  rules: RedactionRules,
  minLength: number = DEFAULT_MIN_LENGTH,
): Promise<{ readonly redactor: Redactor; readonly skipped: readonly SkippedColumn[] }> {
  const { values, skipped } = await readDictionary(system, connector, version);
  return { redactor: redactorOf(rules, values, minLength), skipped };
}
