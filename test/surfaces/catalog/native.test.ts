import type { Client } from 'pg';
import tap, { type Test, test } from 'tap';
import { startNativePostgres } from '../../support/native-postgres.js';
import { referenceClient } from './support/reference.js';
import { openBase, openWorld, outcome, type World } from './support/world.js';

const base = await openBase();
tap.teardown(() => base.close());

/** What BI tools ask, as far as Postgres 15 and the engine can agree about it: about the caller's own schema. */
const QUESTIONS: readonly string[] = [
  `select table_schema, table_name, table_type from information_schema.tables where table_schema = 'entities' order by 1, 2`,
  `select * from information_schema.columns where table_schema = 'entities' order by table_name, ordinal_position`,
  `select constraint_name, table_name, constraint_type, is_deferrable from information_schema.table_constraints
   where table_schema = 'entities' and constraint_type <> 'CHECK' order by 1, 2`,
  `select * from information_schema.key_column_usage where table_schema = 'entities' order by constraint_name, ordinal_position`,
  `select * from information_schema.referential_constraints where constraint_schema = 'entities' order by constraint_name`,
  `select * from information_schema.constraint_column_usage where table_schema = 'entities' order by 1, 2, 3, 4, 5, 6, 7`,
  `SELECT DISTINCT kcu.table_name, kcu.column_name, rcu.table_name AS ref, rcu.column_name AS ref_column
   FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS rc
   JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE kcu ON kcu.constraint_name = rc.constraint_name
   JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE rcu ON rcu.constraint_name = rc.unique_constraint_name
   ORDER BY 1, 2, 3, 4`,
  `select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(c.oid, a.attnum)
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
   where c.relnamespace = 'entities'::regnamespace and c.relkind = 'r' order by 1, a.attnum`,
  `select relname, relkind, relnatts, relhasindex, relpersistence, obj_description(oid, 'pg_class') from pg_class
   where relnamespace = 'entities'::regnamespace order by 1`,
  `select conname, contype, conrelid::regclass, confrelid::regclass, conkey, confkey, pg_get_constraintdef(oid, true)
   from pg_constraint where connamespace = 'entities'::regnamespace order by 1`,
  `select (information_schema._pg_expandarray(i.indkey)).n, i.indrelid::regclass, i.indisprimary,
          pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indrelid
   where c.relnamespace = 'entities'::regnamespace order by 2, 1`,
  `select con.conname, a.attname from pg_constraint con, pg_attribute a, generate_series(1, 32) pos(n)
   where a.attrelid = con.confrelid and a.attnum = con.confkey[pos.n] order by 1, 2`,
  `select schemaname, tablename, hasindexes, hasrules, hastriggers from pg_tables where schemaname = 'entities' order by 2`,
  `select t.typname, t.typtype, t.typcategory, t.typlen, e.typname as element from pg_type t
   left join pg_type e on e.oid = t.typelem where t.typnamespace = 'entities'::regnamespace order by 1`,
  `select oid, typname, typlen, typtype, typdelim, typelem, typarray, typinput::text from pg_type
   where oid in (16, 17, 20, 21, 23, 25, 114, 700, 701, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802, 1009) order by 1`,
  `select current_database() is not null, current_schema(), current_schemas(false)`,
  `select has_table_privilege('person', 'select'), has_table_privilege('person', 'insert'),
          has_table_privilege('person', 'delete'), has_schema_privilege('entities', 'usage'),
          has_any_column_privilege('person', 'select')`,
  `select 'person'::regclass, 'person'::regclass::text, to_regclass('no_such'), format('%I.%I', 'entities', 'city')::regclass`,
  `select pg_typeof(1), pg_typeof('a'::name), 1 + 1.5, 'a' || 1, array[1, 2], row(1, 'a'), now() is not null`,
  `select null::person, (null::person).name`,
  `select * from no_such_relation_in_pg where pg_typeof(1) = 1`.replace(
    'no_such_relation_in_pg',
    'pg_catalog.pg_no_such',
  ),
  `select no_such_function(1)`,
  `select 1/0`,
  `select 'x'::int from pg_am`,
  `select lower(1, 2)`,
  `select * from generate_series(1, 3) with ordinality as g(a, b)`,
  `select n.nspname from pg_namespace n where n.nspname !~ '^pg_' and nspname not in ('information_schema', 'public') order by 1`,
  `select count(*) > 0 from pg_catalog.pg_settings where name = 'max_index_keys' and setting = '32'`,
  `select c.oid::regclass, pg_total_relation_size(c.oid) >= 0 from pg_class c where c.relname = 'person'`,
  `select schemaname, n_live_tup from pg_stat_user_tables where relname = 'no_such'`,
  `select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
   where i.indrelid = 'visit'::regclass and i.indisprimary order by 1`,
  `select attname, atttypid::regtype from pg_attribute where attrelid = 'pg_attribute'::regclass and attnum > 0
   order by attnum`,
  `select table_name, constraint_type, count(*) from information_schema.table_constraints
   where table_schema = 'entities' group by 1, 2 order by 1, 2`,
  `select check_clause from information_schema.check_constraints where constraint_schema = 'entities' order by 1`,
  `select conname, contype, condeferrable, condeferred, convalidated, contypid, conparentid, confupdtype, confdeltype,
     confmatchtype, conislocal, connoinherit, conkey, confkey, conpfeqop, conexclop, conbin
   from pg_constraint where connamespace = 'entities'::regnamespace order by conname`,
  `select conrelid::regclass, confrelid::regclass, obj_description(oid, 'pg_constraint'), obj_description(oid)
   from pg_constraint where connamespace = 'entities'::regnamespace and contype = 'f' order by 1, 2, 3`,
  `select contype, count(*) from pg_constraint where connamespace = 'entities'::regnamespace group by 1 order by 1`,
  `select a.* from (select attname, attndims, attstattarget, attcacheoff, attinhcount, attnotnull, attmissingval
     from pg_attribute where attrelid = 'person'::regclass and attnum > 0 order by attnum) a`,
  `select c.relname COLLATE pg_catalog.default from pg_catalog.pg_class c
   where c.relname OPERATOR(pg_catalog.~) '^(person)$' COLLATE pg_catalog.default and pg_catalog.pg_table_is_visible(c.oid)`,
];

/** A gateway, and a client of a real Postgres with the same tables; null, with a plan, where there is no native server. */
async function bothSides(t: Test): Promise<{ world: World; real: Client } | null> {
  const native = await startNativePostgres();
  if (native === null) {
    t.plan(0, 'there is no native Postgres on this machine');
    return null;
  }
  t.teardown(() => native.stop());
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const real = await referenceClient(native.url, world.service);
  t.teardown(() => real.end());
  return { world, real };
}

test('what a session keeps is listed as by Postgres, and to no other session', async (t) => {
  const sides = await bothSides(t);
  if (sides === null) return;
  const { world, real } = sides;
  const [clerk, other] = await Promise.all([world.connect('clerk'), world.connect('clerk')]);
  const both = async (text: string): Promise<void> => {
    t.equal(await outcome(clerk, text), await outcome(real, text), text);
  };
  const statements = `select name, statement, parameter_types, from_sql
    from pg_prepared_statements where prepare_time > now() - interval '1 hour' order by name`;
  const cursors = `select name, statement, is_holdable, is_binary, is_scrollable from pg_catalog.pg_cursors
    where creation_time > now() - interval '1 hour' and statement like 'declare%' order by name`;
  await both(statements);
  await both(cursors);
  await both(
    'prepare "by Name" (text, int4) as select relname from pg_class where relname = $1 and relnatts = $2',
  );
  for (const client of [clerk, real])
    await client.query({ name: 'p1', text: 'select $1::int8 as n', values: [1] });
  await both('begin');
  await both('declare c no scroll cursor for select relname from pg_class');
  await both('declare "D" binary scroll cursor with hold for select 1');
  await both(statements);
  await both(cursors);
  await both('fetch 1 from "D"');
  for (const view of ['pg_prepared_statements', 'pg_cursors'])
    t.match(await outcome(other, `select count(*) from ${view}`), '["0"]', `${view} of another session`);
  await both('close c');
  await both('commit');
  await both('deallocate "by Name"');
  await both(statements);
  await both(cursors);
  await both('discard all');
  await both(statements);
  await both(cursors);
  const collation = await outcome(clerk, 'select datcollate, datctype from pg_database');
  const [[, [shown]]] = [JSON.parse(collation)] as const;
  for (const [i, name] of ['lc_collate', 'lc_ctype'].entries()) {
    t.match(await outcome(clerk, `show ${name}`), JSON.stringify([shown[i]]), name);
    t.match(await outcome(clerk, `select current_setting('${name}')`), JSON.stringify([shown[i]]), name);
    await both(`set ${name} = 'C'`);
  }
});

test('the catalog answers as a real Postgres with the same tables', async (t) => {
  const sides = await bothSides(t);
  if (sides === null) return;
  const { world, real } = sides;
  const clerk = await world.connect('clerk');
  t.strictSame(
    (
      await clerk.query(
        "select obj_description(oid, 'pg_constraint') as told from pg_constraint where contype = 'f'",
      )
    ).rows.filter(({ told }) => told !== null),
    [{ told: `Where O'Brien lives; "at 100 %" \\ too.` }],
    'of the links both of whose ends the clerk sees',
  );
  for (const question of QUESTIONS) {
    for (const values of [undefined, []]) {
      const same = (answer: string): string =>
        answer
          .replace(/"(postgres|osl_test_[0-9a-f]+)"/g, '"osl"')
          .replace(/\d{5,}/g, (oid) => (Number(oid) > 16_000 ? '#' : oid));
      t.equal(
        same(await outcome(clerk, question, values)),
        same(await outcome(real, question, values)),
        question,
      );
    }
  }
});
