import t from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { startRest } from '../../surfaces/rest/fixture.js';

/** JSON as the SQL standard writes it: answered as Postgres 16 and later answer it, whichever version stands behind. */

t.setTimeout(600_000);

/** Over the samples, by their own columns. Each is cast to text, so that blanks and order count. */
const SCALARS = [
  'json_object()',
  "json_object('a': id, 'b' value words, 'c': null)",
  "json_object('a': id, 'b': words, 'c': null absent on null)",
  "json_object('a': null absent on null)",
  "json_object(coalesce(words, 'none'): id returning jsonb)",
  "json_object('d': doc, 'n': numbers, 't': texts, 'day': day, 'at': moment, 'x': exact, 'f': flag returning jsonb)",
  `json_object('j': '{"z": 1,  "y": [ ]}' format json, 's': '{"z": 1}')`,
  "json_object('a': 1, 'a': 2)",
  "json_object('k': json_array(1, json_object('in': id)))",
  'json_array()',
  'json_array(id, null, words, exact)',
  'json_array(null, null)',
  'json_array(id, null, words null on null)',
  'json_array(id, words returning jsonb)',
  `json_array('[1,  2]' format json, '[1,  2]')`,
  "json_array('quote \" and \\ and ü', day, moment, span, token, bytes)",
  'json_array(doc, numbers, real8, flag returning text)',
  'json_scalar(id)',
  'json_scalar(words)',
  'json_scalar(moment)',
  'json_scalar(null)',
  `json('{"b": 1,  "a": 2}')`,
  `json_serialize('{"b": 1,  "a": 2}')`,
  // Of a jsonb Postgres 17 serializes the bytes; here its text is.
  'json_serialize(doc::text::json returning text)',
];

const AGGREGATES = [
  'json_arrayagg(id order by id)',
  'json_arrayagg(words order by id)',
  'json_arrayagg(words order by id null on null)',
  'json_arrayagg(words order by id desc returning jsonb)',
  'json_arrayagg(id + 1 order by id) filter (where id > 1)',
  'json_arrayagg(words) filter (where words is null)',
  'json_arrayagg(words) filter (where id < 0)',
  'json_arrayagg(nullif(id, id) null on null)',
  "json_arrayagg(json_object('i': id) order by id)",
  'json_objectagg(id: words) filter (where id < 3)',
  'json_objectagg(id value words returning jsonb)',
];

const rest = await startRest({ embedded: true });
t.teardown(() => rest.close());
const { engine } = rest.test;

const plain = (values: readonly unknown[]): unknown => values.map((value) => value ?? null);

t.test('every constructor and aggregate answers what Postgres itself does', async (t) => {
  const [row] = await engine.system.query(sql`show server_version_num`);
  t.ok(Number(row?.['server_version_num']) >= 170_000, 'which knows them all');
  for (const expression of [...SCALARS, ...AGGREGATES]) {
    const order = SCALARS.includes(expression) ? ' order by id' : '';
    const text = (source: string): string => `select (${expression})::text as v from ${source}${order}`;
    const mine = await rest.ask('user:ada', { osql: text('sample') });
    const theirs = await engine.system.query(generatedSql(text('shop.samples')));
    t.equal(mine.status, 200, `${expression}: ${mine.text.slice(0, 300)}`);
    const rows = mine.json()['rows'] as readonly { v?: unknown }[] | undefined; // as every answer has them
    t.same(plain((rows ?? []).map(({ v }) => v)), plain(theirs.map(({ v }) => v)), expression);
  }
});

t.test('columns are named as Postgres names them', async (t) => {
  const osql =
    "select json_object('a': 1), json_array(1), json_scalar(1), json('1'), json_serialize('1'), json_arrayagg(id), json_objectagg(id: 1) from sample";
  const { columns } = (await rest.ask('user:ada', { osql })).json() as {
    columns: readonly { name: string }[];
  };
  t.same(
    columns.map(({ name }) => name),
    ['json_object', 'json_array', 'json_scalar', 'json', 'json_serialize', 'json_arrayagg', 'json_objectagg'],
  );
});

t.test('a masked value is masked in it, and what hidden rows hold is not', async (t) => {
  const masked = await rest.ask('user:ann', {
    osql: "select json_object('email': email)::text as v, json_array(email)::text as a from customer order by id",
  });
  t.equal(masked.status, 200, masked.text);
  t.notMatch(masked.text, /@/);
  const hidden =
    "select json_arrayagg(json(case when region = 'us' then 'no json' else '1' end))::text as v from customer";
  t.equal(
    (await rest.ask('user:eu', { osql: hidden })).status,
    200,
    'a cast that fails on hidden rows alone',
  );
  t.equal((await rest.ask('user:ada', { osql: hidden })).status >= 400, true, 'and fails for who sees them');
});
