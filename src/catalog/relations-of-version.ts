/** A relation of `pg_catalog`, with the columns and rows that it has in the version that the catalog gives as its own. */
interface OlderRelation {
  readonly name: string;
  /** Columns in order: a name, or an expression under its name. */
  readonly columns: string;
  readonly where: string | null;
}

/**
 * Of the relations that tools read most, those in which the engine differs: NOT NULL has no constraint of its own in
 * version 14, and counts of dimensions are int4.
 */
const OLDER: readonly OlderRelation[] = [
  {
    name: 'pg_constraint',
    columns: `oid, conname, connamespace, contype, condeferrable, condeferred, convalidated, conrelid, contypid, conindid,
      conparentid, confrelid, confupdtype, confdeltype, confmatchtype, conislocal, coninhcount::int4 AS coninhcount,
      connoinherit, conkey, confkey, conpfeqop, conppeqop, conffeqop, conexclop, conbin`,
    where: "contype <> 'n'",
  },
  {
    name: 'pg_attribute',
    columns: `attrelid, attname, atttypid, coalesce(attstattarget::int4, -1) AS attstattarget, attlen, attnum,
      attndims::int4 AS attndims, -1 AS attcacheoff, atttypmod, attbyval, attalign, attstorage, attcompression,
      attnotnull, atthasdef, atthasmissing, attidentity, attgenerated, attisdropped, attislocal,
      attinhcount::int4 AS attinhcount, attcollation, attacl, attoptions, attfdwoptions, attmissingval`,
    where: null,
  },
];

/**
 * Each table goes on under another name, that only the system's own views and functions use (they know it by its OID),
 * and a view has its name. Needs `allow_system_table_mods`.
 */
export const RELATIONS_OF_THEIR_VERSION: readonly string[] = OLDER.map(({ name, columns, where }) => {
  const table = `pg_catalog.${name.replace(/^pg_/, 'osl_')}`;
  return `
    ALTER TABLE pg_catalog.${name} RENAME TO ${name.replace(/^pg_/, 'osl_')};
    CREATE VIEW pg_catalog.${name} AS SELECT ${columns} FROM ${table}${where === null ? '' : ` WHERE ${where}`};
    REVOKE ALL ON ${table} FROM PUBLIC;
    GRANT SELECT ON pg_catalog.${name} TO PUBLIC`;
});
