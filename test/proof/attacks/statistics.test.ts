import t from 'tap';
import { type Asker, startFrontends } from '../../support/frontends.js';
import { manifestText, policyText } from '../../support/model-text.js';
import { startTestService } from '../../support/service.js';

/** Figures that are those of one person, asked for in every way that looks like many. */
t.setTimeout(300_000);

const MANIFEST = manifestText(
  'demo',
  {
    'shop.visit': 'id int4, patient int4 pii, ward text not null, finding text, days int4',
    'shop.earner': `id int4, town text not null, street text not null, income numeric, debt float8, small int2, big int8`,
    'shop.gift': 'id int4, earner_id int4, worth int4',
  },
  `entities:
  visit: { source: db.shop.visit, primary_key: [id], columns: [id, patient, ward, finding, days] }
  earner: { source: db.shop.earner, primary_key: [id], columns: [id, town, street, income, debt, small, big] }
  gift: { source: db.shop.gift, primary_key: [id], entity_key_columns: [id, earner_id], columns: [id, earner_id, worth] }
metrics:
  earned: { entity: earner, expression: sum(income) }
`,
);

const POLICY = policyText(
  'demo',
  {
    'user:doc': 'visits',
    'user:tax': 'earners',
    'user:met': 'metrics',
  },
  `privacy_units: { visit: patient }
roles:
  visits:
    grants: [{ on: visit, columns: [id, ward, finding, days], min_group_size: 3, distinct: { finding: 2 } }]
  earners:
    grants:
      - { on: earner, columns: "*", min_group_size: 3, dominance: 70 }
      - { on: gift, columns: "*", min_group_size: 3 }
  metrics:
    grants: [{ on: earner, columns: [town], metrics: [earned], min_group_size: 3, dominance: 70 }]
masks: { pii: redact }
limits: { query: 100000, catalog: 100000 }
`,
);

/**
 * Ward a: many visits of one patient. b: three patients with one finding. c: three patients, two findings. d: visits of
 * nobody. Town x: one earns nearly all, and owes nearly all. y: all alike. z: debts and incomes that cancel out.
 */
const SCRIPT = `
create schema shop;
create table shop.visit (id int4 primary key, patient int4, ward text not null, finding text, days int4);
insert into shop.visit select n, 1, 'a', 'f' || n % 3, 770000 + n from generate_series(1, 20) n;
insert into shop.visit select 100 + n, 10 + n, 'b', 'f0', 770000 from generate_series(1, 3) n;
insert into shop.visit select 200 + n, 20 + n % 3, 'c', 'f' || n % 2, n from generate_series(1, 6) n;
insert into shop.visit select 300 + n, null, 'd', 'f' || n % 3, 770000 from generate_series(1, 9) n;
create table shop.earner (id int4 primary key, town text not null, street text not null, income numeric, debt float8, small int2, big int8);
insert into shop.earner select n, 'x', 's' || n % 2, case n when 1 then 770077 else n end,
  case n when 1 then -770077 else -n end, case n when 1 then -32768 else -1 end,
  case n when 1 then -9223372036854775808 else 1 end from generate_series(1, 9) n;
insert into shop.earner select 100 + n, 'y', 's' || n % 2, 10 + n, 10 + n, 10, 10 from generate_series(1, 9) n;
insert into shop.earner select 200 + n, 'z', 's0', case n when 1 then 990000 when 2 then -990000 else 1 end, 'NaN', 0, null
  from generate_series(1, 6) n;
create table shop.gift (id int4 primary key, earner_id int4, worth int4);
insert into shop.gift select n, 1 + n % 9, n from generate_series(1, 60) n`;

const test = await startTestService({ manifest: MANIFEST, policy: POLICY, script: SCRIPT });
const fronts = await startFrontends(test.open, { fast: true });
t.teardown(async () => {
  await fronts.stop();
  await test.close();
});

const callerOf = (subject: string) => ({ subject, aclRoles: ['visits', 'earners', 'metrics'] });

async function told(asker: Asker, text: string): Promise<string> {
  const { outcome } = await asker.ask(text);
  return outcome.kind === 'rows' ? JSON.stringify(outcome.rows) : `${outcome.code} ${outcome.message}`;
}

/** Each question has the same answer on every surface, as often as it is asked. */
const ANSWERS: readonly (readonly [subject: string, text: string, answer: string])[] = [
  ['user:doc', 'select ward, count(*) from visit group by ward order by ward', '[["c","6"]]'],
  ['user:doc', "select count(*) from visit where ward = 'a'", '[[null]]'],
  ['user:doc', "select count(*), sum(days) from visit where ward = 'd'", '[[null,null]]'],
  ['user:doc', "select count(*) from visit where ward = 'b'", '[[null]]'],
  ['user:doc', "select count(*) from visit where ward in ('a', 'b')", '[["23"]]'],
  ['user:doc', "select count(*) filter (where finding = 'f0') from visit where ward = 'c'", '[[null]]'],
  ['user:doc', "select count(*) from visit where ward = 'nowhere'", '[[null]]'],
  [
    'user:tax',
    'select town, sum(income) from earner group by town order by town',
    '[["x",null],["y","135"],["z","4"]]',
  ],
  ['user:tax', 'select town, avg(income) from earner group by town having sum(income) > 1000', '[]'],
  ['user:tax', "select stddev(income), variance(income) from earner where town = 'x'", '[[null,null]]'],
  [
    'user:tax',
    "select sum(distinct income), avg(distinct income) from earner where town = 'x'",
    '[[null,null]]',
  ],
  ['user:tax', "select sum(debt), sum(small), sum(big) from earner where town = 'x'", '[[null,null,null]]'],
  ['user:tax', "select sum(income) from earner where town = 'x' and id <> 1", '[["44"]]'],
  ['user:tax', "select sum(income) filter (where street = 's1') from earner where town = 'x'", '[[null]]'],
  ['user:tax', "select count(*) from earner where town = 'x'", '[["9"]]'],
  ['user:tax', "select sum(debt) from earner where town = 'z'", '[["NaN"]]'],
  [
    'user:tax',
    "select street, town, sum(income) from earner where town = 'x' group by rollup (street, town) order by 1, 2",
    '[["s0","x","20"],["s0",null,"20"],["s1","x",null],["s1",null,null],[null,null,null]]',
  ],
  [
    'user:tax',
    'select town from earner group by town order by sum(income) desc nulls last, town',
    '[["y"],["z"],["x"]]',
  ],
  [
    'user:met',
    'select town, measure(earned) from earner group by town order by town',
    '[["x",null],["y","135"],["z","4"]]',
  ],
];

/** What may not be asked at all, whatever the rows. */
const REFUSED: readonly (readonly [subject: string, text: string])[] = [
  ['user:doc', 'select count(distinct patient) from visit'],
  ['user:doc', 'select ward, count(*) from visit group by ward, patient'],
  ['user:doc', 'select max(days) from visit'],
  ['user:doc', 'select "#group" from visit'],
  ['user:doc', 'select count("#group 0") from visit'],
  ['user:tax', 'select sum(income + 0) from earner'],
  ['user:tax', "select sum(case when town = 'x' then income else 0 end) from earner"],
  ['user:tax', 'select sum(g.worth) from earner e join gift g on e.id = g.earner_id'],
  ['user:tax', 'select sum(e.income) from earner e join gift g on e.id = g.earner_id'],
  ['user:tax', 'select max(income) from earner'],
];

for (const surface of ['simple wire', 'extended wire', 'REST'] as const) {
  t.test(`figures of one stay with one: ${surface}`, async (t) => {
    for (const subject of new Set(ANSWERS.map(([s]) => s))) {
      const asker = await fronts.asker(surface, callerOf(subject));
      t.teardown(() => asker.end());
      const osql = (text: string): string =>
        surface === 'REST' ? text.replace(/(from|join) (visit|earner|gift)\b/g, '$1 osl.entities.$2') : text;
      for (const [whose, text, answer] of ANSWERS) {
        if (whose !== subject) continue;
        for (let i = 0; i < 3; i++) t.equal(await told(asker, osql(text)), answer, text);
      }
      for (const [whose, text] of REFUSED) {
        if (whose !== subject) continue;
        const said = await told(asker, osql(text));
        t.match(said, /^E(2103|0512|0511|0514|2101)/, `${text}: ${said}`);
        t.notMatch(said, /7700|9900/, text);
      }
    }
  });
}
