import type { Client } from 'pg';
import tap, { test } from 'tap';
import { policyText } from '../../support/model-text.js';
import { connectTo } from './asked.js';
import { startBoth } from './support.js';

/** Enums sort, compare and refuse as Postgres', for who sees the column in the clear; for others they are texts. */

tap.setTimeout(600_000);

const LABELS = "[new, paid, shipped, done, 'it''s back']";
const MANIFEST = `
version: 1
tenant: kinds
features: { joins: any }
connectors:
  db:
    kind: pglite
    tables:
      kinds.thing:
        columns:
          id: { type: int4 }
          owner: { type: text }
          state: { type: text, stored: enum kinds.state, labels: ${LABELS} }
          before: { type: text, stored: enum kinds.state, labels: ${LABELS} }
          veiled: { type: text, stored: enum kinds.state, labels: ${LABELS}, sensitivity: secret }
entities:
  thing:
    source: db.kinds.thing
    primary_key: [id]
    columns: [id, owner, state, before, veiled]
    computed: { late: { expression: "state > 'paid'" } }
metrics:
  last_state: { type: simple, entity: thing, expression: max(state) }
`;

const POLICY = policyText(
  'kinds',
  {
    'user:all': 'all',
    'user:some': 'some',
    'user:half': 'some, half',
  },
  `roles:
  all: { grants: [{ on: thing, columns: "*", unmask: [secret] }] }
  some: { grants: [{ on: thing, columns: "*", rows: "owner = 'ann'" }] }
  half: { grants: [{ on: thing, columns: "*", rows: "owner = 'ann' and id < 5", unmask: [secret] }] }
masks: { secret: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

/** By owner: only Bob has a thing that came back. */
const ROWS = [
  [1, 'ann', 'shipped', 'paid'],
  [2, 'ann', 'new', null],
  [3, 'bob', "it's back", 'done'],
  [4, 'ann', 'done', 'shipped'],
  [5, 'bob', 'new', null],
  [6, 'ann', 'paid', 'new'],
  [7, 'ann', null, null],
  [8, 'ann', 'shipped', 'new'],
] as const;

const sql = (v: string | number | null): string =>
  v === null ? 'null' : typeof v === 'number' ? String(v) : `'${v.replaceAll("'", "''")}'`;

const SCRIPT = `
CREATE SCHEMA kinds;
CREATE TYPE kinds.state AS ENUM ('new', 'paid', 'shipped', 'done', 'it''s back');
CREATE TABLE kinds.thing (id int4 PRIMARY KEY, owner text, state kinds.state, before kinds.state, veiled kinds.state);
${ROWS.map((r) => `INSERT INTO kinds.thing VALUES (${r.map(sql).join(', ')}, ${sql(r[2])});`).join('\n')}
`;

const VIEWS = `
CREATE SCHEMA entities;
CREATE VIEW entities.thing AS SELECT *, state > 'paid' AS late FROM kinds.thing;
CREATE SCHEMA anns;
CREATE VIEW anns.thing AS
  SELECT id, owner, state, before, '[redacted]' AS veiled, state > 'paid' AS late
  FROM kinds.thing WHERE owner = 'ann';`;

const both = await startBoth({
  manifest: MANIFEST,
  policy: POLICY,
  script: SCRIPT,
  schema: 'kinds',
  views: VIEWS,
});
const skip = both === null ? 'no native Postgres to compare with' : false;
const session = async (user: string): Promise<Client | null> =>
  both === null ? null : await connectTo(await both.gateway(user));
const ours = await session('user:all');
const some = await session('user:some');
const half = await session('user:half');
const theirs = both === null ? null : await connectTo(both.direct);
tap.teardown(async () => {
  for (const client of [ours, some, half, theirs]) await client?.end();
  await both?.close();
});

async function answer(client: Client | null, text: string, values: readonly unknown[] = []) {
  try {
    const { rows } = (await client?.query({ text, values: [...values], rowMode: 'array' })) ?? { rows: [] };
    return rows as unknown;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

const QUESTIONS: readonly string[] = [
  'select id from thing order by state, id',
  'select id, state from thing order by 2 desc nulls last, 1 limit 3',
  'select state as s from thing where id < 7 order by s desc, id',
  'select distinct state from thing order by state',
  'select distinct state, before from thing order by before desc, state limit 4',
  'select distinct on (state) state, id from thing order by state desc, id desc',
  'select state, count(*) from thing group by state order by state',
  'select state, count(*) from thing group by rollup (state) order by state, 2',
  'select min(state), max(state), max(before), min(state) filter (where id > 3) from thing',
  'select owner, max(state) as m from thing group by owner order by m, owner',
  "select owner from thing group by owner having max(state) > 'shipped' order by 1",
  "select id from thing where state < 'shipped' order by id",
  "select id from thing where 'shipped' <= state order by id",
  "select id from thing where state between 'paid' and 'done' order by id",
  "select id from thing where not state >= 'done' order by id",
  'select id from thing where state > before order by id',
  "select id from thing where state in ('new', 'done') order by id",
  "select id from thing where (state, id) > ('shipped', 1) order by id",
  "select id from thing where state is distinct from 'new' order by id",
  "select id, greatest(state, before), least(state, 'paid') from thing order by id",
  'select id, rank() over (order by state) from thing order by id',
  'select id, max(state) over (partition by owner) from thing order by id',
  'select id, lag(state) over (order by state, id) from thing order by id',
  "select string_agg(state::text, ',' order by state, id) from thing",
  'select array_agg(state order by state desc, id)::text from thing where state is not null',
  'select percentile_disc(0.5) within group (order by state) from thing',
  'select state from thing where id < 3 union select before from thing order by state desc nulls last',
  'select state from thing where id < 3 union all select before from thing order by 1 limit 4',
  'with w as (select state, id from thing) select * from w order by state, id',
  "select * from (select max(state) as m, owner from thing group by owner) x where m > 'done' order by m",
  'with recursive w(s, n) as (select state, id from thing where id = 1 union all select t.state, t.id from w join thing t on t.id = w.n + 1) select * from w order by s, n',
  "with recursive w(s, n) as (select state, 1 from thing where id < 5 union all select s, n + 1 from w where s > 'new' and n < 3) select * from w where s < 'done' order by s, n",
  'with recursive w(s, n) as (select state, 1 from thing where id < 5 union select coalesce(t.state, before), n + 1 from w join thing t on t.id = w.n) select max(s) from w',
  'select array_agg(s order by s desc)::text from (select distinct state as s from thing) x',
  'select x.s from (select distinct coalesce(state, before) as s from thing) x order by x.s',
  "select case when id < 4 then state else 'new' end as s, id from thing order by s, id",
  'select id from thing order by state::text, id',
  "select id from thing where state::text < 'shipped' order by id",
  'select distinct state::text from thing order by 1',
  'select s from (select state::text as s from thing) x order by s',
  'select s::text from (select state as s from thing) x order by s::text',
  'select a.id, b.id from thing a join thing b on a.id = b.id and a.state > b.before order by a.state, a.id',
  'select id, late from thing order by late, id',
  'select id from thing where state = (select max(state) from thing) order by id',
  "select count(*) from thing where state = 'returned'",
  "select id from thing where state < 'New'",
  "select id from thing where state in ('new', 'x')",
  "select id from thing where state between 'new' and ''",
  "select id from thing where state is not distinct from ' new'",
  "select nullif(state, 'old') from thing",
  "select case state when 'old' then 1 end from thing",
  "select id from thing where (state, id) < ('old', 1)",
  "select 1 from thing group by owner having max(state) = 'old'",
];

test('labels of an enum have its order, and a literal that is none is refused', { skip }, async (t) => {
  for (const text of QUESTIONS) t.strictSame(await answer(ours, text), await answer(theirs, text), text);
  const state = ROWS.filter((r) => r[2] !== null);
  t.equal(state.length, 7);
  for (const label of ['done', 'new', 'paid']) {
    const text = 'select id from thing where state <= $1 order by state, id';
    t.strictSame(await answer(ours, text, [label]), await answer(theirs, text, [label]), label);
  }
});

test('so do those of the rows that a filter shows, and nothing tells of the others', { skip }, async (t) => {
  await theirs?.query('set search_path = anns');
  for (const text of QUESTIONS) t.strictSame(await answer(some, text), await answer(theirs, text), text);
  await theirs?.query('reset search_path');
});

test('the message is that of Postgres, with the label as it was written', { skip }, async (t) => {
  const refused = await some?.query("select id from thing where state > 'old'").catch((e: unknown) => e);
  t.match(refused, { code: '22P02', message: /invalid input value for enum state: "old"/, position: '36' });
  // The next text of the same shape is judged by itself.
  t.strictSame(await answer(some, "select id from thing where state > 'done'"), []);
  t.equal(await answer(some, "select id from thing where state > 'odd'"), '22P02');
});

test('what Postgres cannot sort by a label and by its place in the enum is refused', { skip }, async (t) => {
  for (const call of [
    'array_agg(distinct state order by state)',
    "string_agg(distinct state, ',' order by state desc)",
    'percentile_disc(array[0.25, 1]) within group (order by state)',
  ])
    t.equal(await answer(some, `select ${call} from thing`), '0A000', call);
});

test('a column that is masked in some rows is a text in all, and no label is told', { skip }, async (t) => {
  const sorted = async (client: Client | null): Promise<unknown> =>
    await answer(client, 'select id, veiled from thing where veiled is not null order by veiled, id');
  const hidden = '[redacted]';
  t.strictSame(
    await sorted(some),
    [1, 2, 4, 6, 7, 8].map((id) => [id, hidden]),
  );
  t.strictSame(await sorted(half), [
    [6, hidden],
    [7, hidden],
    [8, hidden],
    [4, 'done'],
    [2, 'new'],
    [1, 'shipped'],
  ]);
  for (const client of [some, half]) {
    t.strictSame(await answer(client, "select id from thing where veiled = 'old'"), []);
    t.strictSame(await answer(client, "select count(*) from thing where veiled > 'old'"), [
      [client === some ? '0' : '1'],
    ]);
  }
  t.equal(await answer(ours, "select id from thing where veiled = 'old'"), '22P02');
});

test('a metric that is the greatest label is the greatest in their order', { skip }, async (t) => {
  t.strictSame(await answer(ours, 'select measure(last_state) from thing'), [["it's back"]]);
  t.strictSame(await answer(some, 'select measure(last_state) from thing'), [['done']]);
});

test('an order by more labels than a statement may write out is refused before it is governed', {
  skip,
}, async (t) => {
  const compared = (n: number): string =>
    `select id from thing where ${Array(n).fill("state < 'paid'").join(' or ')}`;
  t.strictSame(
    await answer(ours, compared(1_900)),
    await answer(ours, compared(1)),
    'five labels, twice each',
  );
  t.equal(await answer(ours, compared(2_100)), '54001');
});
