import { readFileSync, writeFileSync } from 'node:fs';
import tap, { test } from 'tap';
import { connectPg } from '../../support/pg-client.js';
import { bind, close, describe, execute, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { psqlScript, startBoth } from './support.js';

tap.setTimeout(600_000);

const both = await startBoth();
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

/** Each script is run by psql against Postgres itself and against the gateway; they must print the same. */
const SCRIPTS: Readonly<Record<string, string>> = {
  'a cursor gives its rows in portions': `
    begin; declare c cursor for select id, region from "order" order by id;
    fetch c; fetch 2 from c; fetch forward 3 in c; move 4 from c; fetch next from c; fetch all from c; fetch c;
    close c; commit;`,
  'the end is the end, also after MOVE ALL': `
    begin; declare c cursor for select id from "order" order by id; move all from c; fetch c; fetch all c; rollback;`,
  'FETCH 0 and counts beyond the end': `
    begin; declare c cursor for select id from product order by id; fetch 100 from c; fetch 100 from c; end;`,
  'FETCH 0 of a cursor that goes forward': `
    begin; declare c no scroll cursor for select id from product order by id; fetch 0 from c; fetch all from c; fetch 0 from c; end;
    begin; declare c no scroll cursor for select id from product order by id; fetch 1 from c; fetch 0 from c; end;`,
  'a cursor needs a block': `declare c cursor for select 1; fetch c;`,
  'a cursor ends with its block': `
    begin; declare c cursor for select id from product order by id; fetch c; commit; fetch c;
    begin; fetch c; rollback;`,
  'a cursor WITH HOLD outlives its block': `
    begin; declare c cursor with hold for select id from product order by id; fetch c; commit;
    fetch c; fetch c; close c; fetch c;`,
  'a cursor WITH HOLD outside of a block': `
    declare c cursor with hold for select id from product order by id; fetch all from c; close all;`,
  'a rolled-back block takes its cursors WITH HOLD along': `
    begin; declare c cursor with hold for select 1; rollback; fetch c;`,
  'names are taken once': `begin; declare c cursor for select 1; declare c cursor for select 2; rollback;`,
  'an unknown name': `begin; fetch nothing; rollback; close nothing; move nothing;`,
  'an error in the question ends the block': `
    begin; declare c cursor for select 1/(id-2) from product order by id; fetch c; fetch c; fetch c; rollback;`,
  'several cursors side by side': `
    begin; declare a cursor for select id from product order by id; declare b no scroll cursor for values (7), (8);
    fetch a; fetch b; fetch a; fetch b; fetch a; close a; fetch b; close all; commit;`,
  'no name without quotes is folded away': `
    begin; declare "My Cursor" cursor for select 1 as one; fetch "My Cursor"; close "My Cursor"; commit;`,
  'backward is refused': `
    begin; declare c no scroll cursor for select 1; fetch c; fetch prior from c; rollback;`,
  'a cursor that scrolls goes both ways': `
    begin; declare c scroll cursor for select id, note from "order" order by id;
    fetch last from c; fetch prior from c; fetch first from c; fetch backward from c; fetch next from c;
    fetch absolute 5 from c; fetch relative 3 from c; fetch relative -2 from c; fetch relative 0 from c; fetch 0 from c;
    fetch -3 from c; fetch backward 2 from c; fetch backward all from c; fetch backward all from c; fetch prior from c;
    fetch forward all from c; fetch next from c; fetch prior from c; fetch absolute -2 from c; fetch absolute 100 from c;
    fetch backward 3 from c; fetch absolute 0 from c; fetch next from c; fetch absolute -100 from c; fetch 2 from c;
    move 3 from c; move backward 2 from c; fetch c; move last from c; fetch c; move absolute 4 from c; fetch c;
    move backward all from c; fetch c; move all from c; move relative -3 from c; fetch c; fetch forward -2 from c;
    fetch backward -2 from c; move 0 from c; move absolute 0 from c; move relative 0 from c; move prior from c;
    fetch forward 39 from c; fetch 5 from c; fetch backward 100 from c; fetch c; close c; commit;`,
  'a cursor that scrolls and is held': `
    begin; declare c scroll cursor with hold for select id from product order by id; fetch c; commit;
    fetch c; fetch c; fetch prior from c; fetch first from c; close c;`,
  'a cursor that scrolls over the catalog, and over nothing': `
    begin; declare a scroll cursor for select n from generate_series(1, 5) as n; fetch last from a; fetch first from a;
    declare b scroll cursor for select id from product where false; fetch last from b; fetch first from b;
    fetch prior from b; fetch absolute 0 from b; move all from b; commit;`,
  'an error is not the end of a cursor that scrolls': `
    begin; declare c scroll cursor for select 1/(id-2) from product order by id; fetch c; savepoint s; fetch last from c;
    rollback to s; rollback;`,
  'the last number is a position, not all': `
    begin; declare c scroll cursor for select id from product order by id;
    fetch absolute 2147483647 from c; fetch prior from c; fetch relative 2147483647 from c; fetch prior from c;
    move absolute 2147483647 in c; move backward all in c; fetch c; commit;`,
  'ROLLBACK TO closes the cursors of its savepoint': `
    begin; declare a cursor for select id from product order by id; savepoint s;
    declare b cursor for select id from product order by id; fetch a; fetch b; rollback to s; fetch a;
    declare b cursor for select id from product order by id; fetch b; rollback to s; fetch b; rollback;`,
  'RELEASE leaves cursors to the savepoint before': `
    begin; savepoint s; savepoint t; declare c cursor for select id from product order by id; release t; fetch c;
    savepoint u; fetch c; rollback to u; fetch c; rollback to s; fetch c; rollback;
    begin; savepoint s; declare c cursor for select 1; release s; savepoint t; rollback to t; fetch c; commit;`,
  'a held cursor of an earlier block outlives savepoints': `
    begin; savepoint s; declare c cursor with hold for select id from product order by id; commit;
    begin; savepoint s; fetch c; rollback to s; fetch c; commit; close c;
    begin; savepoint s; declare c cursor with hold for select 1; rollback to s; commit; fetch c;`,
  'comments and case do not matter': `
    begin; DECLARE /* for */ c -- cursor for
      CURSOR FOR /* select */ select id, 'for' as "for" from product order by 1; FETCH ALL FROM c; COMMIT;`,
  'DISCARD ALL closes what is held': `
    declare c cursor with hold for select 1; discard all; fetch c;`,
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(name, { skip }, async (t) => {
    if (both === null) return;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    t.equal(ours, theirs);
  });
}

test('a cursor is governed like any question', { skip }, async (t) => {
  if (both === null) return;
  const printed = await psqlScript(
    await both.gateway('user:eu'),
    `begin; declare c cursor for select id, email, tax_no from customer order by id; fetch all from c; rollback;
     begin; declare d cursor for select id, email from customer order by id; fetch all from d; commit;`,
  );
  t.match(printed, /ERROR: {2}42703/);
  t.match(printed, /1\|\[redacted\]\n2\|\[redacted\]\n(?!3)/);
});

const ORDERS = 'select id from "order" where id <= 10 order by id';
const DECLARED = [query('begin'), query(`declare c cursor for ${ORDERS}`)];
const BOUND = [query('begin'), parse('s', ORDERS), bind('p', 's'), sync];
const run = (text: string, maxRows = 0) => [
  parse('', text),
  bind('', ''),
  describe('P'),
  execute('', maxRows),
  sync,
];
const ID = 'T id:20:text';

/** Messages and what comes for them in a block, as Postgres 15 answers them: portals and cursors share their names. */
const NAMED: Readonly<Record<string, readonly [sent: readonly Buffer[], said: readonly string[]]>> = {
  'MOVE is not suspended': [
    [...DECLARED, ...run('move 3 in c', 1), ...run('fetch 1 from c'), ...run('move all in c', 2)],
    ['1', '2', 'n', 'C MOVE 3', '1', '2', ID, 'D 4', 'C FETCH 1', '1', '2', 'n', 'C MOVE 6'],
  ],
  'FETCH, MOVE and CLOSE of a portal': [
    [...BOUND, query('move 2 in p'), query('fetch 1 from p'), execute('p', 1), sync, query('move all in p')],
    ['1', '2', 'C MOVE 2', ID, 'D 3', 'C FETCH 1', 'D 4', 's', 'C MOVE 6'],
  ],
  'the same in extended messages': [
    [...BOUND, ...run('move 2 in p'), ...run('fetch 2 from p'), execute('p', 1), sync, ...run('close p')],
    ['1', '2', '1', '2', 'n', 'C MOVE 2', '1', '2', ID, 'D 3', 'D 4', 'C FETCH 2', 'D 5', 's'].concat([
      '1',
      '2',
      'n',
      'C CLOSE CURSOR',
    ]),
  ],
  'a portal that is closed by its name': [
    [...BOUND, query('close p'), execute('p'), sync],
    ['1', '2', 'C CLOSE CURSOR', 'E ERROR 34000 portal "p" does not exist'],
  ],
  'CLOSE ALL closes portals': [
    [...BOUND, query('close all'), execute('p'), sync],
    ['1', '2', 'C CLOSE CURSOR ALL', 'E ERROR 34000 portal "p" does not exist'],
  ],
  'a portal that has ended gives no rows': [
    [...BOUND, query('move all in p'), execute('p'), sync, query('fetch 1 from p')],
    ['1', '2', 'C MOVE 10', 'C SELECT 0', ID, 'C FETCH 0'],
  ],
  'Describe, Execute and Close of a cursor': [
    [
      ...DECLARED,
      describe('P', 'c'),
      execute('c', 2),
      sync,
      query('fetch 1 from c'),
      execute('c'),
      execute('c'),
    ].concat([close('P', 'c'), sync, query('fetch 1 from c')]),
    [ID, 'D 1', 'D 2', 's', ID, 'D 3', 'C FETCH 1', ...[4, 5, 6, 7, 8, 9, 10].map((n) => `D ${n}`)].concat([
      'C SELECT 7',
      'C SELECT 0',
      '3',
      'E ERROR 34000 cursor "c" does not exist',
    ]),
  ],
  'a name is taken once: by a cursor': [
    [...DECLARED, parse('', 'select 1'), bind('c', ''), sync],
    ['1', 'E ERROR 42P03 cursor "c" already exists'],
  ],
  'a name is taken once: by a portal': [
    [...BOUND, query('declare p cursor for select 1')],
    ['1', '2', 'E ERROR 42P03 cursor "p" already exists'],
  ],
  'a portal cannot be run by itself': [
    [...BOUND, parse('f', 'fetch 1 from p'), close('P', 'p'), bind('p', 'f'), execute('p'), sync],
    ['1', '2', '1', '3', '2', 'E ERROR 55000 portal "p" cannot be run'],
  ],
  'a FETCH of a name that is another portal by now': [
    [
      ...BOUND,
      parse('f', 'fetch 1 from p'),
      close('P', 'p'),
      parse('', 'select 1 as one'),
      bind('p', ''),
    ].concat([bind('', 'f'), execute(), sync]),
    ['1', '2', '1', '3', '1', '2', '2', 'E ERROR 0A000 cached plan must not change result type'],
  ],
};

test('portals and cursors have their names from one set', { skip }, async (t) => {
  if (both === null) return;
  const { PGPASSWORD: token = '' } = await both.gateway('user:ada');
  for (const [name, [sent, expected]] of Object.entries(NAMED)) {
    const client = await Client.login(both.port, 'user:ada', token);
    client.send(...sent);
    const said: string[] = [];
    for (const message of sent)
      if (message[0] === 0x51 || message[0] === 0x53) said.push(...(await client.until('Z')));
    const told = said
      .filter((line) => !/^(Z|C BEGIN|C DECLARE)/.test(line))
      .map((line) => line.replace(/ \[.*/, ''));
    t.same(told, expected, name);
    client.end();
  }
});

test('values bound to cursors are limited together', { skip }, async (t) => {
  if (both === null) return;
  const { PGPASSWORD: token = '' } = await both.gateway('user:ada');
  const client = await Client.login(both.port, 'user:ada', token);
  const declare = (name: string): Promise<string[]> =>
    client.ask(
      parse('', `declare ${name} cursor with hold for select length($1::text)`),
      bind('', '', { values: ['x'.repeat(12 * 1_048_576)] }),
      execute(),
      sync,
    );
  t.same(await declare('a'), ['1', '2', 'C DECLARE CURSOR', 'Z I']);
  t.same(await declare('b'), ['1', '2', 'C DECLARE CURSOR', 'Z I']);
  t.match(await declare('c'), ['1', '2', /^E ERROR 53400 values of cursors are too large/, 'Z I']);
  await client.ask(query('close a'));
  t.same(await declare('c'), ['1', '2', 'C DECLARE CURSOR', 'Z I']);
  client.end();
});

test('what a cursor that scrolls has kept is given under the rights of its reading only', {
  skip,
}, async (t) => {
  if (both === null) return;
  const client = await connectPg({
    port: both.port,
    user: 'user:ada',
    password: (await both.gateway('user:ada'))['PGPASSWORD'],
  });
  t.teardown(() => client.end());
  await client.query('begin; declare c scroll cursor for select id, email from customer order by id');
  t.equal((await client.query('fetch all from c')).rows.length, 4);
  const policy = readFileSync(both.shop.policyFile, 'utf8');
  writeFileSync(
    both.shop.policyFile,
    policy.replace('user:ada: { ceiling: [auditor, analyst] }', 'user:ada: { ceiling: [analyst] }'),
  );
  await both.shop.open.reload();
  await t.rejects(client.query('fetch first from c'), { code: '55000' });
  writeFileSync(both.shop.policyFile, policy);
  await both.shop.open.reload();
});

const ODD = `values (1, E'a\\tb\\nc\\\\d', null), (2, '', 'x,"y"'), (3, E'\\\\.', E'\\r\\x0b\\f\\b'), (4, 'é😀|;', 'N')`;

/** What psql prints of each is the same from Postgres itself and from the gateway, byte for byte. */
const STATEMENTS: readonly string[] = [
  'copy (select id, label from product order by id) to stdout',
  `copy (${ODD}) to stdout`,
  `copy (${ODD}) to stdout with (delimiter '|', null 'NULL')`,
  `copy (${ODD}) to stdout (format csv)`,
  `copy (${ODD}) to stdout (format csv, header, delimiter ';', quote '''', escape '\\')`,
  `copy (${ODD}) to stdout (format csv, force_quote *)`,
  `copy (${ODD}) to stdout (format csv, null 'x', force_quote (column2))`,
  `copy (${ODD}) to stdout (format binary)`,
  `copy (select E'\\\\.' as a) to stdout csv`,
  `copy (select '' as a) to stdout csv header`,
  'copy (select * from sample order by id) to stdout',
  'copy (select * from sample order by id) to stdout (format csv, header true)',
  'copy (select id, real8, exact, moment, span, bytes, doc, numbers from sample order by id) to stdout (format binary)',
  'copy (select id from product where false) to stdout',
  'copy (select id from product where false) to stdout (format binary)',
  'copy (select count(*), sum(amount) from "order" group by region order by 1) to stdout with csv',
  `copy (select * from (values ('(')) v(")")) to stdout`,
  'COPY /* (select 2) */ (select 1) TO STDOUT;',
  'copy (select 1/0) to stdout',
  'copy (select no_such from product) to stdout',
  'copy (select 1) to stdout (format xml)',
  "copy (select 1) to stdout (delimiter 'ab')",
  "copy (select 1) to stdout (quote '!')",
  "copy (select 1) to stdout (delimiter ',', delimiter ';')",
  "copy (select 1) to stdout (format binary, null 'x')",
  'copy (select 1) to stdout (format csv, force_quote (nothing))',
  'copy (select 1) to stdout (nonsense)',
  "copy (select 1) to stdout (null E'\\n')",
  "copy (select 1) to stdout (format csv, delimiter '\"')",
  `copy (select 1) to stdout (format csv, null 'a"b')`,
];

for (const statement of STATEMENTS) {
  test(statement, { skip }, async (t) => {
    if (both === null) return;
    const script = `${statement.replace(/;$/, '')};\nselect 'after';\n`;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    t.equal(ours, theirs);
  });
}

test('COPY is governed like any question', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:eu');
  const printed = await psqlScript(env, 'copy (select id, email from customer order by id) to stdout csv;');
  t.match(printed, /\n1,\[redacted\]\n2,\[redacted\]\n.*NOTICE/s);
  t.match(await psqlScript(env, 'copy customer (id, region) to stdout;'), /1\teu\n2\teu\n/);
  t.match(
    await psqlScript(env, 'copy osl.entities.customer to stdout csv header;'),
    /id,name,email,region\n/,
  );
  t.match(await psqlScript(env, 'copy customer (tax_no) to stdout;'), /ERROR: {2}42703/);
  t.match(
    await psqlScript(env, 'copy shop.customers to stdout;'),
    /1\tAda\t\[redacted\]\teu\n2\tBo\t\[redacted\]\teu\n/,
  );
  t.match(await psqlScript(env, 'copy shop.nothing to stdout;'), /ERROR: {2}42501/);
});

test('COPY writes nothing and reads no file', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:ada');
  t.match(await psqlScript(env, "copy customer to '/tmp/x';"), /ERROR: {2}42501/);
  t.match(await psqlScript(env, "copy (select 1) to program 'cat';"), /ERROR: {2}42501/);
  t.match(await psqlScript(env, 'copy customer from stdin;\n1\n\\.\n'), /ERROR: {2}25006/);
});

/** PREPARE, EXECUTE and DEALLOCATE as Postgres itself answers them: each script, byte for byte. */

const PREPARED: Readonly<Record<string, string>> = {
  'types that the question says': `
prepare one as select id, region from customer where id = $1 and region = $2;
execute one(1, 'eu'); execute one('1', 'eu'); execute one(2, null); execute one(-1, 'x');
execute one; execute one(1); execute one(1, 'eu', 2); execute one('x', 'eu'); execute one(true, 'eu');
execute one(3000000000, 'eu'); execute one(99999999999999999999999, 'eu'); execute one(1.5, 'eu');
prepare one as select 1; prepare "One" as select 2 as two; execute "One"; execute One(2, 'us');
deallocate one; execute one(1, 'eu'); deallocate one; deallocate prepare "One"; execute "One"();`,
  'types that are declared': `
prepare q (int, text, unknown) as select id from customer where id > $1 and region = $2 and id < $3 order by id;
execute q(0, 'eu', 100); execute q(0.5, 'eu', '3'); execute q(0.4, 'eu', '3'); execute q('0.4', 'eu', 3);
prepare v (varchar(2), numeric, double precision, bool, timestamp with time zone) as
  select $1::text, $2, $3, $4, $5 from customer where id = 1;
execute v('abc', 1.50, 1e3, true, '2026-01-02 03:04+02'); execute v(17, -2, .5, 'yes', timestamptz '2026-01-02');
execute v('a', 1, 1, 1, null); execute v('a', 1, 1, true, 7); execute v('a', true, 1, true, null);
prepare w (nothing) as select $1; execute w(1);
prepare d (date, int[], uuid) as select id from "order" where placed_at::date >= $1 and id = any($2) and $3 is null order by id;
execute d(date '2026-01-01', '{1,2,3}', null); execute d('2026-01-01', '{1,2,3}'::int[], null); execute d('nonsense', '{}', null);
execute d('2026-01-01', '{1,x}', null); execute d('2026-01-01', 1, null);
prepare extra (int, int) as select id from customer where id = $1; execute extra(1, 2); execute extra(1);
deallocate all; execute q(0, 'eu', 100); execute extra(1, 2);`,
  'arguments that are no constants': `
prepare q (int) as select id from customer where id = $1;
execute q($1); execute q(1::int); execute q('1'::int); execute q('1'::int4); execute q(cast(2 as integer));`,
  'in blocks': `
begin; prepare q as select id from customer where id = $1; execute q(1); rollback; execute q(2);
begin; execute q('x'); execute q(1); prepare r as select 1; deallocate q; rollback; execute q(1);
begin; select nothing; execute q(1); prepare s as select 1; commit; execute s;
discard all; execute q(1);`,
  'more than a question about data': `
prepare a as select 1 as one; execute a; prepare b (int) as select $1 + 1 as more; execute b(2);
prepare c as select count(*) > 0 from pg_catalog.pg_class where relname = $1; execute c('pg_class'); execute c(null);
prepare e as values (1, 'x'), (2, 'y'); execute e; prepare f as with w as (select id from customer) select count(*) from w; execute f;
prepare g as select id from customer where id = $1
  -- the end
  ; execute g(1);
prepare "as" (int) as select $1 as "as"; execute "as"(5);
prepare h as selec 1; prepare i as select nothing from customer; execute i; execute h;
set timezone = 'Asia/Tokyo'; prepare z (timestamptz) as select $1, $1::date from customer where id = 1; execute z('2026-01-01 23:00'); set timezone = 'UTC'; execute z('2026-01-01 23:00');
\\set FETCH_COUNT 1
execute e;`,
};

for (const [name, script] of Object.entries(PREPARED)) {
  test(name, { skip }, async (t) => {
    if (both === null) return;
    const lines = script.trim().replaceAll(/; (?=\S)/g, ';\n');
    t.equal(await psqlScript(await both.gateway('user:ada'), lines), await psqlScript(both.direct, lines));
  });
}

test('what Postgres takes and the gateway refuses by name', { skip }, async (t) => {
  if (both === null) return;
  const client = await Client.login(both.port, 'user:ada', await both.shop.token('user:ada'));
  await client.ask(query('prepare q (int) as select id from customer where id = $1'));
  await client.ask(query('prepare t (text) as select id from customer where region = $1'));
  for (const refused of [
    'execute q(1 + 1)',
    'execute q((select 1))',
    "execute q('1'::bigint)",
    "execute t('eu'::varchar(1))",
    'execute t(1e3)',
    'prepare w as insert into customer (id) values (1)',
    'create temp table x as execute q(1)',
    'explain execute q(1)',
  ])
    t.match((await client.ask(query(refused)))[0], /^E .*(?:0A000|25006|42601)/, refused);
  client.end();
});

test('the names of PREPARE are those of the protocol', { skip }, async (t) => {
  if (both === null) return;
  const client = await Client.login(both.port, 'user:ada', await both.shop.token('user:ada'));
  await client.ask(query('prepare q as select id from customer where id = $1'));
  const bound = bind('', 'q', { values: ['1'] });
  t.match(await client.ask(bound, execute(), sync), ['2', /^D/, 'C SELECT 1', /^Z/]);
  t.match(await client.ask(parse('q', 'select 1'), sync), [/^E .*42P05/, /^Z/]);
  await client.ask(parse('p', 'select id from customer where id = $1'), sync);
  t.match(await client.ask(query('execute p(1)')), [/^T/, /^D/, 'C SELECT 1', /^Z/]);
  await client.ask(parse('x', 'execute p(1)'), sync);
  t.match(await client.ask(bind('', 'x'), execute(), sync), ['2', /^D/, 'C SELECT 1', /^Z/]);
  t.match(await client.ask(query('execute x')), [/^E .*0A000/, /^Z/], 'no chains');
  await client.ask(query('deallocate p'));
  await client.ask(query('prepare p as select region from customer where id = $1'));
  t.match(await client.ask(bind('', 'x'), execute(), sync), [/^E .*0A000/, /^Z/], 'it was another');
  t.match(await client.ask(query("execute p('x')")), [/^T/, /^E .*22P02/, /^Z/]);
  client.end();
});
