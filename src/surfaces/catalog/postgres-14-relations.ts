const WITHOUT_NOT_NULL_CONSTRAINTS = `
  DELETE FROM pg_catalog.pg_depend d USING pg_catalog.pg_constraint c
    WHERE d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid AND c.contype = 'n';
  DELETE FROM pg_catalog.pg_constraint WHERE contype = 'n'`;

/**
 * Constraint columns for information_schema, one row each; NOT NULL is listed as CHECK. Views over the system tables
 * would be read in full for each row of a join, because the planner estimates a single row, so BI tools' queries would
 * take time quadratic in the number of tables.
 */
const CONSTRAINT_COLUMNS = `
  CREATE TABLE pg_catalog.pg_constraint_column (
    constraint_name name, constraint_type text STORAGE PLAIN, table_name name, column_name name, position int4,
    target_constraint name, target_table name, target_column name, target_position int4);
  CREATE INDEX pg_constraint_column_by_constraint ON pg_catalog.pg_constraint_column (constraint_name);
  CREATE INDEX pg_constraint_column_by_table ON pg_catalog.pg_constraint_column (table_name)`;

/** Start of an OID range below user objects that Postgres does not assign. */
const FIRST_OID = 9_001;

const OID_COLUMNS = [
  ['pg_index', 'indexrelid'],
  ['pg_index', 'indrelid'],
  ['pg_attribute', 'attrelid'],
  ['pg_class', 'oid'],
] as const;

/**
 * Drops the table's types and gives the table and its indexes system OIDs, which hides them from tools that list types
 * or user objects.
 */
const HIDE_FROM_USERS = `
  DO $$
  DECLARE r record;
  BEGIN
    UPDATE pg_catalog.pg_class SET reltype = 0 WHERE relname = 'pg_constraint_column';
    FOR r IN SELECT oid FROM pg_catalog.pg_type WHERE typname LIKE '%pg_constraint_column' LOOP
      DELETE FROM pg_catalog.pg_type WHERE oid = r.oid;
      DELETE FROM pg_catalog.pg_depend WHERE objid = r.oid OR refobjid = r.oid;
    END LOOP;
    FOR r IN
      SELECT oid, (${FIRST_OID - 1} + row_number() OVER (ORDER BY oid))::oid AS new
      FROM pg_catalog.pg_class WHERE relname LIKE 'pg_constraint_column%'
    LOOP
      ${OID_COLUMNS.map(([table, column]) => `UPDATE pg_catalog.${table} SET ${column} = r.new WHERE ${column} = r.oid;`).join('\n      ')}
      DELETE FROM pg_catalog.pg_depend WHERE objid = r.oid OR refobjid = r.oid;
    END LOOP;
  END $$`;

type Domain = 'sql_identifier' | 'character_data' | 'yes_or_no' | 'cardinal_number';

type ViewColumns = Readonly<Record<string, readonly [type: Domain, value: string]>>;

const catalogAndSchema = (prefix: string): ViewColumns => ({
  [`${prefix}_catalog`]: ['sql_identifier', 'pg_catalog.current_database()'],
  [`${prefix}_schema`]: ['sql_identifier', "'entities'"],
});
const named = (prefix: string, name: string): ViewColumns => ({
  ...catalogAndSchema(prefix),
  [`${prefix}_name`]: ['sql_identifier', name],
});

const IS_KEY = "constraint_type <> 'CHECK'";

const CONSTRAINT_VIEWS: Readonly<Record<string, { readonly columns: ViewColumns; readonly where: string }>> =
  {
    table_constraints: {
      columns: {
        ...named('constraint', 'constraint_name'),
        ...named('table', 'table_name'),
        constraint_type: ['character_data', 'constraint_type'],
        is_deferrable: ['yes_or_no', "'NO'"],
        initially_deferred: ['yes_or_no', "'NO'"],
        enforced: ['yes_or_no', "'YES'"],
        nulls_distinct: ['yes_or_no', 'NULL'],
      },
      where: 'position = 1',
    },
    key_column_usage: {
      columns: {
        ...named('constraint', 'constraint_name'),
        ...named('table', 'table_name'),
        column_name: ['sql_identifier', 'column_name'],
        ordinal_position: ['cardinal_number', 'position'],
        position_in_unique_constraint: ['cardinal_number', 'target_position'],
      },
      where: IS_KEY,
    },
    referential_constraints: {
      columns: {
        ...named('constraint', 'constraint_name'),
        ...named('unique_constraint', 'target_constraint'),
        match_option: ['character_data', "'NONE'"],
        update_rule: ['character_data', "'NO ACTION'"],
        delete_rule: ['character_data', "'NO ACTION'"],
      },
      where: "constraint_type = 'FOREIGN KEY' AND position = 1",
    },
    constraint_column_usage: {
      columns: {
        ...named('table', 'target_table'),
        column_name: ['sql_identifier', 'target_column'],
        ...named('constraint', 'constraint_name'),
      },
      where: IS_KEY,
    },
    constraint_table_usage: {
      columns: { ...named('table', 'target_table'), ...named('constraint', 'constraint_name') },
      where: `${IS_KEY} AND position = 1`,
    },
    check_constraints: {
      columns: {
        ...named('constraint', 'constraint_name'),
        check_clause: ['character_data', "column_name || ' IS NOT NULL'"],
      },
      where: "constraint_type = 'CHECK'",
    },
  };

function constraintViews(): readonly string[] {
  return Object.entries(CONSTRAINT_VIEWS).map(([view, { columns, where }]) => {
    const values = Object.values(columns).map(([type, value]) => `(${value})::information_schema.${type}`);
    return `CREATE OR REPLACE VIEW information_schema.${view} (${Object.keys(columns).join(', ')}) AS
      SELECT ${values.join(', ')} FROM pg_catalog.pg_constraint_column WHERE ${where}`;
  });
}

/**
 * The catalog relations that tools read most, as in version 14: no NOT NULL constraints, and int4 counts in
 * pg_attribute. The attribute table is renamed (system views and functions refer to it by OID) and replaced by a view
 * of the same name. Requires `allow_system_table_mods`.
 */
export const POSTGRES_14_RELATIONS: readonly string[] = [
  WITHOUT_NOT_NULL_CONSTRAINTS,
  CONSTRAINT_COLUMNS,
  HIDE_FROM_USERS,
  ...constraintViews(),
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
