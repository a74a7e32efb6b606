import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { type Asker, type Caller, startFrontends } from '../../support/frontends.js';
import { manifestText, policyText } from '../../support/model-text.js';
import { startTestService } from '../../support/service.js';

/** A row filter, a mask or a minimum does not depend on the time zone that the caller chooses. */
t.setTimeout(600_000);

const MANIFEST = manifestText(
  'demo',
  {
    'shop.news': `id int4, out_at timestamptz not null, day date not null, title text pii, born_at timestamptz birth`,
  },
  `entities:
  news:
    source: db.shop.news
    primary_key: [id]
    columns: [id, out_at, day, title, born_at]
metrics:
  old: { entity: news, expression: count(*), filter: out_at::date < current_date }
`,
);

const POLICY = policyText(
  'demo',
  {
    'user:today': 'today',
    'user:past': 'past',
    'user:literal': 'literal',
    'user:cells': 'cells, masked',
    'user:counts': 'counts',
    'user:metric': 'metric',
  },
  `roles:
  today: { grants: [{ on: news, columns: "*", rows: out_at::date <= current_date }] }
  past: { grants: [{ on: news, columns: "*", rows: "day < now() and extract(hour from out_at) < 18" }] }
  literal: { grants: [{ on: news, columns: "*", rows: "out_at < '2026-03-01 12:00'" }] }
  cells: { grants: [{ on: news, columns: "*", unmask: [pii], rows: "out_at < date_trunc('day', now())" }] }
  masked: { grants: [{ on: news, columns: [id, title, born_at] }] }
  counts: { grants: [{ on: news, columns: "*", rows: out_at::date <= current_date, min_group_size: 5 }] }
  metric: { grants: [{ on: news, columns: [id], metrics: [old], min_group_size: 5 }] }
masks: { pii: redact, birth: year }
limits: { query: 100000, catalog: 100000 }
`,
);

/** An hour apart, from two days ago to the day after tomorrow; and around the instant of the literal. */
const SCRIPT = `
create schema shop;
create table shop.news (id int4 primary key, out_at timestamptz not null, day date not null, title text, born_at timestamptz);
insert into shop.news select n, now() + (n - 50) * interval '1 hour', (now() + (n - 50) * interval '1 hour')::date,
  'SECRET-' || n, timestamptz '2025-12-31 06:00+00' + n * interval '15 minutes' from generate_series(1, 100) n;
insert into shop.news select 100 + n, timestamptz '2026-03-01 12:00+00' + (n - 20) * interval '1 hour', '2026-03-01',
  'SECRET-' || n, null from generate_series(1, 40) n`;

const test = await startTestService({ manifest: MANIFEST, policy: POLICY, script: SCRIPT });
const fronts = await startFrontends(test.open);
t.teardown(async () => {
  await fronts.stop();
  await test.close();
});

/** Questions of each caller; none of them shows a time, which would rightly look different. */
const QUESTIONS: readonly (readonly [subject: string, text: string])[] = [
  ['user:today', 'select id from news order by id'],
  ['user:today', 'select count(*) from news n join news m on n.id = m.id'],
  ['user:past', 'select id from news order by id'],
  ['user:literal', 'select id from news order by id'],
  ['user:cells', 'select id, title from news order by id'],
  ['user:cells', 'select id, extract(epoch from born_at) from news where id <= 100 order by id'],
  ['user:cells', "select count(*) from news where title like 'SECRET%'"],
  ['user:counts', 'select count(*) from news'],
  ['user:metric', 'select measure(old) from news'],
];

function callerOf(subject: string): Caller {
  return { subject, aclRoles: ['today', 'past', 'literal', 'cells', 'masked', 'counts', 'metric'] };
}

const CLOCKS = [
  "set timezone = 'Pacific/Kiritimati'",
  "set timezone = 'Etc/GMT+12'",
  'set time zone 167',
  'set time zone -167',
  "set timezone = 'America/New_York'",
  "set datestyle = 'SQL, DMY'",
  "set datestyle = 'German'",
  'set intervalstyle = sql_standard',
];

async function answers(asker: Asker, subject: string): Promise<string[]> {
  const said = [];
  for (const [whose, text] of QUESTIONS) {
    if (whose !== subject) continue;
    const { outcome } = await asker.ask(text);
    said.push(
      outcome.kind === 'rows'
        ? `${outcome.rows.length} ${JSON.stringify(outcome.rows)}`
        : JSON.stringify(outcome),
    );
  }
  return said;
}

for (const surface of ['simple wire', 'extended wire'] as const) {
  t.test(`18. the clock of the caller moves no policy: ${surface}`, async (t) => {
    for (const subject of new Set(QUESTIONS.map(([s]) => s))) {
      const plain = await fronts.asker(surface, callerOf(subject));
      t.teardown(() => plain.end());
      const before = await answers(plain, subject);
      t.notOk(
        before.some((b) => b.includes('refused')),
        `${subject}: ${before.map((b) => b.slice(0, 200)).join('; ')}`,
      );
      const asker = await fronts.asker(surface, callerOf(subject));
      t.teardown(() => asker.end());
      for (const clock of CLOCKS) {
        t.match((await asker.ask(clock)).outcome, { kind: 'rows' }, clock);
        t.strictSame(await answers(asker, subject), before, `${subject}: ${clock}`);
      }
      await asker.ask('begin'); // DateStyle is German by now
      await asker.ask("set local timezone = 'Pacific/Kiritimati'");
      t.strictSame(await answers(asker, subject), before, 'nor does SET LOCAL');
      t.match((await asker.ask("select timestamptz '2026-01-01 00:00+00'::text")).outcome, {
        rows: [['01.01.2026 14:00:00 +14']],
      });
      await asker.ask('rollback');
    }
  });
}

t.test('18. the filters do stand on a clock: that of UTC', async (t) => {
  const asker = await fronts.asker('simple wire', callerOf('user:today'));
  t.teardown(() => asker.end());
  const hidden = await test.engine.system.query(
    sql`select count(*)::int as n, count(*) filter (where (out_at at time zone 'Pacific/Kiritimati')::date <= (now() at time zone 'Pacific/Kiritimati')::date)::int as other
     from shop.news where (out_at at time zone 'UTC')::date > (now() at time zone 'UTC')::date`,
  );
  const { outcome } = await asker.ask('select count(*) from news');
  const [row] = hidden;
  t.match(outcome, { rows: [[String(140 - Number(row?.['n']))]] });
});
