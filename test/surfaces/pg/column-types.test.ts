import type { Client } from 'pg';
import tap, { test } from 'tap';
import { manifestText, policyText } from '../../support/model-text.js';
import { startTestService } from '../../support/service.js';
import { connectTo } from './asked.js';
import { servePg, startBoth } from './support.js';

/** Types of columns as clients are told of them, against a real Postgres with the same tables: descriptions and bytes. */

tap.setTimeout(600_000);

const COLUMNS: readonly (readonly [
  name: string,
  type: string,
  declared: string,
  values: readonly string[],
])[] = [
  ['code', 'char(4)', 'char(4)', ['ab', 'abc']],
  ['name', 'varchar(20)', 'varchar(20)', ['Ann', 'Bob  ']],
  ['word', 'varchar', 'varchar', ['x', 'y']],
  ['amount', 'numeric(12,2)', 'numeric(12,2)', ['1234.50', '-0.07']],
  ['coarse', 'numeric(4)', 'decimal(4)', ['1234', '-7']],
  ['wide', 'kinds.money_like', 'numeric(20,6)', ['1.5', '2']],
  ['any_number', 'numeric', 'numeric', ['1.50', 'NaN']],
  ['at', 'timestamp(3)', 'timestamp(3)', ['2026-01-02 03:04:05.678', '2026-01-02 03:04:05']],
  [
    'zoned',
    'timestamptz(0)',
    'timestamp(0) with time zone',
    ['2026-01-02 03:04:05+00', '2026-01-02 03:04:06+00'],
  ],
  ['clock', 'time(1)', 'time(1)', ['03:04:05.6', '03:04:05']],
  ['span', 'interval(2)', 'interval(2)', ['1 day 00:00:01.25', '2 days']],
  ['names', 'varchar(9)[]', 'varchar(9)[]', ['{a,"b c"}', '{}']],
  ['sums', 'numeric(6,3)[]', 'numeric(6,3)[]', ['{1.5,NULL}', '{}']],
  ['host', 'inet', 'inet', ['10.0.0.10', '10.0.0.9/24']],
  ['net', 'cidr', 'cidr', ['10.0.0.0/8', '2001:db8::/32']],
  ['mac', 'macaddr', 'macaddr', ['08:00:2b:01:02:03', '08-00-2b-01-02-04']],
  ['mac8', 'macaddr8', 'macaddr8', ['08:00:2b:01:02:03:04:05', '08:00:2b:01:02:03:04:06']],
  ['price', 'money', 'money', ['$1,234.50', '$9.00']],
  ['zone', 'timetz', 'timetz', ['03:04:05+02', '02:00:00-05']],
  ['seats', 'int4range', 'int4range', ['[10,20)', '[9,12]']],
  ['sizes', 'numrange', 'numrange', ['[10,20)', '[9.5,100]']],
  ['days', 'daterange', 'daterange', ['[2026-01-01,2026-02-01)', '(,2026-01-15)']],
  ['during', 'tstzrange', 'tstzrange', ['["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")', 'empty']],
  ['free', 'int8multirange', 'int8multirange', ['{[1,5),[7,9)}', '{}']],
  ['words', 'tsvector', 'tsvector', ["'cat':1 'dog':2", "'bird':1A"]],
  ['flags', 'bit(4)', 'bit(4)', ['0101', '1000']],
  ['mask', 'varbit(9)', 'varbit(9)', ['101', '']],
  ['bits', 'varbit', 'bit varying', ['1', '10000']],
  ['flagged', 'bit(2)[]', 'bit(2)[]', ['{01,NULL}', '{}']],
  ['hosts', 'inet[]', 'inet[]', ['{10.0.0.1,NULL}', '{}']],
  ['slots', 'int4range[]', 'int4range[]', ['{"[1,5)"}', '{}']],
  ['hidden', 'varchar(5)', 'varchar(5)', ['abc', 'def']],
];

const NAMES = COLUMNS.map(([name]) => name);

/** Enums stand beside these: the wire tells of them as text, which their values are here. */
const ENUM_COLUMNS = `          mood: { type: text, stored: enum kinds.mood, labels: [so so, good, 'it''s bad'] }
          state: { type: text, stored: 'enum kinds."Switch"', labels: [on, off] }
          plain: { type: text, stored: enum kinds.mood }
          veiled: { type: text, stored: enum kinds.veil, labels: [mars, venus], sensitivity: secret }`;

const MANIFEST = manifestText(
  'kinds',
  {
    'kinds.thing': 'id int4',
  },
  `${COLUMNS.map(([name, , declared]) => `          ${name}: { type: '${declared}'${name === 'hidden' ? ', sensitivity: secret' : ''} }`).join('\n')}
${ENUM_COLUMNS}
entities:
  thing: { source: db.kinds.thing, primary_key: [id], columns: [id, ${NAMES.join(', ')}] }
  feeling: { source: db.kinds.thing, primary_key: [id], columns: [id, mood, state, plain, veiled] }
`,
);

const POLICY = policyText(
  'kinds',
  {
    'user:all': 'all',
    'user:some': 'some',
  },
  `roles:
  all: { grants: [{ on: thing, columns: "*", unmask: [secret] }, { on: feeling, columns: "*", unmask: [secret] }] }
  some: { grants: [{ on: thing, columns: "*" }, { on: feeling, columns: "*" }] }
masks: { secret: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA kinds;
CREATE DOMAIN kinds.money_like AS numeric(20,6) CHECK (VALUE > 0);
CREATE TYPE kinds.mood AS ENUM ('so so', 'good', 'it''s bad');
CREATE TYPE kinds.veil AS ENUM ('mars', 'venus');
CREATE TYPE kinds."Switch" AS ENUM ('on', 'off');
CREATE TABLE kinds.thing (id int4 PRIMARY KEY, ${COLUMNS.map(([name, type]) => `${name} ${type}`).join(', ')},
  mood kinds.mood DEFAULT 'good', state kinds."Switch" DEFAULT 'on', plain kinds.mood, veiled kinds.veil DEFAULT 'venus');
${[0, 1].map((i) => `INSERT INTO kinds.thing VALUES (${i}, ${COLUMNS.map(([, , , values]) => `'${(values[i] ?? '').replaceAll("'", "''")}'`).join(', ')});`).join('\n')}
INSERT INTO kinds.thing (id) VALUES (2);
`;

/** Of a domain Postgres tells the base type in a row's description, without its modifier; here it is the column's own. */
const VIEWS = `
CREATE SCHEMA entities;
CREATE VIEW entities.thing AS
  SELECT id, ${COLUMNS.map(([name, type]) => (type.includes('.money_like') ? `${name}::numeric(20,6)` : name)).join(', ')}
  FROM kinds.thing;`;

const both = await startBoth({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'kinds',
  views: VIEWS,
});
const skip = both === null ? 'no native Postgres to compare with' : false;
const ours = both === null ? null : await connectTo(await both.gateway('user:all'));
const some = both === null ? null : await connectTo(await both.gateway('user:some'));
const theirs = both === null ? null : await connectTo(both.direct);
tap.teardown(async () => {
  for (const client of [ours, some, theirs]) await client?.end();
  await both?.close();
});

/** How the columns of an answer are described, and the bytes of its values. */
async function told(client: Client | null, text: string, binary: boolean) {
  if (client === null) throw new Error('skipped');
  const { fields, rows } = await client.query({
    text,
    rowMode: 'array',
    ...(binary && { binary, queryMode: 'extended' }),
    types: { getTypeParser: () => (value: Buffer | string) => value.toString('hex') },
  } as never);
  return {
    columns: (fields as unknown as Record<string, unknown>[]).map((f) =>
      ['name', 'dataTypeID', 'dataTypeSize', 'dataTypeModifier', 'format'].map((k) => f[k]).join(' '),
    ),
    rows: rows as unknown,
  };
}

const SAME: readonly string[] = [
  `select ${NAMES.join(', ')} from thing order by id`,
  'select * from thing order by id',
  'select t.name as n, t.amount from (select name, amount, id from thing) t order by t.id',
  'with w as (select * from thing) select w.name, w.at, u.code from w join thing u on u.id = w.id order by w.id',
  'select distinct amount from thing order by amount',
  'select name, count(*) from thing group by name order by name',
];

test('a column that goes out as it is, is described as it is stored', { skip }, async (t) => {
  for (const text of SAME) {
    for (const binary of [false, true]) {
      t.strictSame(await told(ours, text, binary), await told(theirs, text, binary), `${text}, ${binary}`);
    }
  }
});

test('what is computed has the precision that Postgres says, what is masked its type alone', {
  skip,
}, async (t) => {
  const computed = await told(
    ours,
    'select upper(name), amount + 1, coalesce(at, at), name from thing union all select name, 1, at, null from thing',
    false,
  );
  t.strictSame(
    computed.columns.map((c) => c.split(' ').slice(1, 4).join(' ')),
    ['25 -1 -1', '1700 -1 -1', '1114 8 3', '25 -1 -1'],
  );
  const masked = await told(some, 'select hidden, name from thing order by id', false);
  t.strictSame(masked.columns, ['hidden 25 -1 -1 text', 'name 1043 -1 24 text']);
});

/** Each is asked as it stands of both. */
const QUESTIONS: readonly string[] = [
  ...[
    'host',
    'net',
    'mac',
    'mac8',
    'price',
    'zone',
    'seats',
    'sizes',
    'days',
    'during',
    'free',
    'words',
    'flags',
    'mask',
    'bits',
    'flagged',
    'hosts',
  ].flatMap((name) => [
    `select id from thing order by ${name}, id`,
    `select id from thing order by ${name} desc, id`,
    `select id, ${name} >= (select b.${name} from thing b where b.id = 1) from thing order by id`,
    `select ${name}, count(*) from thing group by ${name} order by ${name}`,
    `select id, ${name}::text, ${name} is null, coalesce(${name}, ${name}) from thing order by id`,
    `select count(distinct ${name}) from thing`,
  ]),
  "select id from thing where host = '10.0.0.10/32' or mac = '0800.2b01.0204' order by id",
  "select id from thing where host <<= '10.0.0.0/8' and net >>= host order by id",
  "select id, host << net, net && '10.1.0.0/16', host(host), masklen(host), network(host), family(net), host - '10.0.0.1' from thing order by id",
  'select max(host), min(price), max(zone), sum(price) from thing',
  "select id, price > '$100', price * 2, price / 4, price + price, price::numeric from thing order by id",
  "select id, zone > '03:00+00', zone::time, zone + interval '1 hour' from thing order by id",
  "select id, seats @> 11, seats && '[19,30)', lower(seats), upper(sizes), isempty(during), seats * '[11,12)', 9 <@ seats, seats -|- '[20,30)' from thing order by id",
  "select id from thing where days @> date '2026-01-10' and not during @> timestamptz '2027-01-01' order by id",
  "select id, free @> 8::int8, lower(free), free + '{[5,6)}', upper_inf(days) from thing order by id",
  "select id from thing where words @@ websearch_to_tsquery('cat -bird') order by id",
  "select id, words @@ plainto_tsquery('dog'), words || words from thing order by id",
  "select id from thing where to_tsvector('english'::regconfig, name) @@ plainto_tsquery('pg_catalog.english'::regconfig, 'Anns') order by id",
  "select id, to_tsvector('english', name || ' runs')::text, to_tsvector('pg_catalog.simple', name) from thing order by id",
  "select id, ts_rank(words, websearch_to_tsquery('english', 'cats or birds')), ts_rank_cd(words, plainto_tsquery('dog'), 2) from thing order by 2 desc, id",
  "select id, ts_headline('english', name || ' sees cats', to_tsquery('English', 'cat & !dog')) from thing order by id",
  "select ts_headline(name, plainto_tsquery('simple', 'Ann'), 'StartSel=<, StopSel=>') from thing where id = 0",
  "select id from thing where words @@ phraseto_tsquery('english', 'a cat') order by id",
  "select id, length(words), strip(words), numnode(plainto_tsquery('english', 'the cats run')), querytree('cat & !dog'::tsquery) from thing order by id",
  "select id from thing where words @@ to_tsquery('english', '(')",
  "select ts_headline('english', name, 'cat'::tsquery, 'Nope=1') from thing",
  "select id from thing where host = any ('{10.0.0.10,10.0.0.9/24}') or net in ('10.0.0.0/8') order by id",
  "select host from thing where host = 'no address'",
  "select seats from thing where seats @> 'x'",
  'select host < seats from thing',
  "select id from thing where flags = '0101' or mask > B'1' or bits <> X'F' order by id",
  "select id from thing where mask in ('101', '1') or flags = any ('{1000}') order by id",
  'select id from thing where flags > (select min(b.flags::text)::varbit from thing b) order by id',
  "select flags from thing where flags = '012'",
  'select flags + 1 from thing',
  'select flags = name from thing',
  `select 'abc'::"char", ''::"char", null::"char", cast('r' as "char") = 'r' from thing`,
  "select id from thing where hosts @> array[inet '10.0.0.1'] order by id",
];

test('types that are no numbers and no text are compared, sorted and looked into as Postgres does', {
  skip,
}, async (t) => {
  const answer = async (client: Client | null, text: string) => {
    try {
      return (await told(client, text, false)).rows;
    } catch (error) {
      return (error as { code?: string }).code;
    }
  };
  for (const text of QUESTIONS) t.strictSame(await answer(ours, text), await answer(theirs, text), text);
  for (const text of [
    `select name::"char" from thing`,
    `select 'é'::"char" from thing`,
    `select array['a']::"char"[] from thing`,
  ])
    t.match(await answer(ours, text), /^(0A000|42704)$/, text);
});

const CATALOG: readonly string[] = [
  `select attname, format_type(atttypid, atttypmod) from pg_attribute
   where attrelid = 'thing'::regclass and attnum > 0 order by attnum`,
  `select column_name, data_type, udt_name, character_maximum_length, numeric_precision, numeric_scale,
     datetime_precision from information_schema.columns where table_name = 'thing' and table_schema = 'entities'
   order by ordinal_position`,
];

test('the catalog says what the column is stored as, to who sees it unmasked', { skip }, async (t) => {
  for (const text of CATALOG) {
    t.strictSame((await told(ours, text, false)).rows, (await told(theirs, text, false)).rows, text);
  }
  const { rows = [] } = (await some?.query(CATALOG[0] ?? '')) ?? {};
  t.strictSame(rows.slice(-1), [{ attname: 'hidden', format_type: 'text' }]);
});

const LABELS = `select t.typname, n.nspname, e.enumlabel from pg_enum e join pg_type t on t.oid = e.enumtypid
  join pg_namespace n on n.oid = t.typnamespace order by t.typname, e.enumsortorder`;
const TYPES = `select attname, format_type(atttypid, atttypmod) as type from pg_attribute
  where attrelid = 'feeling'::regclass and attnum > 0 order by attnum`;

test('an enum and its labels are in the catalog of who sees a column of it unmasked', { skip }, async (t) => {
  const rowsOf = async (client: Client | null, text: string): Promise<unknown> =>
    ((await client?.query({ text, rowMode: 'array' })) ?? { rows: [] }).rows;
  const shown = [
    ['Switch', 'entities', 'on'],
    ['Switch', 'entities', 'off'],
    ['mood', 'entities', 'so so'],
    ['mood', 'entities', 'good'],
    ['mood', 'entities', "it's bad"],
  ];
  const veiled = [
    ['veil', 'entities', 'mars'],
    ['veil', 'entities', 'venus'],
  ];
  t.strictSame(await rowsOf(ours, LABELS), [...shown, ...veiled]);
  t.strictSame(await rowsOf(some, LABELS), shown);
  const typed = (secret: string) => [
    ['id', 'integer'],
    ['mood', 'mood'],
    ['state', '"Switch"'],
    ['plain', 'text'],
    ['veiled', secret],
  ];
  t.strictSame(await rowsOf(ours, TYPES), typed('veil'));
  t.strictSame(await rowsOf(some, TYPES), typed('text'));
  const hidden = `select count(*) from pg_type where typname like '%veil%' or typname like '%mars%'`;
  t.strictSame(await rowsOf(some, hidden), [['0']]);
  t.strictSame((await told(ours, 'select mood, veiled from feeling where id = 1', true)).columns, [
    'mood 25 -1 -1 binary',
    'veiled 25 -1 -1 binary',
  ]);
  t.strictSame(await rowsOf(some, "select mood, veiled from feeling where mood = 'good' and id = 1"), [
    ['good', '[redacted]'],
  ]);
});

/** Types that the gateway knows nothing of: one of an extension, which the embedded engine has, and a range of somebody's. */
test('values of types that nobody here knows are read as their text', async (t) => {
  const tables = `
      odd.thing:
        columns:
          id: { type: int4 }
          near: { type: text, stored: public.vector }
          span: { type: text, stored: odd.floats }
          secret: { type: text, stored: odd.floats, sensitivity: secret }`;
  const shop = await startTestService({
    embedded: true,
    schema: 'odd',
    manifest: `
version: 1
tenant: kinds
connectors:
  db:
    kind: pglite
    tables:${tables}
entities:
  thing: { source: db.odd.thing, primary_key: [id], columns: [id, near, span, secret] }
`,
    policy: POLICY.replace(', { on: feeling, columns: "*", unmask: [secret] }', '').replace(
      ', { on: feeling, columns: "*" }',
      '',
    ),
    script: `
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA odd;
CREATE TYPE odd.floats AS RANGE (subtype = float8);
CREATE TABLE odd.thing (id int4 PRIMARY KEY, near vector(2), span odd.floats, secret odd.floats);
INSERT INTO odd.thing VALUES (1, '[1,2.5]', '[0.5,2)', '[3,4)'), (2, '[9,9]', 'empty', NULL), (3, NULL, NULL, NULL);`,
  });
  const served = await servePg(t, shop);
  const client = await served.connect('user:all');
  t.teardown(() => client.end());
  const rows = async (text: string): Promise<unknown> =>
    (await client.query({ text, rowMode: 'array' })).rows;
  t.strictSame(await rows('select id, near, span, secret from thing order by id'), [
    [1, '[1,2.5]', '[0.5,2)', '[3,4)'],
    [2, '[9,9]', 'empty', null],
    [3, null, null, null],
  ]);
  t.strictSame(await rows("select id from thing where near = '[1,2.5]' or span = 'empty' order by near"), [
    [1],
    [2],
  ]);
  const masked = await served.connect('user:some');
  t.teardown(() => masked.end());
  const { rows: shown } = await masked.query({
    text: 'select near, secret from thing where id = 1',
    rowMode: 'array',
  });
  t.strictSame(shown, [['[1,2.5]', '[redacted]']]);
});
