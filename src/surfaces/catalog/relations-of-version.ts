/** Where a NOT NULL of a table that the asker may see stands, in the words of version 14's information_schema. */
const NOT_NULL = `
  FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND pg_catalog.pg_has_role(c.relowner, 'USAGE')`;
const NOT_NULL_NAME = `pg_catalog.concat_ws('_', n.oid, c.oid, a.attnum, 'not_null')`;

/** `values` as columns of information_schema's own type. */
function as(type: 'sql_identifier' | 'character_data' | 'yes_or_no', ...values: readonly string[]): string {
  return values.map((value) => `(${value})::information_schema.${type}`).join(', ');
}

const DATABASE = 'pg_catalog.current_database()';
const NAMES = as('sql_identifier', DATABASE, 'n.nspname', NOT_NULL_NAME);

/** The view as it is, and `rows` behind its own. */
function withRows(view: string, rows: string): string {
  return `
  DO $$ BEGIN
    EXECUTE pg_catalog.format('CREATE OR REPLACE VIEW information_schema.${view} AS %s UNION ALL %s',
      pg_catalog.rtrim(pg_catalog.pg_get_viewdef('information_schema.${view}'::pg_catalog.regclass), ';'),
      $rows$ ${rows} $rows$);
  END $$`;
}

/** Without the constraints that NOT NULL has in the engine's version: in 14 it is a property of the column. */
export const WITHOUT_NOT_NULL_CONSTRAINTS = `
  DELETE FROM pg_catalog.pg_depend d USING pg_catalog.pg_constraint c
    WHERE d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid AND c.contype = 'n';
  DELETE FROM pg_catalog.pg_constraint WHERE contype = 'n'`;

/**
 * What tools read most, as version 14 has it and the engine has not: no constraints of NOT NULL, and counts in
 * pg_attribute that are int4. The table of attributes goes on under another name that the system's own views and
 * functions know (by its OID), and a view has its name. Needs `allow_system_table_mods`.
 */
export const RELATIONS_OF_THEIR_VERSION: readonly string[] = [
  WITHOUT_NOT_NULL_CONSTRAINTS,
  withRows(
    'table_constraints',
    `SELECT ${NAMES}, ${as('sql_identifier', DATABASE, 'n.nspname', 'c.relname')}, ${as('character_data', "'CHECK'")},
       ${as('yes_or_no', "'NO'", "'NO'", "'YES'", 'NULL')} ${NOT_NULL}`,
  ),
  withRows(
    'check_constraints',
    `SELECT ${NAMES}, ${as('character_data', "a.attname || ' IS NOT NULL'")} ${NOT_NULL}`,
  ),
  `ALTER TABLE pg_catalog.pg_attribute RENAME TO pg_attribute_as_stored;
   CREATE VIEW pg_catalog.pg_attribute AS
     SELECT attrelid, attname, atttypid, coalesce(attstattarget::int4, -1) AS attstattarget, attlen, attnum,
       attndims::int4 AS attndims, -1 AS attcacheoff, atttypmod, attbyval, attalign, attstorage, attcompression,
       attnotnull, atthasdef, atthasmissing, attidentity, attgenerated, attisdropped, attislocal,
       attinhcount::int4 AS attinhcount, attcollation, attacl, attoptions, attfdwoptions, attmissingval
     FROM pg_catalog.pg_attribute_as_stored;
   REVOKE ALL ON pg_catalog.pg_attribute_as_stored FROM PUBLIC;
   GRANT SELECT ON pg_catalog.pg_attribute TO PUBLIC`,
];
