import type { CatalogStatement } from './statement.js';

/**
 * Catalog queries of tools that cannot run here, written from descriptions of what they send. Each tool's is the
 * way it goes about it: connect, list, describe, keys.
 */
export const TOOLS: Readonly<Record<string, readonly CatalogStatement[]>> = {
  Tableau: asked(
    `SELECT n.nspname AS "TABLE_SCHEM", c.relname AS "TABLE_NAME",
       CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'TABLE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' END AS "TABLE_TYPE"
     FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
     WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
     ORDER BY 1, 2`,
    `SELECT current_schema()`,
    `SELECT DISTINCT fk.table_schema AS fk_schema, fk.table_name AS fk_table, fk.column_name AS fk_column, pk.table_name AS pk_table, pk.column_name AS pk_column, fk.constraint_name, fk.ordinal_position
     FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS rc
     JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE fk ON fk.constraint_name = rc.constraint_name AND fk.constraint_schema = rc.constraint_schema
     JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE pk ON pk.constraint_name = rc.unique_constraint_name AND pk.ordinal_position = fk.position_in_unique_constraint
     ORDER BY 2, 3, 4`,
    `SELECT t.table_name, c.column_name, c.data_type FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
     WHERE t.table_schema = 'entities' ORDER BY t.table_name, c.ordinal_position`,
    `SELECT a.attname, a.attnum FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
     JOIN (SELECT i.indexrelid, i.indrelid, i.indisprimary, information_schema._pg_expandarray(i.indkey) AS keys FROM pg_catalog.pg_index i) i
       ON (a.attnum = (i.keys).x AND a.attrelid = i.indrelid)
     WHERE i.indisprimary AND ct.relname = 'visit' ORDER BY (i.keys).n`,
    `SELECT db.oid, db.datname FROM pg_database db WHERE db.datname = current_database()`,
  ),
  'Power BI': asked(
    `SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid
     FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind,
             CASE WHEN elemproc.proname = 'array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype
           FROM (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid,
                   CASE WHEN proc.proname = 'array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
                   CASE WHEN proc.proname = 'array_recv' THEN typ.typelem WHEN typ.typtype = 'r' THEN rngsubtype WHEN typ.typtype = 'd' THEN typ.typbasetype END AS elemtypoid
                 FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ
           LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t
     JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
     WHERE (typtype IN ('b', 'r', 'm', 'e', 'd') OR (typtype = 'c' AND relkind = 'c') OR (typtype = 'p' AND typname IN ('record', 'void')) OR (typtype = 'a' AND elemtyptype IN ('b', 'r', 'm', 'e', 'd')))
       AND t.typname NOT LIKE '%pg\\_%' AND ns.nspname = 'pg_catalog' AND t.oid < 5000
     ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'r' THEN 1 ELSE 2 END, t.oid`,
    `SELECT typ.oid, att.attname, att.atttypid FROM pg_type AS typ JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace) JOIN pg_class AS cls ON (cls.oid = typ.typrelid) JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid)
     WHERE (typ.typtype = 'c' AND cls.relkind = 'c') AND attnum > 0 AND NOT attisdropped ORDER BY typ.oid, att.attnum`,
    `SELECT pg_type.oid, enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid ORDER BY oid, enumsortorder`,
    `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA NOT IN ('information_schema', 'pg_catalog') ORDER BY TABLE_SCHEMA, TABLE_NAME`,
    bound(
      `SELECT COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, CASE WHEN (data_type LIKE '%unsigned%') THEN DATA_TYPE || ' unsigned' ELSE DATA_TYPE END AS DATA_TYPE
       FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = $1 AND TABLE_NAME = $2 ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION`,
      ['entities', 'person'],
    ),
    `SELECT pkcol.COLUMN_NAME AS PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA, fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME AS FK_COLUMN_NAME, fkcol.ORDINAL_POSITION AS ORDINAL,
       fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'person' || '_' || fkcon.CONSTRAINT_NAME AS FK_NAME
     FROM (SELECT DISTINCT CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_CATALOG, UNIQUE_CONSTRAINT_SCHEMA, UNIQUE_CONSTRAINT_NAME FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon
     INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol ON fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA AND fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME
     INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol ON fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA AND fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME
     WHERE pkcol.TABLE_SCHEMA = 'entities' AND pkcol.TABLE_NAME = 'person' AND pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION ORDER BY FK_NAME, fkcol.ORDINAL_POSITION`,
    `SELECT i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME AS INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, CASE WHEN i.CONSTRAINT_TYPE = 'PRIMARY KEY' THEN 'Y' ELSE 'N' END AS PRIMARY_KEY
     FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS i INNER JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE ii ON i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA AND i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME AND i.TABLE_SCHEMA = ii.TABLE_SCHEMA AND i.TABLE_NAME = ii.TABLE_NAME
     WHERE i.TABLE_SCHEMA = 'entities' AND i.TABLE_NAME = 'visit' AND i.CONSTRAINT_TYPE IN ('PRIMARY KEY', 'UNIQUE') ORDER BY 1, ii.ORDINAL_POSITION`,
    `SELECT CHARACTER_SET_NAME FROM INFORMATION_SCHEMA.CHARACTER_SETS`,
  ),
  Metabase: asked(
    `SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'p' THEN 'PARTITIONED TABLE' END AS "type",
       "d"."description", NULLIF("stat"."n_live_tup", 0) AS "estimated_row_count"
     FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
     LEFT JOIN "pg_catalog"."pg_description" AS "d" ON "c"."oid" = "d"."objoid" AND "d"."objsubid" = 0 AND "d"."classoid" = 'pg_class'::regclass
     LEFT JOIN "pg_stat_user_tables" AS "stat" ON "n"."nspname" = "stat"."schemaname" AND "c"."relname" = "stat"."relname"
     WHERE "c"."relnamespace" = "n"."oid" AND "n"."nspname" !~ '^(?:information_schema|pg_)' AND "c"."relkind" IN ('r', 'p', 'v', 'f', 'm')
       AND (HAS_ANY_COLUMN_PRIVILEGE("c"."oid", 'SELECT')) ORDER BY "type" ASC, "schema" ASC, "name" ASC`,
    `SELECT "c"."column_name" AS "name", "c"."udt_name" AS "database-type", "c"."ordinal_position" - 1 AS "database-position", "c"."table_schema", "c"."table_name", "pk"."column_name" IS NOT NULL AS "pk?",
       COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment",
       (("column_default" IS NULL) OR (LOWER("column_default") = 'null')) AND ("is_nullable" = 'NO') AND NOT ((("column_default" IS NOT NULL) AND ("column_default" LIKE '%nextval(%')) OR ("is_identity" <> 'NO')) AS "database-required"
     FROM "information_schema"."columns" AS "c"
     LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name" FROM "information_schema"."table_constraints" AS "tc"
       INNER JOIN "information_schema"."key_column_usage" AS "kc" ON "tc"."constraint_name" = "kc"."constraint_name" AND "tc"."table_schema" = "kc"."table_schema" AND "tc"."table_name" = "kc"."table_name"
       WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk" ON "c"."table_schema" = "pk"."table_schema" AND "c"."table_name" = "pk"."table_name" AND "c"."column_name" = "pk"."column_name"
     WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' ORDER BY "table_schema" ASC, "table_name" ASC, "database-position" ASC`,
    `SELECT "fk_ns"."nspname" AS "fk-table-schema", "fk_table"."relname" AS "fk-table-name", "fk_column"."attname" AS "fk-column-name", "pk_table"."relname" AS "pk-table-name", "pk_column"."attname" AS "pk-column-name"
     FROM "pg_constraint" AS "c" INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid" INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid"
     INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid" INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid" INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid"
     WHERE ("fk_ns"."nspname" !~ '^information_schema|catalog_history|pg_') AND ("c"."contype" = 'f'::char) AND ("fk_column"."attnum" = ANY("c"."conkey")) AND ("pk_column"."attnum" = ANY("c"."confkey")) ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC`,
    `SELECT "nspname" AS "schema" FROM pg_namespace WHERE has_schema_privilege(oid, 'USAGE') AND nspname !~ '^pg_' ORDER BY 1`,
    `SELECT t.schemaname, t.tablename, pg_catalog.has_table_privilege(current_user, FORMAT('%I.%I', t.schemaname, t.tablename), 'SELECT') AS "select",
       pg_catalog.has_table_privilege(current_user, FORMAT('%I.%I', t.schemaname, t.tablename), 'UPDATE') AS "update" FROM pg_catalog.pg_tables t WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema' ORDER BY 1, 2`,
    `SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)`,
  ),
  Superset: asked(
    `SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY nspname`,
    `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'entities' AND c.relkind IN ('r', 'p') ORDER BY 1`,
    `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'entities' AND c.relkind IN ('v', 'm')`,
    `SELECT pgd.description FROM pg_catalog.pg_description pgd WHERE pgd.objsubid = 0 AND pgd.objoid = '<<class person>>'`,
    `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
       (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS DEFAULT,
       a.attnotnull, a.attnum, a.attrelid AS table_oid, pgd.description AS comment, a.attgenerated AS generated
     FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_description pgd ON (pgd.objoid = a.attrelid AND pgd.objsubid = a.attnum)
     WHERE a.attrelid = '<<class person>>' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
    `SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true) AS condef, n.nspname AS conschema FROM pg_catalog.pg_constraint r, pg_namespace n, pg_class c
     WHERE r.conrelid = '<<class visit>>' AND r.contype = 'f' AND c.oid = confrelid AND n.oid = c.relnamespace ORDER BY 1`,
    `SELECT datname FROM pg_database WHERE NOT datistemplate AND datname = current_database()`,
  ),
  'Looker Studio': asked(
    `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type IN ('BASE TABLE', 'VIEW') ORDER BY table_name`,
    `SELECT column_name, data_type, udt_name, is_nullable FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'person' ORDER BY ordinal_position`,
    `SELECT current_database() IS NOT NULL, current_schema(), session_user`,
    `SHOW TIME ZONE`,
  ),
  DBeaver: asked(
    `SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE 1 = 0`,
    `SELECT current_schema(), session_user`,
    `SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass WHERE n.nspname = 'entities' ORDER BY nspname`,
    `SELECT c.oid, c.relname, c.relkind, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr, pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
     FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
     WHERE c.relnamespace = <<schema entities>> AND c.relkind NOT IN ('i', 'I', 'c') ORDER BY c.relname`,
    `SELECT c.relname, a.attname, a.attnum, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
     LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
     LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
     WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND c.oid = <<class person>> ORDER BY a.attnum`,
    `SELECT c.oid, c.conname, c.contype, c.conkey, c.confkey, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description,
       CASE c.contype WHEN 'c' THEN substring(pg_catalog.pg_get_constraintdef(c.oid), 7) ELSE null END consrc_copy FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
     LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
     WHERE c.conrelid = <<class visit>> AND c.contype <> 'n' ORDER BY c.conname`,
    `SELECT i.indexrelid, i.indrelid, i.indisunique, i.indisprimary, i.indkey, c.relname, pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = <<class person>> ORDER BY c.relname`,
    `SELECT DISTINCT dep.deptype, dep.classid::regclass::text, cl.relkind FROM pg_depend dep LEFT JOIN pg_class cl ON dep.objid = cl.oid WHERE dep.refobjid = <<class person>> AND dep.deptype = 'a' ORDER BY 1, 2, 3`,
    `SELECT tc.oid, tc.tgname FROM pg_catalog.pg_trigger tc WHERE tc.tgrelid = <<class person>> AND NOT tgisinternal`,
    `SELECT typ.oid, typ.typname, typ.typtype, typ.typcategory, format_type(nullif(typ.typbasetype, 0), typ.typtypmod) AS base_type_name FROM pg_catalog.pg_type typ
     LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = typ.typrelid WHERE typ.typnamespace = <<schema entities>> ORDER BY typ.typname`,
    `SELECT p.oid, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid) FROM pg_catalog.pg_proc p WHERE p.pronamespace = <<schema entities>> ORDER BY 2`,
    `SELECT pg_catalog.pg_total_relation_size(<<class person>>) >= 0, pg_catalog.pg_relation_size(<<class person>>)`,
    `SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word IN ('select', 'table', 'where')`,
    `SELECT 1 AS found FROM pg_catalog.pg_class WHERE relhasoids LIMIT 1`,
  ),
  Grafana: asked(
    `SELECT current_setting('server_version_num')::int / 100 >= 1400 AS recent`,
    `SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
       FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
         string_to_array(current_setting('search_path'), ',') s) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
     FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog') ORDER BY 1`,
    `SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE quote_ident(table_name) = 'visit' ORDER BY ordinal_position`,
    `SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'`,
  ),
  'Excel (old ODBC)': asked(
    `SELECT relname, nspname, relkind FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') AND n.oid = relnamespace ORDER BY nspname, relname`,
    `SELECT n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), t.typtypmod, a.attidentity
     FROM (((pg_catalog.pg_class c INNER JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND c.oid = <<class person>>) INNER JOIN pg_catalog.pg_attribute a ON (NOT a.attisdropped) AND a.attnum > 0 AND a.attrelid = c.oid)
     INNER JOIN pg_catalog.pg_type t ON t.oid = a.atttypid) LEFT OUTER JOIN pg_attrdef d ON a.atthasdef AND d.adrelid = a.attrelid AND d.adnum = a.attnum ORDER BY n.nspname, c.relname, attnum`,
    `SELECT ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname FROM pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic
     WHERE tc.relname = 'visit' AND n.nspname = 'entities' AND tc.oid = i.indrelid AND n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum - 1]
       AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) AND ic.oid = i.indexrelid ORDER BY ia.attnum`,
    `SELECT pn.nspname AS pk_schema, pc.relname AS pk_table, pa.attname AS pk_column, fn.nspname AS fk_schema, fc.relname AS fk_table, fa.attname AS fk_column, pos.n AS key_seq, con.conname
     FROM pg_catalog.pg_namespace pn, pg_catalog.pg_class pc, pg_catalog.pg_attribute pa, pg_catalog.pg_namespace fn, pg_catalog.pg_class fc, pg_catalog.pg_attribute fa, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic
     WHERE pn.oid = pc.relnamespace AND pc.oid = pa.attrelid AND pa.attnum = con.confkey[pos.n] AND con.confrelid = pc.oid AND fn.oid = fc.relnamespace AND fc.oid = fa.attrelid AND fa.attnum = con.conkey[pos.n] AND con.conrelid = fc.oid
       AND con.contype = 'f' AND pkic.relkind = 'i' AND pkic.oid = con.conindid ORDER BY fk_schema, fk_table, con.conname, pos.n`,
    `SELECT c.relname, a.attname, vals.attnum FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid JOIN (SELECT <<class person>> AS oid, 2 AS attnum UNION ALL SELECT <<class city>>, 1) vals ON c.oid = vals.oid AND a.attnum = vals.attnum ORDER BY 1`,
    `SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`,
  ),
  'ThoughtSpot and others': asked(
    bound(
      `SELECT c.table_schema, c.table_name, c.column_name, c.data_type FROM information_schema.columns c WHERE c.table_catalog = $1 AND c.table_schema = $2 AND c.table_name = $3 AND c.ordinal_position BETWEEN $4 AND $5 ORDER BY c.ordinal_position`,
      ['osl', 'entities', 'person', '1', '4'],
    ),
    `SELECT relname, (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) AS columns FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace('entities') ORDER BY relname`,
    `SELECT table_name, privilege_type, grantee = current_user OR grantee IS NOT NULL AS known FROM information_schema.table_privileges WHERE table_schema = 'entities' AND privilege_type = 'SELECT' ORDER BY 1, 2, 3`,
    `SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT LIKE 'pg\\_%' AND schema_name <> 'information_schema' ORDER BY schema_name`,
    `SELECT obj_description('entities.person'::regclass, 'pg_class'), col_description('entities.person'::regclass, 1)`,
    `SELECT pg_catalog.pg_get_viewdef(c.oid, true) FROM pg_catalog.pg_class c WHERE c.relkind = 'v' AND c.relnamespace = <<schema entities>>`,
    `SELECT view_name, table_name FROM information_schema.view_table_usage WHERE view_schema = 'entities'`,
    `SELECT sequence_name FROM information_schema.sequences`,
    `SELECT routine_name, data_type FROM information_schema.routines WHERE routine_schema = 'entities' ORDER BY 1`,
  ),
};

function asked(...statements: readonly (string | CatalogStatement)[]): readonly CatalogStatement[] {
  return statements.map((s) => (typeof s === 'string' ? { sql: s } : s));
}

function bound(sql: string, values: readonly string[]): CatalogStatement {
  return { sql, values };
}
