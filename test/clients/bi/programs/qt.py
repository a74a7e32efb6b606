import os
import sys
from PyQt5.QtCore import QCoreApplication, QVariant
from PyQt5.QtSql import QSqlDatabase, QSqlQuery

app = QCoreApplication(sys.argv)
db = QSqlDatabase.addDatabase('QPSQL')
db.setHostName('127.0.0.1')
db.setPort(int(os.environ['PGPORT']))
db.setDatabaseName(os.environ['PGDATABASE'])
db.setUserName(os.environ['PGUSER'])
db.setPassword(os.environ['PGPASSWORD'])
if not db.open():
    print(db.lastError().text())
db.tables()
for name in ('customer', 'order', 'entities.product'):
    db.record(name)
    db.primaryIndex(name)


def asked(text, *values):
    query = QSqlQuery(db)
    if values:
        query.prepare(text)
        for value in values:
            query.addBindValue(value)
    if not (query.exec() if values else query.exec(text)):
        print(text, query.lastError().text())
    while query.next():
        pass


asked('SELECT "id", "name", "email", "region" FROM "customer" ORDER BY "id" ASC')
asked('SELECT id, name FROM customer WHERE region = ? ORDER BY id', 'eu')
asked('SELECT id FROM "order" WHERE quantity > ? AND status = ? ORDER BY id', 10, 'paid')
asked('SELECT "product"."id","product"."label",relTblAl_1.name FROM "product","category" relTblAl_1 WHERE ("product"."category_id"=relTblAl_1.id) ORDER BY "product"."id"')
asked('SELECT count(*) FROM "order"')
db.transaction()
asked('SELECT max(placed_at) FROM "order"')
db.commit()
db.close()
