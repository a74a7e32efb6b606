import glob
import os
import pyodbc

driver = sorted(glob.glob('/usr/lib/*/odbc/psqlodbcw.so'))[0]
login = f"Server=127.0.0.1;Port={os.environ['PGPORT']};Database={os.environ['PGDATABASE']};UID={os.environ['PGUSER']};PWD={os.environ['PGPASSWORD']};sslmode=disable"
# LibreOffice Base, then Excel: server-side parameters, then cursors that fetch in portions.
for options in ('UseServerSidePrepare=1', 'UseDeclareFetch=1;Fetch=50'):
    c = pyodbc.connect(f'Driver={driver};{login};{options}', autocommit=True)
    cur = c.cursor()
    for sql, args in (
        ('SELECT * FROM "osl"."entities"."customer"'.replace('"osl".', ''), ()),
        ('SELECT "customer"."id", "customer"."name" FROM "entities"."customer" "customer" WHERE "customer"."region" = ? ORDER BY "customer"."id" ASC', ('eu',)),
        ('SELECT "id", "amount" FROM "entities"."order" "order" WHERE ( "quantity" > ? AND "status" LIKE ? ) ORDER BY "id"', (5, 'p%')),
        ('SELECT COUNT( * ), SUM( "order"."amount" ) FROM "entities"."order" "order", "entities"."customer" "customer" WHERE "order"."customer_id" = "customer"."id" AND "customer"."region" = ?', ('us',)),
        ("SELECT \"id\" FROM \"entities\".\"order\" WHERE \"placed_at\" >= {ts '2025-11-01 00:00:00'} AND \"shipped_on\" < {d '2026-01-01'} ORDER BY \"id\"", ()),
        ('SELECT {fn UCASE("name")}, {fn LENGTH("name")}, {fn CONCAT("name", "region")} FROM "entities"."customer" ORDER BY "id"', ()),
        ('SELECT "customer"."name", "order"."id" FROM {oj "entities"."customer" "customer" LEFT OUTER JOIN "entities"."order" "order" ON "customer"."id" = "order"."customer_id"} ORDER BY "customer"."id", "order"."id"', ()),
        ('SELECT * FROM "entities"."product" WHERE 0 = 1', ()),
        ('SELECT DISTINCT "region" FROM "entities"."customer" WHERE "born" IS NOT NULL ORDER BY 1', ()),
    ):
        try:
            cur.execute(sql, args) if args else cur.execute(sql)
            cur.fetchall()
        except pyodbc.Error as x:
            print(x)
    c.close()
