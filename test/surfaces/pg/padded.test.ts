import type pg from 'pg';
import tap, { test } from 'tap';
import { manifestText, policyText } from '../../support/model-text.js';
import { type Asked, asked, connectTo } from './asked.js';
import { startBoth } from './support.js';

/**
 * `char(n)` and `varchar(n)` behave as in Postgres: blanks at the end of a `char(n)` count in no comparison and are lost
 * as text, those of a `varchar(n)` count. What differs is a `char(n)` beside a `varchar(n)` (docs/osl-sql.md).
 */

tap.setTimeout(600_000);

const MANIFEST = manifestText(
  'padded',
  {
    'pad.client': `code char, segment bpchar, city text, town varchar, note text, flags bpchar[], pin character secret,
    tag bpchar shown, sign bpchar start, up bpchar`,
    'pad.visit': 'id int4, client bpchar, place varchar',
  },
  `entities:
  client:
    source: db.pad.client
    primary_key: [code]
    entity_key_columns: [code, up]
    columns: [code, segment, city, town, note, flags, pin, tag, sign, up]
  visit:
    source: db.pad.visit
    primary_key: [id]
    entity_key_columns: [id, client]
    columns: [id, client, place]
relationships:
  visitor: { from: visit.client, to: client.code, kind: many_to_one }
  led: { from: client.up, to: client.code, kind: many_to_one }
raw_sql: { allow: [db.pad.client] }
`,
);

const POLICY = policyText(
  'padded',
  {
    'user:all': 'all',
    'user:named': 'named',
    'user:own': 'own { attributes: { segment: [smb, ent] } }',
  },
  `roles:
  all:
    grants:
      - { on: client, columns: "*", unmask: [secret, shown, start] }
      - { on: visit, columns: "*" }
  named:
    grants: [{ on: client, columns: "*", rows: "segment = 'smb   '" }]
  own:
    grants: [{ on: client, columns: "*", rows: "segment = attribute('segment')" }]
masks: { secret: redact, shown: hash, start: partial }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA pad;
CREATE TABLE pad.client (code char(5) PRIMARY KEY, segment char(8), city text, town varchar(6), note text, flags char(3)[],
  pin char(6), tag char(9), sign char(4), up char(5));
CREATE TABLE pad.visit (id int4 PRIMARY KEY, client char(5), place varchar(8));
INSERT INTO pad.client VALUES
  ('a', 'smb', 'smb', 'smb', 'smb   ', '{x,yy}', '1234', 'tag', 'abc', NULL),
  ('b', 'smb', 'smb   ', 'smb   ', 'smb', '{yy}', '12', 'tag', 'a', 'a'),
  ('cc', 'ent', 'ent', 'ent', E'ent\\t', '{}', '', 'other', '', 'a'),
  ('ddd', '', '', '', '', NULL, NULL, NULL, NULL, 'cc'),
  ('e e', 'a b', 'a b', 'a b', 'a b ', '{"a b",z}', 'p', 'q', 'r', 'zz'),
  ('f', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'b'),
  ('ünïc', 'größe', 'größe', 'größe', 'größe  ', '{ö}', 'ü', 'ü', 'üx', NULL);
INSERT INTO pad.visit VALUES (1, 'a', 'a'), (2, 'a', 'a   '), (3, 'cc', 'cc'), (4, 'zz', NULL), (5, NULL, 'x');
`;

const VIEWS = `
CREATE SCHEMA entities;
CREATE VIEW entities.client AS SELECT * FROM pad.client;
CREATE VIEW entities.visit AS SELECT * FROM pad.visit;`;

const both = await startBoth({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'pad',
  views: VIEWS,
});
const skip = both === null ? 'no native Postgres to compare with' : false;
const ours = both === null ? null : await connectTo(await both.gateway('user:all'));
const theirs = both === null ? null : await connectTo(both.direct);
tap.teardown(async () => {
  await ours?.end();
  await theirs?.end();
  await both?.close();
});

async function answers(text: string, values: readonly (string | null)[] = [], types: readonly number[] = []) {
  if (ours === null || theirs === null) throw new Error('skipped');
  const asking = { text, values, types };
  const [mine, real] = await Promise.all([asked(ours, asking), asked(theirs, asking)]);
  return { mine: whole(mine), real: whole(real) };
}

function whole({ rows, error }: Asked): unknown {
  return error === null ? rows.map((r) => JSON.stringify(r)).sort() : error.code;
}

const QUESTIONS: readonly string[] = [
  "select code from client where segment = 'smb'",
  "select code from client where segment = 'smb   '",
  "select code from client where segment = 'smb            '",
  "select code from client where segment = 'smb'::text",
  "select code from client where segment = 'smb   '::text",
  "select code from client where city = 'smb'",
  "select code from client where city = 'smb   '",
  "select code from client where town = 'smb'",
  "select code from client where town = 'smb   '",
  "select code from client where town = 'smb   '::varchar(4)",
  "select code from client where town like 'smb' or town in ('ent', 'a b ')",
  'select town, count(*) from client group by town',
  'select distinct town from client union select note from client',
  "select code, length(town), octet_length(town), town || '!', concat(town, '|'), upper(town), town::varchar(2), town::char(2), town::varchar(9) || '.' from client",
  'select min(town), max(town), count(distinct town), string_agg(town, $$,$$ order by code) from client'.replaceAll(
    '$$',
    "'",
  ),
  'select code from client where town = note or town = city',
  'select code from client where segment = city',
  'select code from client where segment = note',
  'select code from client where city = note',
  "select code from client where segment in ('smb  ', 'ent')",
  "select code from client where segment not in ('smb  ', 'ent')",
  "select code from client where segment = any (array['smb ', 'zz'])",
  'select code from client where segment = any (\'{"smb  ",ent}\')',
  "select code from client where flags @> '{x}'",
  "select code from client where 'yy' = any (flags)",
  "select code from client where segment between 'a' and 'f   '",
  "select code from client where segment is distinct from 'smb'",
  "select code from client where segment like 'smb'",
  "select code from client where segment like 'smb%'",
  "select code from client where segment like 'smb     '",
  "select code from client where segment ilike 'SMB%'",
  "select code from client where segment ~ '^smb$'",
  "select code from client where segment ~ '^smb +$'",
  "select code from client where segment similar to 'smb *'",
  "select code from client where segment::text like 'smb'",
  'select segment, count(*) from client group by segment',
  'select city, count(*) from client group by city',
  'select distinct segment from client',
  'select segment from client union select city from client',
  'select segment from client intersect select note from client',
  'select segment from client except select city from client',
  'select min(segment), max(segment), min(city), max(city), count(distinct segment), count(distinct city) from client',
  'select code, length(segment), char_length(segment), octet_length(segment), bit_length(segment), length(city), octet_length(city) from client',
  "select code, segment || '!', '!' || segment, segment || city, segment || 1, 1 || segment from client",
  "select code, concat(segment, '!'), concat_ws('-', code, segment) from client",
  "select code, upper(segment), lower(segment), reverse(segment), left(segment, 5), right(segment, 2), substring(segment, 2), replace(segment, 'm', 'n'), rpad(segment, 6, '.'), position('b' in segment), md5(segment), initcap(segment), trim(segment), btrim(city) from client",
  'select code, segment::text, segment::varchar(2), segment::char(2), segment::char, segment::bpchar, city::char(4), city::varchar(2), note::char(9) from client',
  "select 'x'::char(3) = 'x'::char(5), 'x '::varchar = 'x', 'x '::text = 'x', 'x '::char(3) = 'x'::text, 'abc'::char(2), cast('abc' as char), cast(123 as char(2)), cast(123 as varchar(2)), true::char(3)",
  "select code, case when segment = 'smb' then segment else 'none' end, coalesce(segment, 'none'), nullif(segment, 'smb'), greatest(segment, 'm'), least(segment, city) from client",
  'select code, case when true then segment else city end, coalesce(segment, city) from client',
  'select code, to_json(segment)::text, jsonb_build_array(segment, city) from client'.replace(
    ', to_json(segment)::text',
    '',
  ),
  "select code, segment > 'm', segment < city, segment >= note, row_number() over (partition by segment order by code) from client",
  "select string_agg(segment, ',' order by code), array_agg(segment order by code), array_agg(city order by code) from client",
  "select code, flags, flags[1], flags[1] = 'x', flags::text, flags::text[], array[segment, 'q'], array[segment, city] from client",
  'select v.id, c.code from visit v join client c on v.client = c.code',
  'select v.id from visit v where v.client in (select code from client)',
  'select v.id, (select c.segment from client c where c.code = v.client) from visit v',
  "select code from client where code = 'e e  '",
  'select code from client order by segment, code',
  "select x from (select segment as x from client) d where x = 'smb'",
  "with t as (select segment as x from client) select x || '.' from t where x in ('ent   ')",
  "select code from client where trim(segment) = 'smb' and segment <> ''",
  "select code from client where segment = ''",
  "select segment::int from client where segment = 'a b'",
  "select ' 12  '::char(6)::int, '12'::char(4)::int + 1",
  "select sum(length(segment)) filter (where segment = 'smb  ') from client",
];

test('what is asked of padded text is answered as Postgres does', { skip }, async (t) => {
  for (const text of QUESTIONS) {
    const { mine, real } = await answers(text);
    t.same(mine, real, text);
  }
});

const OPERANDS: readonly string[] = [
  'segment',
  'city',
  'note',
  'code',
  'pin',
  "'smb'",
  "'smb   '",
  "'smb  '::char(6)",
  "'smb  '::text",
  'segment::text',
  'segment::char(2)',
  'city::char(9)',
  'city::varchar(2)::text',
  'lower(segment)',
  "segment || ''",
  'coalesce(segment, city)',
  "coalesce(segment, 'q  ')",
  'max(segment) over (partition by code)',
  'flags[1]',
];
const OPERATORS = ['=', '<>', '<', '>=', 'like', 'not ilike', '~', 'is distinct from', '||', '^@'] as const;

test('every pair of operands, under every operator', { skip }, async (t) => {
  let same = 0;
  for (const operator of OPERATORS) {
    for (const left of OPERANDS) {
      const pairs = OPERANDS.map((right) => `${left} ${operator} ${right}`);
      const { mine, real } = await answers(`select code, ${pairs.join(', ')} from client`);
      if (JSON.stringify(mine) === JSON.stringify(real) && typeof real !== 'string') {
        same += pairs.length;
        continue;
      }
      for (const pair of pairs) {
        const one = await answers(`select code, ${pair} from client`);
        t.same(one.mine, one.real, pair);
        same++;
      }
    }
  }
  t.equal(same, OPERATORS.length * OPERANDS.length ** 2);
});

/** Values of `varchar(n)`, and what they are tried beside: of what there is, all but `char(n)`. */
const VARYING = ['town', 'town::varchar(3)', "'smb   '::varchar", "cast('smbx' as varchar(3))", "town || ''"];
const BESIDE = [
  ...VARYING,
  'city',
  'note',
  "'smb'",
  "'smb   '",
  "'smb  '::text",
  'segment::text',
  'lower(city)',
];
const MADE: readonly ((of: string) => string)[] = [
  (of) => of,
  (of) => `length(${of})`,
  (of) => `octet_length(${of})`,
  (of) => `(${of})::varchar(2)`,
  (of) => `(${of})::char(4)::text`,
  (of) => `coalesce(${of}, 'none ')`,
  (of) => `case when code < 'c' then ${of} end`,
  (of) => `(array[${of}, 'q'])[1]`,
];

test('varchar(n) beside all but char(n): every pair, under every operator', { skip }, async (t) => {
  const made = VARYING.flatMap((v) => MADE.map((make) => make(v)));
  const pairs = VARYING.flatMap((v) =>
    BESIDE.flatMap((other) =>
      OPERATORS.flatMap((operator) => [`${v} ${operator} ${other}`, `${other} ${operator} ${v}`]),
    ),
  );
  for (let from = 0; from < made.length + pairs.length; from += 40) {
    const some = [...made, ...pairs].slice(from, from + 40);
    const { mine, real } = await answers(`select code, ${some.join(', ')} from client`);
    if (JSON.stringify(mine) === JSON.stringify(real) && typeof real !== 'string') continue;
    for (const one of some) {
      const each = await answers(`select code, ${one} from client`);
      t.same(each.mine, each.real, one);
    }
  }
  t.ok(pairs.length > 1_000, `${pairs.length} pairs`);
});

const OIDS = { open: 0, text: 25, bpchar: 1042 };

test('parameters, declared or not', { skip }, async (t) => {
  const texts = [
    'select code from client where segment = $1',
    'select code from client where city = $1',
    'select code from client where note = $1',
    'select code from client where segment like $1',
    'select code from client where segment in ($1, $1)',
    "select code from client where segment || '' = $1",
    'select code from client where coalesce(segment, city) = $1',
  ];
  for (const text of texts)
    for (const [name, oid] of Object.entries(OIDS))
      for (const value of ['smb', 'smb   ', '', null]) {
        const { mine, real } = await answers(text, [value], [oid]);
        t.same(mine, real, `${text}, ${name} ${value}`);
      }
  for (const [oid, text] of [
    [1014, 'select code from client where segment = any ($1)'],
    [1009, 'select code from client where segment = any ($1)'],
    [1015, 'select code from client where town = any ($1)'],
    [0, 'select code from client where segment = any ($1)'],
  ] as const) {
    const { mine, real } = await answers(text, ['{"smb   ",ent,NULL}'], [oid]);
    t.same(mine, real, `${text} of ${oid}`);
  }
});

test('the type of a column is told as it is', { skip }, async (t) => {
  if (ours === null || theirs === null) return;
  const text =
    "select code, segment, flags, min(segment) over (), coalesce(segment, 'x'), segment || 'x' from client limit 1";
  const [mine, real] = await Promise.all([ours, theirs].map((c: pg.Client) => c.query(text)));
  t.same(
    mine?.fields.map((f) => f.dataTypeID),
    real?.fields.map((f) => f.dataTypeID),
  );
});

async function codes(user: string, text: string): Promise<readonly (readonly (string | null)[])[]> {
  if (both === null) throw new Error('skipped');
  const client = await connectTo(await both.gateway(user));
  const { rows, error } = await asked(client, { text, values: [] });
  await client.end();
  return error === null ? rows : [[error.code]];
}

test('row filters compare as the column does', { skip }, async (t) => {
  const text = 'select trim(code) from client order by 1';
  t.same(await codes('user:named', text), [['a'], ['b']], 'by a literal with blanks');
  t.same(await codes('user:own', text), [['a'], ['b'], ['cc']], 'by an attribute without');
});

test('a mask has the type of its column', { skip }, async (t) => {
  const [[pin, tag, sign] = []] = await codes(
    'user:named',
    "select pin, tag, sign from client where code = 'a'",
  );
  t.same([pin, sign], ['[redacted]', 'a***']);
  t.match(tag, /^[0-9a-f]{64}$/);
  t.same(await codes('user:named', "select trim(code) from client where pin = '1234'"), []);
  t.same(await codes('user:named', "select count(*) from client where pin = '[redacted]  '"), [['2']]);
  t.same(
    await codes('user:named', 'select count(distinct tag) from client'),
    [['1']],
    'equal values hash alike',
  );
});

test('walks go by keys whose blanks do not count', { skip }, async (t) => {
  const walk = (keys: string, more = '') =>
    `select trim(code), depth from TRAVERSE(anchor => 'client', target => 'client', keys => (${keys}), direction => 'in'${more}) order by 1`;
  const all = [
    ['b', '1'],
    ['cc', '1'],
    ['ddd', '2'],
    ['f', '2'],
  ];
  for (const keys of ["'a'", "'a    '", "'a', 'a '"]) t.same(await codes('user:all', walk(keys)), all, keys);
  t.same(
    await codes('user:all', walk("'a'", '').replace("'in'", "'both'")),
    all,
    'an anchor is known again when the walk comes back to it',
  );
  t.same(
    await codes(
      'user:all',
      "select id from TRAVERSE(anchor => 'client', target => 'visit', keys => ('a  ')) order by 1",
    ),
    [['1'], ['2']],
  );
});

test('raw SQL has the same column', { skip }, async (t) => {
  if (both === null) return;
  t.same(await codes('user:all', "select trim(code) from pad.client where segment = 'smb  ' order by 1"), [
    ['a'],
    ['b'],
  ]);
});
