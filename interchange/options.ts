import type { UpstreamRelation, UpstreamSchema } from '../src/model/discovery/index.js';
import { isPhysical, type TableDraft } from './draft.js';
import { legalName, safeText } from './names.js';
import { report, type SourcePlace } from './source.js';
import { NoMapping } from './sql-expression.js';

/** Settings of an import, for information that a source does not contain. */
export interface ModelImportOptions {
  /** Connector for tables whose source does not name one. */
  readonly connector: string;
  readonly kind: 'postgres' | 'pglite';
  readonly schema: string;
  /** Name of the tenant; if null, the name of the Ossie model, or `main`. */
  readonly tenant: string | null;
  /** Primary keys, by entity name in the source, which override those that the source declares. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** Schema of the database; null if not read. Overrides the source's types and nullability, but not its keys. */
  readonly upstream: UpstreamSchema | null;
  /** True to import the policy contained in an Ossie file exported by this gateway. */
  readonly withPolicy: boolean;
}

export const DEFAULT_OPTIONS: ModelImportOptions = Object.freeze({
  connector: 'db',
  kind: 'postgres',
  schema: 'public',
  tenant: null,
  keys: new Map(),
  upstream: null,
  withPolicy: false,
});

/**
 * Returns the table for a name with one to three parts: `table`, `schema.table` or `database.schema.table`. A database
 * becomes a connector with that name.
 *
 * @throws NoMapping for more parts, invalid names, and system schemas
 */
export function tableNamed(parts: readonly string[], connector: string): TableDraft {
  const [table, schema = null, database] = [...parts].reverse();
  if (table === undefined || parts.length > 3)
    throw new NoMapping(`\`${safeText(parts.join('.'))}\` names no table`);
  for (const part of parts)
    if (!isPhysical(part)) throw new NoMapping(`\`${safeText(part)}\` cannot be part of a table's name`);
  if (schema !== null && (schema.startsWith('pg_') || schema === 'information_schema'))
    throw new NoMapping(`\`${schema}\` is a system schema`);
  const owner = database === undefined ? connector : legalName(database);
  if (owner === null)
    throw new NoMapping(`\`${safeText(database ?? '')}\` cannot be the name of a connector`);
  return { connector: owner, schema, table };
}

/** Reports that the schema of a table was assumed, if its source does not name it. */
export function reportSchema(
  { schema, table }: TableDraft,
  place: SourcePlace,
  options: ModelImportOptions,
): void {
  if (schema === null)
    report(
      place,
      'decision',
      `the schema of \`${safeText(table)}\` is not stated; \`${options.schema}\` was assumed`,
    );
}

/** Returns the schema of a table; if the source does not name it, the assumed schema. */
export function schemaOf({ schema }: TableDraft, options: ModelImportOptions): string {
  return schema ?? options.schema;
}

/** Returns the relation in the database; undefined if it does not exist or the database was not read. */
export function upstreamOf(table: TableDraft, options: ModelImportOptions): UpstreamRelation | undefined {
  const schema = schemaOf(table, options);
  return options.upstream?.relations.find((r) => r.name === table.table && r.schema === schema);
}
