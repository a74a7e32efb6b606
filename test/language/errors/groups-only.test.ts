import { GROUPS_ONLY, type GroupsOnlyReason } from 'osl-compiler';
import t from 'tap';
import { manifestText, policyText } from '../../support/model-text.js';
import { startRest } from '../../surfaces/rest/fixture.js';

t.setTimeout(300_000);

const MANIFEST = manifestText(
  'demo',
  {
    'shop.earner': `id int4, town text not null, income numeric, since timestamptz not null, away interval, cash money`,
    'shop.gift': 'id int4, earner_id int4, worth int4',
    'shop.tag': 'id int4, earner_id int4, weight int4',
  },
  `entities:
  earner: { source: db.shop.earner, primary_key: [id], columns: [id, town, income, since, away, cash], time_dimension: since }
  gift: { source: db.shop.gift, primary_key: [id], entity_key_columns: [id, earner_id], columns: [id, earner_id, worth] }
  tag: { source: db.shop.tag, primary_key: [id], entity_key_columns: [id, earner_id], columns: [id, earner_id, weight] }
metrics:
  earned: { entity: earner, expression: sum(income) }
  highest: { entity: earner, expression: max(income) }
  banked: { entity: earner, expression: sum(cash) }
  inverse: { entity: earner, expression: sum(1 / income) }
  so_far: { type: cumulative, metric: earned }
features: { joins: any }
raw_sql: { allow: [db.shop.earner, db.shop.gift, db.shop.tag] }
`,
);

const POLICY = policyText(
  'demo',
  {
    'user:sum': 'counting',
    'user:share': 'sharing',
    'user:met': 'measuring',
  },
  `roles:
  counting:
    grants:
      - { on: earner, columns: "*", min_group_size: 3 }
      - { on: gift, columns: "*", min_group_size: 3 }
      - { on: tag, columns: "*" }
  sharing:
    grants:
      - { on: earner, columns: "*", min_group_size: 3, dominance: 90 }
      - { on: gift, columns: "*", min_group_size: 3 }
  measuring:
    grants: [{ on: earner, columns: [town], metrics: [earned, highest], min_group_size: 3 }]
masks: { pii: redact }
limits: { query: 100000, sample: 100000 }
`,
);

const SCRIPT = `
create schema shop;
create table shop.earner (id int4 primary key, town text not null, income numeric, since timestamptz not null,
  away interval, cash money);
insert into shop.earner select n, case n % 2 when 0 then 'x' else 'y' end, 100 + n,
  timestamptz '2026-01-01 00:00:00+00', interval '1 day', '5' from generate_series(1, 12) n;
create table shop.gift (id int4 primary key, earner_id int4, worth int4);
insert into shop.gift select n, 1 + n % 12, n from generate_series(1, 48) n;
create table shop.tag (id int4 primary key, earner_id int4, weight int4);
insert into shop.tag select n, 1 + n % 12, n from generate_series(1, 24) n;
`;

/** A question: OSL-SQL, raw SQL after `sql`, a body after `metrics`, or a sample of an entity. */
type Question = string | { readonly sample: string };

/** Refused queries, and those that the hint advises in their place. */
interface Followed {
  readonly as?: string;
  readonly refused: Question;
  readonly followed: readonly string[];
}

/** For every reason; `metric` is what a metric brings about that its asker did not write. */
const FOLLOWED: Readonly<Record<GroupsOnlyReason | `metric ${string}`, Followed>> = {
  rows: {
    refused: 'select count(*) from (select id from earner) d',
    followed: ['select count(*), sum(income), avg(income) from earner'],
  },
  made: {
    refused: 'select count(*) from earner e join (select id from tag) d on d.id = e.id',
    followed: ['select count(*) from earner e join tag t on t.id = e.id'],
  },
  joined: {
    refused: 'select count(*) from gift g join earner e on e.id = g.earner_id and g.worth > 1',
    followed: ['select count(*) from gift g join earner e on e.id = g.earner_id where g.worth > 1'],
  },
  drawn: {
    refused: 'select town, count(*) from earner group by town having random() < 2',
    followed: ['select town, count(*) from earner group by town'],
  },
  optional: {
    refused: 'select count(*) from tag t left join earner e on t.earner_id = e.id',
    followed: ['select count(*) from tag t inner join earner e on t.id = e.id'],
  },
  around: {
    refused: 'sql select (select count(*) from shop.earner e where e.id < t.weight) from shop.tag t',
    followed: ['sql select (select count(*) from shop.earner e where e.id = t.id) from shop.tag t'],
  },
  expanded: {
    refused: 'select town, count(*), unnest(array[1, 2]) from earner group by town',
    followed: ['select town, count(*) from earner group by town'],
  },
  shows: {
    refused: 'select min(income) from earner',
    followed: [
      'select count(income), sum(income), avg(income), stddev(income), variance(income) from earner',
    ],
  },
  ordered: {
    refused: 'select sum(income order by id) from earner',
    followed: ['select sum(income) from earner'],
  },
  tooLarge: {
    refused: 'select sum(away) from earner',
    followed: ['select count(away) from earner', 'select sum(income) from earner'],
  },
  computed: {
    refused: 'select sum(income * 2) from earner',
    followed: ['select sum(income) * 2, sum(income) / count(id) from earner'],
  },
  repeated: {
    refused: 'select sum(e.income) from gift g join earner e on e.id = g.earner_id',
    followed: [
      'select sum(income) from earner',
      'select count(distinct e.income) from gift g join earner e on e.id = g.earner_id',
    ],
  },
  besideRows: {
    refused: 'select count(*) from earner e join tag t on t.earner_id = e.id',
    followed: [
      'select count(*) from earner',
      'select count(distinct e.id) from earner e join tag t on t.earner_id = e.id',
    ],
  },
  known: {
    refused: 'select sum(t.weight) from earner e join tag t on t.id = e.id',
    followed: [
      'select count(t.weight) from earner e join tag t on t.id = e.id',
      'select sum(e.income) from earner e join tag t on t.id = e.id',
    ],
  },
  fails: {
    refused: 'select count(*) from earner where 1 / (id - 1) > 0',
    followed: [
      "select town, count(*) from earner where id > 2 and income in (101, 102, 105, 107, 109) or town like 'x%' group by town",
      'select 1 / n from (select count(*) as n from earner) d',
    ],
  },
  running: {
    refused: 'metrics {"metrics": ["so_far"], "group_by": ["metric_time__month"]}',
    followed: ['metrics {"metrics": ["earned"], "group_by": ["metric_time__month"]}'],
  },
  'metric that adds up between two dates': {
    refused:
      'metrics {"metrics": ["so_far"], "group_by": ["metric_time__month"], "time_constraint": {"start": "2025-01-01", "end": "2026-06-30"}}',
    followed: ['metrics {"metrics": ["earned"], "group_by": ["metric_time__month"]}'],
  },
  metrics: {
    as: 'user:met',
    refused: 'select measure(earned), count(*) from earner',
    followed: [
      'select measure(earned) from earner',
      'select town, measure(earned) from earner group by town',
    ],
  },
  sharedJoin: {
    as: 'user:share',
    refused: 'select sum(g.worth) from gift g join earner e on e.id = g.earner_id',
    followed: [
      'select sum(income) from earner',
      'select count(*) from gift g join earner e on e.id = g.earner_id',
    ],
  },
  sampled: { refused: { sample: 'earner' }, followed: ['select count(*), avg(income) from earner'] },
  'metric of a summary that shows one': {
    refused: 'select measure(highest) from earner',
    followed: ['select measure(earned) from earner', 'select avg(income) from earner'],
  },
  'metric of money': {
    refused: 'select measure(banked) from earner',
    followed: ['select measure(earned) from earner', 'select count(cash) from earner'],
  },
  'metric that may fail': {
    refused: 'select measure(inverse) from earner',
    followed: ['select measure(earned) from earner', 'select sum(income) from earner'],
  },
  'metric that adds up': {
    refused: "select date_trunc('month', since), measure(so_far) from earner group by 1",
    followed: [
      "select date_trunc('month', since), measure(earned) from earner group by 1",
      "select date_trunc('month', since), sum(income) from earner group by 1",
    ],
  },
  'metric that is granted, for its rows': {
    as: 'user:met',
    refused: 'select town from earner',
    followed: ['select measure(earned) from earner'],
  },
};

t.test('who follows a hint of E2103 is answered', async (t) => {
  const fixture = await startRest({ manifest: MANIFEST, policy: POLICY, script: SCRIPT });
  t.teardown(() => fixture.close());
  const ask = async (as: string, question: Question) => {
    if (typeof question === 'string') {
      const [, surface, text = ''] = /^(metrics|sql) (.*)$/.exec(question) ?? [];
      if (surface === undefined) return fixture.ask(as, { osql: question });
      return fixture.ask(as, surface === 'sql' ? { sql: text } : JSON.parse(text));
    }
    const authorization = `Bearer ${await fixture.test.token(as)}`;
    const headers = { 'content-type': 'application/json', authorization };
    return fixture.send('/osl/sample', {
      method: 'POST',
      headers,
      body: { kind: 'table', name: question.sample },
    });
  };
  const hints = new Set<unknown>();
  for (const [reason, { as = 'user:sum', refused, followed }] of Object.entries(FOLLOWED)) {
    const reply = await ask(as, refused);
    const { code, detail, hint } = reply.json();
    t.strictSame([reply.status, code], [403, 'E2103'], reason);
    const said = saidOf(reason);
    if (said !== null) t.ok(String(detail).endsWith(`: ${said}`), `${reason}: ${detail}`);
    hints.add(hint);
    t.comment(`${reason}: ${hint}`);
    for (const text of followed) {
      const answer = await ask(as, text);
      t.equal(answer.status, 200, `${reason}: ${hint}: ${text}`, { reply: answer.text });
    }
  }
  t.ok(hints.size >= 18, `${hints.size} hints`);
});

/** Text of the reason; null where the line is of a metric, which shares the reasons of others. */
function saidOf(reason: string): string | null {
  // A key of the list, by the test before it.
  const known = Object.hasOwn(GROUPS_ONLY, reason) ? (reason as GroupsOnlyReason) : null;
  return known === null ? null : GROUPS_ONLY[known]('earner', known === 'shows' ? 'min' : 'sum').detail;
}
