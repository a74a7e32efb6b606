import tap, { test } from 'tap';
import { bind, execute, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { psqlScript, startBoth } from './support.js';

/** PREPARE, EXECUTE and DEALLOCATE as Postgres itself answers them: each script, byte for byte. */

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

const SCRIPTS: Readonly<Record<string, string>> = {
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

for (const [name, script] of Object.entries(SCRIPTS)) {
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
