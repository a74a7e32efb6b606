import type { UpstreamRelation, UpstreamSchema } from '../src/model/discovery/index.js';
import { isPhysical, type TableDraft } from './draft.js';
import { legalName, shown } from './names.js';
import { report, type SourcePlace } from './source.js';
import { NoFit } from './sql/expression.js';

/** What a source does not say, and its importer has to be told. */
export interface ImportOptions {
  /** The connector of tables for which the source names none. */
  readonly connector: string;
  /** The kind of every connector. */
  readonly kind: 'postgres' | 'pglite';
  /** The schema of tables for which the source names none. */
  readonly schema: string;
  /** Null takes the name of an Ossie model, or `main`. */
  readonly tenant: string | null;
  /** Primary keys, by the name of an entity in the source. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** The database, which knows types, keys and nullability better than any source; null where none was asked. */
  readonly upstream: UpstreamSchema | null;
  /** Take the policy that an Ossie file of this gateway carries. */
  readonly withPolicy: boolean;
}

export const DEFAULT_OPTIONS: ImportOptions = Object.freeze({
  connector: 'db',
  kind: 'postgres',
  schema: 'public',
  tenant: null,
  keys: new Map(),
  upstream: null,
  withPolicy: false,
});

/**
 * The table that a name of one to three parts means: `table`, `schema.table`, `database.schema.table`. A database
 * becomes a connector of that name.
 *
 * @throws NoFit for more parts, for what cannot be a name, and for the schemas of the system
 */
export function tableNamed(parts: readonly string[], connector: string): TableDraft {
  const [table, schema = null, database] = [...parts].reverse();
  if (table === undefined || parts.length > 3)
    throw new NoFit(`\`${shown(parts.join('.'))}\` names no table`);
  for (const part of parts)
    if (!isPhysical(part)) throw new NoFit(`\`${shown(part)}\` cannot be part of a table's name`);
  if (schema !== null && (schema.startsWith('pg_') || schema === 'information_schema'))
    throw new NoFit(`\`${schema}\` is a system schema`);
  const owner = database === undefined ? connector : legalName(database);
  if (owner === null) throw new NoFit(`\`${shown(database ?? '')}\` cannot be the name of a connector`);
  return { connector: owner, schema, table };
}

/** Reports that the schema of a table was assumed, where its source states none. */
export function reportSchema(
  { schema, table }: TableDraft,
  place: SourcePlace,
  options: ImportOptions,
): void {
  if (schema === null)
    report(
      place,
      'decision',
      `the schema of \`${shown(table)}\` is not stated; \`${options.schema}\` was assumed`,
    );
}

/** The schema of a table, the assumed one where its source states none. */
export function schemaOf({ schema }: TableDraft, options: ImportOptions): string {
  return schema ?? options.schema;
}

/** What the database declares of a table; undefined where it has none of that name, or was not asked. */
export function upstreamOf(table: TableDraft, options: ImportOptions): UpstreamRelation | undefined {
  const schema = schemaOf(table, options);
  return options.upstream?.relations.find((r) => r.name === table.table && r.schema === schema);
}
