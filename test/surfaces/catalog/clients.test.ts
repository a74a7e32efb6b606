import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import tap, { test } from 'tap';
import { PSQL } from '../../clients/bi/clients.js';
import { HIDDEN, openBase, openWorld, type World } from './support/world.js';

const base = await openBase();
tap.teardown(() => base.close());

interface Printed {
  readonly out: string;
  readonly err: string;
}

async function run(world: World, user: string, command: string, args: readonly string[]): Promise<Printed> {
  const env = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(world.port),
    PGUSER: `user:${user}`,
    PGPASSWORD: await world.token(user),
    PGDATABASE: 'osl',
    LC_ALL: 'C.UTF-8',
    TERM: 'dumb',
  };
  return new Promise((resolve) => {
    execFile(command, args, { env, timeout: 60_000 }, (_, out, err) => resolve({ out, err }));
  });
}

function psql(world: World, user: string, ...statements: string[]): Promise<Printed> {
  return run(world, user, 'psql', ['-X', ...statements.flatMap((s) => ['-c', s])]);
}

const PERSON = `                Table "entities.person"
   Column    |  Type   | Collation | Nullable | Default 
-------------+---------+-----------+----------+---------
 id          | integer |           | not null | 
 name        | text    |           | not null | 
 email       | text    |           |          | 
 born        | date    |           |          | 
 tags        | text[]  |           |          | 
 extra       | jsonb   |           |          | 
 city_id     | bigint  |           |          | 
Indexes:
    "person_pkey" PRIMARY KEY, btree (id)
Foreign-key constraints:
    "person_city_id_fkey" FOREIGN KEY (city_id) REFERENCES city(id)
Referenced by:
    TABLE "visit" CONSTRAINT "visit_person_id_fkey" FOREIGN KEY (person_id) REFERENCES person(id)
`;

test('psql describes what the caller may see', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const squeezed = (text: string): string => text.replace(/ +/g, ' ').replace(/-+/g, '-');
  const described = await psql(world, 'clerk', '\\d person');
  t.equal(described.err, '');
  t.equal(squeezed(described.out.trim()), squeezed(PERSON.trim()));
  const listed = await psql(world, 'clerk', '\\dt');
  t.match(squeezed(listed.out), / entities \| city \| table .*\n entities \| person .*\n entities \| visit /);
  const detailed = await psql(world, 'clerk', '\\d+ person', '\\dt+');
  t.match(detailed.out, 'A number.');
  t.match(detailed.out, `Someone; "quoted" and O'Brien \\ too.`);
  t.match(detailed.out, 'Metric people: Number of persons. In persons. Use MEASURE(people).');
  t.match(
    (await psql(world, 'chief', '\\d salary_hidden')).out,
    '"salary_hidden_person_fkey" FOREIGN KEY (person)',
  );
  t.match((await psql(world, 'chief', '\\d person')).out, 'passport_hidden');
  t.match(
    (await psql(world, 'clerk', '\\d salary_hidden')).err,
    'Did not find any relation named "salary_hidden"',
  );
});

const COMMANDS = [
  ...PSQL,
  ...['\\di+', '\\l+', '\\dg', '\\dC', '\\dc', '\\z', '\\do', '\\dO', '\\dF', '\\dFd', '\\dA'],
  ...['\\dAc', '\\dAf', '\\db', '\\dew', '\\det', '\\deu', '\\dRp', '\\dRs', '\\dS', '\\dTS'],
  ...['\\dfS lower', '\\d pg_class', '\\d information_schema.tables'],
  ...['\\sf pg_catalog.lpad(text,integer)', '\\dconfig'],
];

test('no command of psql fails, or names what is hidden', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const { out, err } = await psql(world, 'clerk', ...COMMANDS.flatMap((c, i) => [`\\echo == ${i}`, c]));
  t.notMatch(err, /ERROR|FATAL/);
  t.equal(out.split('\n').filter((line) => line.startsWith('== ')).length, COMMANDS.length);
  for (const name of HIDDEN) t.notOk(out.includes(name) || err.includes(name), name);
});

const COMPLETE = `
import os, pty, sys, time, select
def talk(prompt, keys, wanted):
    pid, fd = pty.fork()
    if pid == 0: os.execvp('psql', ['psql', '-X', '-q'])
    def until(text):
        got, end = '', time.time() + 20
        while text not in got and time.time() < end:
            if select.select([fd], [], [], 0.1)[0]: got += os.read(fd, 65536).decode().replace('\\a', '')
        return got
    until(prompt)
    os.write(fd, keys.encode())
    got = until(wanted)
    os.write(fd, b'\\x15\\\\q\\n'); time.sleep(0.3); os.close(fd); os.waitpid(pid, 0)
    return wanted in got
print(talk('osl=>', 'select * from per\\t', 'from person'))
print(talk('osl=>', '\\\\d vi\\t', 'visit'))
print(talk('osl=>', 'table pg_catalog.pg_clas\\t', 'pg_class'))
`;

test('psql completes names', { skip: existsSync('/usr/bin/python3') ? false : 'no python3' }, async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const { out, err } = await run(world, 'clerk', '/usr/bin/python3', ['-c', COMPLETE]);
  t.equal(err, '');
  t.same(out.trim().split('\n'), ['True', 'True', 'True']);
});

const PSYCOPG = `
import json, psycopg
from psycopg import ClientCursor
out = []
with psycopg.connect('', autocommit=True) as c:
    for binary in (False, True):
        cur = c.cursor(binary=binary)
        cur.execute('select relname, oid::int > 0, relnatts from pg_class where relname = any(%s) order by 1', (['person', 'city'],))
        out.append(cur.fetchall())
        out.append([d.type_code for d in cur.description])
        cur.execute("select array_agg(attname order by attnum) from pg_attribute where attrelid = %s::regclass and attnum > 0", ('person',))
        out.append(cur.fetchall())
        cur.execute('select %s, %s', ('a', 3))
        out.append(cur.fetchall())
    cur = ClientCursor(c)
    cur.execute('select %s::int + 1, version()', (1,))
    out.append(cur.fetchall())
    try:
        c.execute('select * from pg_class where no_such = %s', (1,))
    except psycopg.Error as e:
        out.append([e.sqlstate, e.diag.message_primary, e.diag.statement_position])
    out.append([c.info.server_version, c.info.parameter_status('server_version')])
print(json.dumps(out))
`;

test('psycopg', { skip: existsSync('/usr/bin/python3') ? false : 'no python3' }, async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const { out, err } = await run(world, 'clerk', '/usr/bin/python3', ['-c', PSYCOPG]);
  t.equal(err, '');
  const both = [
    [
      ['city', true, 3],
      ['person', true, 7],
    ],
    [19, 16, 21],
    [[['id', 'name', 'email', 'born', 'tags', 'extra', 'city_id']]],
    [['a', 3]],
  ];
  t.same(JSON.parse(out), [
    ...both,
    ...both,
    [[2, 'PostgreSQL 14.18 (OSL Gateway)']],
    ['42703', 'column "no_such" does not exist', '30'],
    [140018, '14.18'],
  ]);
});

test('node-postgres: parameters, names, portions and binary results', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const byName = { name: 'q', text: 'select relname, relnatts from pg_class where relname = $1' };
  for (const [name, n] of [
    ['person', 7],
    ['city', 3],
    ['person', 7],
  ] as const) {
    t.same((await client.query({ ...byName, values: [name] })).rows, [{ relname: name, relnatts: n }]);
  }
  const portions = { text: 'select n from generate_series(1, 25) n', values: [], rows: 10 };
  t.equal((await client.query(portions)).rows.length, 25);
  const binary = { text: 'select 7 as n, null as z', values: [], binary: true }; // `binary` is not in its types
  t.same((await client.query(binary)).rows, [{ n: 7, z: null }]);
  const several = await client.query(
    'select current_user; select 1; show server_version; select 2 from pg_am limit 1',
  );
  t.same(
    (several as unknown as { rows: unknown[] }[]).map((r) => r.rows), // the types of `pg` know one result only
    [
      [{ current_user: 'user:clerk' }],
      [{ '?column?': 1 }],
      [{ server_version: '14.18' }],
      [{ '?column?': 2 }],
    ],
  );
  await t.rejects(client.query('select relname from pg_class where'), { code: '42601' });
  await t.rejects(client.query('select  no_such from pg_class'), { code: '42703', position: '9' });
});

test('versions agree wherever they are asked', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const { rows } = await client.query(`
    select current_setting('server_version') as setting, current_setting('server_version_num') as number,
           (select setting from pg_settings where name = 'server_version') as listed,
           (select reset_val from pg_settings where name = 'server_version') as reset, version()`);
  const shown = (await client.query('show server_version')).rows[0].server_version;
  t.equal(shown, '14.18');
  t.same(rows, [
    {
      setting: shown,
      number: '140018',
      listed: shown,
      reset: shown,
      version: `PostgreSQL ${shown} (OSL Gateway)`,
    },
  ]);
  const all: { name: string; setting: string }[] = (await client.query('show all')).rows;
  for (const { name, setting } of all) {
    t.same((await client.query('select current_setting($1) as s', [name])).rows, [{ s: setting }], name);
  }
});
