import { isArray } from 'osl-compiler';
import type { SystemQueries } from '../../engine/index.js';
import type { Connector, FacetVersion, Table, TableColumn } from '../../manifest/index.js';
import { quoted } from '../store/names.js';
import type { DeclaredValue } from './matcher.js';
import { type Redactor, redactorOf } from './redactor.js';

/** A declared column whose values cannot be looked for in text. */
export interface SkippedColumn {
  /** `schema.table.column`. */
  readonly column: string;
  readonly type: string;
}

export interface Dictionary {
  readonly values: readonly DeclaredValue[];
  readonly skipped: readonly SkippedColumn[];
}

/** Folded letters that a declared value needs to be looked for: shorter ones are in every text. */
export const DEFAULT_MIN_LENGTH = 3;

/** All values of the columns of `connector` that carry one of the version's labels. */
export async function readDictionary(
  system: SystemQueries,
  connector: Connector,
  version: FacetVersion,
): Promise<Dictionary> {
  const labels = new Set(version.redact);
  const values: DeclaredValue[] = [];
  const skipped: SkippedColumn[] = [];
  for (const table of connector.tables.values()) {
    for (const column of table.columns.values()) {
      if (column.sensitivity === null || !labels.has(column.sensitivity)) continue;
      const sql = valuesSql(table, column);
      if (sql === null) {
        skipped.push({ column: `${table.schema}.${table.table}.${column.name}`, type: column.type });
        continue;
      }
      for (const row of await system.query(sql)) {
        values.push({ value: String(row['v']), label: column.sensitivity });
      }
    }
  }
  return { values, skipped };
}

/** Distinct values as text: of arrays the elements, of jsonb every text and number in it, of bytea none. */
function valuesSql(table: Table, { name, type }: TableColumn): string | null {
  const from = `${quoted(table.schema)}.${quoted(table.table)}`;
  const c = quoted(name);
  if (type === 'bytea' || type === 'bytea[]' || type === 'jsonb[]' || type === 'bool') return null;
  if (type === 'jsonb') {
    const leaves = `pg_catalog.jsonb_path_query(${c}, 'strict $.** ? (@.type() == "string" || @.type() == "number")')`;
    return `select distinct j.v #>> '{}' as v from ${from} cross join lateral ${leaves} as j(v) where ${c} is not null`;
  }
  if (isArray(type)) {
    return `select distinct a.v::pg_catalog.text as v from ${from} cross join lateral pg_catalog.unnest(${c}) as a(v) where a.v is not null`;
  }
  return `select distinct ${c}::pg_catalog.text as v from ${from} where ${c} is not null`;
}

/** The rules of `version`: its dictionary read and its detectors found. Throws ContentError `unknownDetector`. */
export async function openRedactor(
  system: SystemQueries,
  connector: Connector,
  version: FacetVersion,
  minLength: number = DEFAULT_MIN_LENGTH,
): Promise<{ readonly redactor: Redactor; readonly skipped: readonly SkippedColumn[] }> {
  const { values, skipped } = await readDictionary(system, connector, version);
  return { redactor: redactorOf(version, values, minLength), skipped };
}
