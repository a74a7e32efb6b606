import tap, { test } from 'tap';
import { CUSTOMER_COLUMNS, MANY, missing, PYTHON, startGateway, steps, TABLES } from './support.js';

const gateway = await startGateway();
tap.teardown(() => gateway.close());

const SAY = `
import json, os, threading, time
def say(step, value): print(json.dumps({'step': step, 'value': value}, default=str), flush=True)
port, user, token, endless = int(os.environ['OSL_PORT']), os.environ['OSL_USER'], os.environ['OSL_TOKEN'], os.environ['OSL_ENDLESS']
LIST = "select table_name from information_schema.tables where table_schema = 'entities' order by 1"
COLUMNS = "select column_name from information_schema.columns where table_name = 'customer' order by ordinal_position"
`;

const PSYCOPG2 = `${SAY}
import psycopg2, psycopg2.extensions
c = psycopg2.connect('')
cur = c.cursor()
cur.execute(LIST); say('tables', [r[0] for r in cur.fetchall()])
cur.execute(COLUMNS); say('columns', [r[0] for r in cur.fetchall()])
cur.execute('select name, email from customer where id = %s and region = %s', (1, 'eu')); say('parameters', cur.fetchall())
named = c.cursor('many'); named.itersize = 7000
named.execute('select id, amount from "order" where id > 1000'); say('stream', sum(1 for _ in named)); named.close()
with open(os.devnull, 'w') as f: cur.copy_expert('copy (select id from "order" where id > 1000) to stdout csv', f); say('copy', cur.rowcount)
c.rollback()
threading.Timer(0.7, c.cancel).start()
try: cur.execute(endless)
except psycopg2.Error as e: say('cancel', e.pgcode)
c.rollback()
try: cur.execute('select no_such from customer')
except psycopg2.Error as e: say('error', e.pgcode)
c.rollback()
cur.execute('select 1'); say('after', cur.fetchone()[0])
import psycopg2.pool
pool, got = psycopg2.pool.ThreadedConnectionPool(1, 1, ''), []
for turn in range(4):
    c = pool.getconn(); cur = c.cursor()
    try:
        with c:
            cur.execute("set timezone = 'Asia/Tokyo'"); cur.execute('select id from customer where id = %s', (turn + 1,)); got.append(cur.fetchone()[0])
            if turn == 1: cur.execute('select no_such from customer')
    except psycopg2.Error as e: got.append(e.pgcode)
    if turn == 2: cur.execute('select 1') # the pool rolls it back
    if turn == 3: c.reset(); c.set_session(readonly=False, autocommit=True, isolation_level='REPEATABLE READ')
    cur.execute('show timezone'); got.append(cur.fetchone()[0]); pool.putconn(c)
pool.closeall(); say('pool', got)
`;

const PSYCOPG3 = `${SAY}
import psycopg
c = psycopg.connect('')
cur = c.cursor()
say('tables', [r[0] for r in cur.execute(LIST).fetchall()])
say('columns', [r[0] for r in cur.execute(COLUMNS).fetchall()])
say('parameters', cur.execute('select name, email from customer where id = %s and region = %s', (1, 'eu'), prepare=True).fetchall())
with c.cursor('many', binary=True) as named:
    named.itersize = 7000
    named.execute('select id, amount from "order" where id > %s', (1000,)); say('stream', sum(1 for _ in named))
with cur.copy('copy (select id from "order" where id > 1000) to stdout (format binary)') as copy:
    copy.set_types(['int8']); say('copy', sum(1 for _ in copy.rows()))
with c.pipeline():
    got = [c.execute('select %s::int', (i,)) for i in range(20)]
    say('pipeline', sum(g.fetchone()[0] for g in got))
c.rollback()
from psycopg.types.json import Json
from decimal import Decimal
import datetime, ipaddress
found = []
for binary in (False, True):
    b = c.cursor(binary=binary)
    def one(query, *values):
        b.execute(query.replace('%s', '%b') if binary else query, values, prepare=True)
        found.append(str([r[0] for r in b.fetchall()]))
    for _ in range(2):
        one('select id from customer where region = %s and id <= %s order by id', 'eu', 2)
        one('select id from customer where region = any(%s) and id <= 2 order by id', ['eu', 'x y'])
        one('select id from customer where id = any(%s) order by id', [1, 2])
        one('select id from "order" where amount > %s and id < 4 order by id', Decimal('1.25'))
        one('select id from customer where born > %s order by id', datetime.date(1980, 1, 1))
        one('select %s::jsonb from customer where id = 1', Json({'a': [1]}))
        one('select %s::text from customer where id = 1', ipaddress.ip_address('10.0.0.1'))
say('types', [found[i] for i in range(7)]); say('same', len({tuple(found[i:i + 7]) for i in range(0, 28, 7)}))
say('alone', len(c.execute('select id from customer where %s is null', (ipaddress.ip_address('10.0.0.1'),)).fetchall()))
c.rollback()
threading.Timer(0.7, c.cancel).start()
try: cur.execute(endless)
except psycopg.Error as e: say('cancel', e.sqlstate)
c.rollback()
try: cur.execute('select no_such from customer')
except psycopg.Error as e: say('error', e.sqlstate)
c.rollback()
say('after', cur.execute('select 1').fetchone()[0])
import psycopg_pool
def reset(c): c.execute('close all'); c.execute('unlisten *'); c.execute('reset all'); c.commit()
got = []
with psycopg_pool.ConnectionPool('', min_size=1, max_size=1, reset=reset) as pool:
    for turn in range(4):
        try:
            with pool.connection() as c:
                got.append(c.execute('show timezone').fetchone()[0]); c.execute("set timezone = 'Asia/Tokyo'")
                with c.transaction():
                    got.append(c.execute('select id from customer where id = %s', (turn + 1,), prepare=True).fetchone()[0])
                    try:
                        with c.transaction(): c.execute('select no_such from customer')
                    except psycopg.Error as e: got.append(e.sqlstate)
                if turn == 2: c.execute('select 1/0')
        except psycopg.Error as e: got.append(e.sqlstate)
        pool.check()
    say('pool', got)
`;

const ASYNCPG = `${SAY}
import asyncio, asyncpg
async def main():
    c = await asyncpg.connect(host='127.0.0.1', port=port, user=user, password=token, database='osl')
    say('tables', [r[0] for r in await c.fetch(LIST)])
    say('columns', [r[0] for r in await c.fetch(COLUMNS)])
    say('parameters', [list(r) for r in await c.fetch('select name, email from customer where id = $1 and region = $2', 1, 'eu')])
    n = 0
    async with c.transaction():
        async for _ in c.cursor('select id, amount from "order" where id > $1', 1000, prefetch=7000): n += 1
    say('stream', n)
    async def nothing(data): pass
    say('copy', await c.copy_from_query('select id from "order" where id > 1000', output=nothing, format='csv'))
    found = []
    for n in (32767, 32768, 65535):
        args = ','.join(f'\${i}' for i in range(1, n + 1))
        try: found.append(len(await asyncio.wait_for(c.fetchval(f'SELECT ARRAY[{args}]', *map(str, range(n))), 60)))
        except asyncpg.InterfaceError as e: found.append(str(e))
    say('max_args', found)
    say('types', [await c.fetchval(q, *v) for q, *v in [
        ('select count(*) from customer where region = any($1) and id <= 2', ['eu', 'x y']),
        ('select count(*) from customer where id = any($1)', [1, 2]),
        ('select count(*) from customer where id = any(array[$1, $2]::int[])', 1, 2),
        ('select count(*) from "order" where region = $1::varchar and id < $2', 'eu', 4)]])
    try: await asyncio.wait_for(c.fetch(endless), 0.7)
    except asyncio.TimeoutError: say('cancel', '57014')
    try: await c.fetch('select no_such from customer')
    except asyncpg.PostgresError as e: say('error', e.sqlstate)
    say('after', await c.fetchval('select 1'))
    await c.close()
    got = []
    async with asyncpg.create_pool(host='127.0.0.1', port=port, user=user, password=token, database='osl', min_size=1, max_size=1) as pool:
        for turn in range(4):
            try:
                async with pool.acquire() as c:
                    got.append(await c.fetchval('show timezone')); await c.execute("set timezone = 'Asia/Tokyo'")
                    async with c.transaction(isolation=('read_committed', 'repeatable_read')[turn % 2], readonly=turn % 2 == 0):
                        got.append(await (await c.prepare('select id from customer where id = $1')).fetchval(turn + 1))
                        try:
                            async with c.transaction(): await c.fetch('select no_such from customer')
                        except asyncpg.PostgresError as e: got.append(e.sqlstate)
                        got.append(await c.fetchval('select count(*) from customer'))
                    if turn == 2: await c.fetch('select 1/0')
                    if turn == 3: await c.reload_schema_state()
            except asyncpg.PostgresError as e: got.append(e.sqlstate)
        got.append(await pool.fetchval('select name from customer where id = $1', 1))
        c = await pool.acquire(); await c.execute('begin; select 1') # its reset begins with ROLLBACK, and says so
        asyncio.get_running_loop().set_exception_handler(lambda *said: None); await pool.release(c)
        got.append(await pool.fetchval('show transaction_isolation'))
    say('pool', got)
asyncio.run(main())
`;

const SQLALCHEMY = `${SAY}
import sqlalchemy as sa
e = sa.create_engine(sa.engine.URL.create('postgresql+psycopg2', user, token, '127.0.0.1', port, 'osl'))
i = sa.inspect(e)
say('tables', sorted(i.get_table_names(schema='entities')))
say('columns', [c['name'] for c in i.get_columns('customer', schema='entities')])
say('keys', [i.get_pk_constraint('order', schema='entities')['constrained_columns'], [(f['constrained_columns'], f['referred_table']) for f in i.get_foreign_keys('order', schema='entities')]])
m = sa.MetaData(schema='entities'); m.reflect(e); order, customer = m.tables['entities.order'], m.tables['entities.customer']
with e.connect() as c:
    say('parameters', [list(r) for r in c.execute(sa.select(customer.c.name, customer.c.email).where(customer.c.id == 1, customer.c.region == 'eu'))])
    say('stream', sum(1 for _ in c.execution_options(stream_results=True).execute(sa.select(order).where(order.c.id > 1000))))
with e.connect() as c:
    week = sa.func.date_trunc('week', order.c.placed_at).label('__timestamp')
    q = sa.select(week, order.c.region, sa.func.sum(order.c.amount).label('SUM(amount)')).where(order.c.placed_at >= sa.func.to_timestamp('2026-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')).group_by(week, order.c.region).order_by(sa.desc('SUM(amount)')).limit(10)
    say('superset', [[r[1], float(r[2])] for r in c.execute(q)])
    raw = c.connection.driver_connection if hasattr(c.connection, 'driver_connection') else c.connection.connection
    threading.Timer(0.7, raw.cancel).start()
    try: c.execute(sa.text(endless))
    except sa.exc.DBAPIError as x: say('cancel', x.orig.pgcode)
with e.connect() as c:
    try: c.execute(sa.text('select no_such from customer'))
    except sa.exc.DBAPIError as x: say('error', x.orig.pgcode)
with e.connect() as c: say('after', c.execute(sa.text('select 1')).scalar())
from sqlalchemy.orm import Session
got = []
for options in ({}, {'isolation_level': 'REPEATABLE READ'}, {'isolation_level': 'AUTOCOMMIT'}):
    e = sa.create_engine(e.url, pool_size=1, max_overflow=0, pool_pre_ping=True, **options)
    for turn in range(3):
        try:
            with Session(e) as s, s.begin():
                got.append(s.execute(sa.text('select id from customer where id = :id'), {'id': turn + 1}).scalar())
                try:
                    with s.begin_nested(): s.execute(sa.text('select no_such from customer'))
                except sa.exc.DBAPIError as x: got.append(x.orig.pgcode)
                if turn == 1: s.execute(sa.text('select 1/0'))
        except sa.exc.DBAPIError as x: got.append(x.orig.pgcode)
    with e.connect().execution_options(isolation_level='SERIALIZABLE') as c: got.append(c.execute(sa.text('show transaction_isolation')).scalar())
    with e.connect() as c: got.append(c.execute(sa.text('show transaction_isolation')).scalar())
    e.dispose()
say('pool', got)
import asyncio
from sqlalchemy.ext.asyncio import create_async_engine
async def over_asyncpg():
    a, got = create_async_engine(e.url.set(drivername='postgresql+asyncpg'), pool_size=1, max_overflow=0, pool_pre_ping=True), []
    for turn in range(3):
        try:
            async with a.begin() as c:
                got.append((await c.execute(sa.text('select id from customer where id = :id'), {'id': turn + 1})).scalar())
                if turn == 1: await c.execute(sa.text('select no_such from customer'))
        except sa.exc.DBAPIError as x: got.append(x.orig.pgcode)
    await a.dispose(); say('asyncpg', got)
asyncio.run(over_asyncpg())
`;

const ODBC = `${SAY}
import glob
driver = sorted(glob.glob('/usr/lib/*/odbc/psqlodbcw.so'))[0]
os.environ['ODBCSYSINI'] = os.path.dirname(__file__) # with the pool of unixODBC
with open(os.path.dirname(__file__) + '/odbcinst.ini', 'w') as f: f.write(f'[ODBC]\\nPooling=Yes\\n[pooled]\\nDriver={driver}\\nCPTimeout=60\\nCPReuse=100\\n')
import pyodbc
c = pyodbc.connect(f'Driver={driver};Server=127.0.0.1;Port={port};Database=osl;UID={user};PWD={token};UseDeclareFetch=1;Fetch=7000', autocommit=True)
cur = c.cursor()
say('tables', sorted(r.table_name for r in cur.tables(schema='entities', tableType='TABLE')))
say('columns', [r.column_name for r in cur.columns(table='customer', schema='entities')])
say('keys', [[r.column_name for r in cur.primaryKeys(table='order', schema='entities')], [(r.fkcolumn_name, r.pktable_name) for r in cur.foreignKeys(foreignTable='order', foreignSchema='entities')]])
say('parameters', [list(r) for r in cur.execute('select name, email from customer where id = ? and region = ?', 1, 'eu').fetchall()])
say('stream', sum(1 for _ in cur.execute('select id, amount from "order" where id > 1000')))
threading.Timer(0.7, cur.cancel).start()
try: cur.execute(endless).fetchall()
except pyodbc.Error as e: say('cancel', '57014' if 'cancel' in str(e).lower() else str(e))
try: cur.execute('select no_such from customer').fetchall()
except pyodbc.Error as e: say('error', e.args[0])
say('after', cur.execute('select 1').fetchone()[0])
# As desktop tools read: a cursor that scrolls, row by row, column by column, by both of the advised strings.
import ctypes
odbc = ctypes.CDLL('libodbc.so.2'); P = ctypes.c_void_p
text, size, scrolled = ctypes.create_string_buffer(100), ctypes.c_long(), []
for string in ('UseDeclareFetch=0', 'UseDeclareFetch=1;Fetch=1000'):
    env, dbc, st, n = P(), P(), P(), 0
    odbc.SQLAllocHandle(1, None, ctypes.byref(env)); odbc.SQLSetEnvAttr(env, 200, P(3), 0); odbc.SQLAllocHandle(2, env, ctypes.byref(dbc))
    string = f'Driver={driver};Server=127.0.0.1;Port={port};Database=osl;UID={user};PWD={token};{string}'
    assert odbc.SQLDriverConnect(dbc, None, string.encode(), -3, None, 0, None, 0) in (0, 1)
    odbc.SQLAllocHandle(3, dbc, ctypes.byref(st)); odbc.SQLSetStmtAttr(st, 6, P(3), 0)
    assert odbc.SQLExecDirect(st, b'select id, region, amount from "order" where id > 1000 order by id', -3) in (0, 1)
    while odbc.SQLFetchScroll(st, 1, ctypes.c_long(0)) in (0, 1):
        for column in (1, 2, 3): odbc.SQLGetData(st, column, 1, text, 100, ctypes.byref(size))
        n += 1
    for how, offset in ((5, 500), (4, 0), (2, 0), (3, 0)): # absolute, prior, first, last
        assert odbc.SQLFetchScroll(st, how, ctypes.c_long(offset)) in (0, 1)
        odbc.SQLGetData(st, 1, 1, text, 100, ctypes.byref(size)); scrolled.append(int(text.value))
    scrolled.append(n)
say('scrolled', scrolled)
got, sessions = [], set()
for more in ('UseServerSidePrepare=1', 'Protocol=7.4-2', 'Protocol=7.4-1', 'Protocol=7.4-0'):
    for turn in range(3):
        c = pyodbc.connect(f'Driver={{pooled}};Server=127.0.0.1;Port={port};Database=osl;UID={user};PWD={token};{more}', autocommit=False)
        try:
            got.append([c.execute('select id from customer where id = ?', i).fetchone()[0] for i in (1, 2)])
            if turn == 1: c.execute('select no_such from customer')
            c.commit()
        except pyodbc.Error as e: got.append(e.args[0]); c.rollback(); got.append(c.execute('select count(*) from customer').fetchone()[0])
        sessions.add(c.execute('select pg_backend_pid()').fetchone()[0]); c.close()
say('pool', got); say('sessions', len(sessions))
`;

/** The row that a scrolling cursor is on after each of four jumps, and how many it has. */
const SCROLLED = [1_500, 1_499, 1_001, 1_000 + MANY, MANY];
/** asyncpg's own limit: it says so once the parameters are described. */
const TOO_MANY = 'the number of query arguments cannot exceed 32767';

/** Rows that three sessions of SQLAlchemy see: a row each, the error of a savepoint, and of the second one more. */
const POOLED = (nested: string) => [1, nested, 2, nested, '22012', 3, nested];

const CLIENTS = [
  {
    name: 'psycopg2',
    module: 'psycopg2',
    text: PSYCOPG2,
    more: { copy: MANY, pool: [1, 'Asia/Tokyo', 2, '42703', 'Asia/Tokyo', 3, 'Asia/Tokyo', 4, 'UTC'] },
  },
  {
    name: 'psycopg 3',
    module: 'psycopg, psycopg_pool',
    text: PSYCOPG3,
    more: {
      copy: MANY,
      pipeline: 190,
      types: ['[1, 2]', '[1, 2]', '[1, 2]', '[2, 3]', '[1, 2]', "[{'a': [1]}]", "['10.0.0.1/32']"],
      same: 1,
      alone: 0,
      pool: ['UTC', 1, '42703', 'UTC', 2, '42703', 'UTC', 3, '42703', '22012', 'UTC', 4, '42703'],
    },
  },
  {
    name: 'asyncpg',
    module: 'asyncpg',
    text: ASYNCPG,
    more: {
      copy: `COPY ${MANY}`,
      max_args: [32_767, TOO_MANY, TOO_MANY],
      types: [2, 2, 2, 1],
      pool: [
        ...['UTC', 1, '42703', 4, 'UTC', 2, '42703', 4, 'UTC', 3, '42703', 4, '22012', 'UTC', 4, '42703', 4],
        ...['Ada', 'read committed'],
      ],
    },
  },
  {
    name: 'SQLAlchemy',
    module: 'sqlalchemy',
    text: SQLALCHEMY,
    more: {
      keys: [['id'], [[['customer_id'], 'customer']]],
      superset: [['eu', 1.5 * MANY]],
      pool: [
        ...[...POOLED('42703'), 'serializable', 'read committed'],
        ...[...POOLED('42703'), 'serializable', 'repeatable read'],
        ...[...POOLED('25P01'), 'serializable', 'read committed'], // SAVEPOINT outside of a transaction
      ],
      asyncpg: [1, 2, '42703', 3],
    },
  },
  {
    name: 'psqlODBC through unixODBC',
    module: 'pyodbc',
    text: ODBC,
    more: {
      keys: [['id'], [['customer_id', 'customer']]],
      scrolled: [SCROLLED, SCROLLED].flat(),
      pool: Array.from({ length: 4 }, () => [[1, 2], [1, 2], '42703', 4, [1, 2]]).flat(),
      sessions: 4,
    },
  },
];

for (const { name, module, text, more } of CLIENTS) {
  test(name, { skip: missing(name, [PYTHON, '-c', `import ${module}`]) }, async (t) => {
    const program = { file: 'client.py', text, command: (file: string) => [PYTHON, file] as const };
    const said = await steps(t, await gateway.environment('user:ann'), program);
    t.strictSame(Object.fromEntries(said), {
      tables: TABLES,
      columns: CUSTOMER_COLUMNS,
      parameters: [['Ada', '[redacted]']],
      stream: MANY,
      cancel: '57014',
      error: '42703',
      after: 1,
      ...more,
    });
  });
}
