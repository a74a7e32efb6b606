import { ready } from 'osl-compiler';
import { test } from 'tap';
import { Classifier, classify } from '../../../src/surfaces/catalog/classify.js';

const CATALOG = [
  `select version()`,
  `select current_user`,
  `select current_schema(), session_user`,
  `select now()`,
  `select pg_catalog.set_config('search_path', '', false)`,
  `select * from pg_class`,
  `select * from PG_CLASS c`,
  `table pg_class`,
  `values (1), (2)`,
  `select * from pg_catalog.pg_class c, pg_namespace n where n.oid = c.relnamespace`,
  `select * from osl.information_schema.tables`,
  `select * from information_schema.columns where table_name in (select relname from pg_class)`,
  `with x as (select 1) select * from x`,
  `with pg_class as (select 1 as a) select a from pg_class`,
  `with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r`,
  `with x as (select * from pg_class) select * from (with y as (select * from x) select * from y) z`,
  `select * from generate_series(1, 3) g`,
  `select * from pg_get_keywords()`,
  `select (select relname from pg_class limit 1)`,
  `select 'person'::regclass`,
  `select $1`,
  `select 1 union select oid::int from pg_class`,
  `select * from pg_class order by (select 1 from pg_namespace limit 1)`,
  `explain select * from pg_class`,
  `explain (costs off) select relname from pg_class`,
  `select * from U&"\\0070g_class"`,
  `select E'\\x41' || 'b'`,
  `select 1 where exists (select from pg_type)`,
];

const DATA = [
  `select 1`,
  `select 'x'::text, 2.5, true`,
  `select $1::int`,
  `select 1 as "one"`,
  `select * from person`,
  `select * from entities.person`,
  `select * from osl.entities.person p join osl.entities.city c on p.city_id = c.id`,
  `with x as (select * from person) select * from x`,
  `with person as (select * from person) select * from person`,
  `with recursive x as (select * from person) select * from x`,
  `select * from public.person`,
  `select * from pg_secret`,
  `select * from other.pg_catalog.pg_class`,
  `select measure(people) from person`,
  `select * from retrieve(facet => 'f', query => 'q', top_k => 3)`,
  `select * from TRAVERSE(anchor => 'a', target => 'b', keys => ('1'))`,
  `select pg_typeof(name) from person`,
  `explain select * from person`,
  `insert into pg_class values (1)`,
  `create table t (a int)`,
  `select from from`,
  `select 1; select * from pg_class`,
  `copy (select * from pg_class) to stdout`,
];

const MIXED = [
  `select * from person, pg_class`,
  `select * from person where id in (select oid::int from pg_class)`,
  `select (select count(*) from pg_class) from person`,
  `with x as (select * from pg_class) select * from x, person`,
  `with pg_class as (select * from pg_class) select * from pg_class, city`,
  `select * from person union select * from information_schema.tables`,
  `explain select * from person, pg_class`,
  `select * from retrieve(facet => 'f', query => 'q', top_k => 3) r, pg_class`,
];

const WRITES = [
  [`select * into t from pg_class`, 'SELECT INTO'],
  [`select * from pg_class for update`, 'SELECT FOR UPDATE'],
  [`select * from (select * from pg_class for share) x`, 'SELECT FOR UPDATE'],
  [`with d as (delete from pg_class returning *) select * from d`, 'DELETE'],
  [`with i as (insert into pg_class values (1) returning *) select * from i`, 'INSERT'],
  [`with u as (update pg_class set relname = '' returning *) select 1 from pg_type, u`, 'UPDATE'],
] as const;

test('who answers a statement', async (t) => {
  await ready();
  for (const text of CATALOG) t.same(classify(text), { kind: 'catalog' }, text);
  for (const text of DATA) t.same(classify(text), { kind: 'data' }, text);
  for (const text of MIXED) t.same(classify(text), { kind: 'mixed' }, text);
  for (const [text, command] of WRITES) t.same(classify(text), { kind: 'writes', command }, text);
});

/** No text here is so long that another thread would parse it. */
const never = (): Promise<never> => Promise.reject(new Error('a text was taken for a long one'));

test('the quick look never calls a catalog statement data', async (t) => {
  await ready();
  const classifier = new Classifier();
  for (const text of [...CATALOG, ...MIXED, ...WRITES.map(([w]) => w)]) {
    t.same(classifier.laneOf(text, never), classify(text), text);
    t.equal(classifier.laneOf(text, never), classifier.laneOf(text, never), 'and remembers');
  }
  for (const text of DATA) t.same(classifier.laneOf(text, never), { kind: 'data' }, text);
});

/** `?` is where a literal stands. */
const SHAPES = [
  `select * from pg_class where relname = ?`,
  `select * from pg_class where relname = ? for update`,
  `select oid, ? from information_schema.tables limit ?`,
  `select current_user, ?`,
  `select ?::text, ?`,
  `select ?::regclass`,
  `select set_config(?, ?, false)`,
  `select * from (select ? as a) x`,
  `with x as (select ? as a) select * from x where a = ?`,
  `with x as (select * from person where name = ?) select * from x`,
  `select * from generate_series(1, ?) g where g = ?`,
  `select * from person where name = ?`,
  `select name, ? as c from person where name in (?, ?)`,
  `select ?, name from person p join city c on c.name = ? where p.id = ?`,
  `select * from retrieve(facet => ?, query => ?, top_k => ?)`,
  `select * from retrieve(facet => ?, query => 'q', top_k => 3) r, pg_class`,
  `select * from person where id in (select oid::int from pg_class where relname = ?)`,
  `explain select * from pg_class where relname like ?`,
  `with d as (delete from pg_class where relname = ? returning *) select * from d`,
  `insert into pg_class values (?)`,
  `select ? from`,
  `select pg_typeof(1::float(?)) from pg_class`,
  `select interval ?, date ?, numeric(5, 2) ? from pg_class`,
];

const LITERALS = [
  ...[
    `'x'`,
    `''`,
    `'it''s'`,
    `'pg_class'`,
    `'information_schema.tables'`,
    `' from person'`,
    `'select * from ('`,
  ],
  ...[`'with'`, `'RETRIEVE('`, `'for update'`, `'é; delete from t'`, `'u&"'`],
  ...[`0`, `7`, `54`, `-1`, `2147483648`, `9223372036854775808`, `1e400`, `.5`],
];

test('texts of one shape have the lane that each has by itself, whichever came first', async (t) => {
  await ready();
  const alone = new Map<string, string>();
  for (const shape of SHAPES) {
    const texts = LITERALS.map((literal) => shape.replaceAll('?', () => literal));
    for (const text of texts) alone.set(text, JSON.stringify(classify(text)));
    const wrong: string[] = [];
    for (const first of texts) {
      const classifier = new Classifier();
      for (const text of [first, ...texts]) {
        if (JSON.stringify(classifier.laneOf(text, never)) !== alone.get(text))
          wrong.push(`${text} after ${first}`);
      }
    }
    t.same(wrong, [], shape);
  }
});

test('a text whose shape is known is not judged again, and a shape is not text', async (t) => {
  await ready();
  const classifier = new Classifier();
  const locking = (name: string) => `select * from pg_class where relname = ${name} for update`;
  const first = classifier.laneOf(locking(`'a'`), never);
  t.same(first, { kind: 'writes', command: 'SELECT FOR UPDATE' });
  t.equal(classifier.laneOf(locking(`'pg_b'`), never), first, 'the very lane of the first');
  t.not(classifier.laneOf(locking('1'), never), first, 'another class of literal is another shape');
  const shape = locking('\u0001s');
  t.same(classifier.laneOf(shape, never), classify(shape));
  t.same(classify(shape), { kind: 'data' });
});

test('what is too deep to walk is the compiler’s to refuse', async (t) => {
  await ready();
  const deep = `${'select * from ('.repeat(400)}select 1 from pg_class${') x'.repeat(400)}`;
  t.doesNotThrow(() => classify(deep));
  t.same(classify(`select ${'1 + '.repeat(4_000)}1 from pg_class`), { kind: 'data' });
});
