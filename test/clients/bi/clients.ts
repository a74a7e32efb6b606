/** Objects that each real client is asked to look at while `capture.ts` listens. */

export const PSQL: readonly string[] = [
  ...[
    '\\d',
    '\\d+',
    '\\dt',
    '\\dt+',
    '\\di',
    '\\dv',
    '\\dm',
    '\\ds',
    '\\df',
    '\\df+',
    '\\da',
    '\\dn',
    '\\dn+',
    '\\l',
  ],
  ...[
    '\\du',
    '\\dT',
    '\\dT+',
    '\\dx',
    '\\dD',
    '\\dd',
    '\\ddp',
    '\\dp',
    '\\dL',
    '\\dE',
    '\\dP',
    '\\dy',
    '\\dX',
    '\\des',
  ],
  ...[
    '\\d person',
    '\\d+ person',
    '\\d visit',
    '\\d+ city',
    '\\d *.person',
    '\\dt entities.*',
    '\\d person_pkey',
  ],
  ...['\\df entities.*', '\\dp person', '\\dC int4', '\\do ||', '\\dO de*', '\\drds'],
  '\\conninfo',
];

const URL = `
import json, os
port, user, token = int(os.environ['OSL_PORT']), os.environ['OSL_USER'], os.environ['OSL_TOKEN']
`;

export const PYTHON_CLIENTS: Readonly<Record<string, string>> = {
  psycopg: `${URL}
import psycopg
from psycopg.types import TypeInfo
from psycopg.types.enum import EnumInfo
from psycopg.types.range import RangeInfo
from psycopg.types.composite import CompositeInfo
with psycopg.connect('') as c:
    for kind, name in ((TypeInfo, 'int4'), (TypeInfo, 'person'), (EnumInfo, 'text'), (RangeInfo, 'int4range'), (CompositeInfo, 'person'), (CompositeInfo, 'city')):
        kind.fetch(c, name)
    c.execute('select relname from pg_class where relname = any(%s)', (['person'],))
`,
  asyncpg: `${URL}
import asyncio, asyncpg
async def main():
    c = await asyncpg.connect(host='127.0.0.1', port=port, user=user, password=token, database='osl', ssl=False)
    await c.fetch("select null::person, null::city[], null::int4range, null::regclass from pg_catalog.pg_class where relname = $1", 'person')
    await c.fetch("select relname, relkind, reloptions from pg_catalog.pg_class where oid = any($1::oid[])", [1259])
    await c.set_type_codec('jsonb', encoder=str, decoder=str, schema='pg_catalog')
    await c.close()
asyncio.run(main())
`,
  sqlalchemy: `${URL}
import sqlalchemy as sa
e = sa.create_engine(sa.engine.URL.create('postgresql+psycopg2', user, token, '127.0.0.1', port, 'osl'))
i = sa.inspect(e)
i.get_schema_names()
for schema in (None, 'entities'):
    for table in i.get_table_names(schema=schema):
        i.has_table(table, schema=schema)
        for look in (i.get_columns, i.get_pk_constraint, i.get_foreign_keys, i.get_indexes, i.get_unique_constraints, i.get_check_constraints, i.get_table_comment, i.get_table_options):
            try: look(table, schema=schema)
            except NotImplementedError: pass
    i.get_view_names(schema=schema)
    for more in ('get_sequence_names', 'get_materialized_view_names', 'get_enums', 'get_domains', 'get_temp_table_names', 'get_temp_view_names', 'get_sorted_table_and_fkc_names'):
        if hasattr(i, more):
            try: getattr(i, more)(**({} if 'temp' in more else {'schema': schema}))
            except (NotImplementedError, TypeError): pass
m = sa.MetaData(schema='entities'); m.reflect(e, views=True)
m = sa.MetaData(); m.reflect(e)
`,
  psqlodbc: `${URL}
import glob, pyodbc
driver = sorted(glob.glob('/usr/lib/*/odbc/psqlodbcw.so'))[0]
c = pyodbc.connect(f'Driver={driver};Server=127.0.0.1;Port={port};Database=osl;UID={user};PWD={token};sslmode=disable', autocommit=True)
cur = c.cursor()
for look in (lambda: cur.tables(), lambda: cur.tables(schema='entities', tableType='TABLE'), lambda: cur.tables(catalog='%', schema='', table=''), lambda: cur.tables(catalog='', schema='%', table=''),
             lambda: cur.columns(table='person', schema='entities'), lambda: cur.columns(schema='entities'), lambda: cur.columns(table='person', column='name'),
             lambda: cur.primaryKeys(table='visit', schema='entities'), lambda: cur.primaryKeys(table='person'), lambda: cur.foreignKeys(foreignTable='visit', foreignSchema='entities'), lambda: cur.foreignKeys(table='city', schema='entities'),
             lambda: cur.statistics('person', schema='entities'), lambda: cur.statistics('person', schema='entities', unique=True), lambda: cur.rowIdColumns('person', schema='entities'), lambda: cur.rowVerColumns('person', schema='entities'),
             lambda: cur.procedures(), lambda: cur.procedures(schema='entities'), lambda: cur.procedureColumns(schema='entities'), lambda: cur.getTypeInfo()):
    try: look().fetchall()
    except pyodbc.Error as x: print(x)
`,
};

export const JDBC = `
import java.sql.*;
import java.util.*;
public class Look {
  interface Ask { ResultSet get() throws SQLException; }
  public static void main(String[] args) throws Exception {
    var e = System.getenv();
    var p = new Properties();
    p.setProperty("user", e.get("OSL_USER")); p.setProperty("password", e.get("OSL_TOKEN")); p.setProperty("sslmode", "disable");
    p.setProperty("gssEncMode", "disable");
    var c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + e.get("OSL_PORT") + "/osl", p);
    var m = c.getMetaData();
    var t = new String[] {"TABLE", "VIEW", "FOREIGN TABLE", "MATERIALIZED VIEW", "PARTITIONED TABLE"};
    for (Ask a : List.<Ask>of(
        () -> m.getTables(null, null, "%", null), () -> m.getTables(null, "entities", "%", t), () -> m.getTables("osl", "entities", "person", t),
        () -> m.getColumns(null, "entities", "%", "%"), () -> m.getColumns(null, "entities", "person", null),
        () -> m.getPrimaryKeys(null, "entities", "visit"), () -> m.getImportedKeys(null, "entities", "visit"),
        () -> m.getExportedKeys(null, "entities", "city"), () -> m.getCrossReference(null, "entities", "person", null, "entities", "visit"),
        () -> m.getIndexInfo(null, "entities", "person", false, true), () -> m.getIndexInfo(null, "entities", "visit", true, false),
        () -> m.getBestRowIdentifier(null, "entities", "person", DatabaseMetaData.bestRowSession, false),
        () -> m.getVersionColumns(null, "entities", "person"), () -> m.getColumnPrivileges(null, "entities", "person", "%"),
        () -> m.getTablePrivileges(null, "entities", "%"), () -> m.getProcedures(null, "entities", "%"),
        () -> m.getProcedureColumns(null, "entities", "%", "%"), () -> m.getFunctions(null, "entities", "%"),
        () -> m.getFunctionColumns(null, "entities", "%", "%"), () -> m.getUDTs(null, "entities", "%", null),
        () -> m.getSchemas(), () -> m.getSchemas(null, "ent%"), () -> m.getCatalogs(), () -> m.getTypeInfo(), () -> m.getTableTypes())) {
      try (var r = a.get()) { while (r.next()); } catch (SQLException x) { System.err.println(x); }
    }
    m.getSQLKeywords(); m.getMaxColumnNameLength(); m.getMaxConnections(); m.getStringFunctions();
    try (var r = c.createStatement().executeQuery("select null::person, null::city[], 'person'::regclass from pg_catalog.pg_am limit 1")) {
      r.next(); for (int i = 1; i <= 3; i++) { r.getMetaData().getColumnTypeName(i); r.getObject(i); }
    } catch (SQLException x) { System.err.println(x); }
    c.isValid(2); c.getTransactionIsolation(); c.getSchema(); c.getCatalog();
    c.close();
  }
}
`;
