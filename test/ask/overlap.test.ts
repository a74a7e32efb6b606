import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { sql } from '../../src/base/sql.js';
import { type Asker, startFrontends } from '../support/frontends.js';
import { manifestText, policyText } from '../support/model-text.js';
import { startTestService } from '../support/service.js';

/** Which answers are compared with earlier ones, and what is said; the attacks are in `proof/attacks/differences`. */
t.setTimeout(120_000);

const GUARD = 'min_group_size: 5, overlap: { mode: refuse }';
const test = await startTestService({
  manifest: manifestText(
    'demo',
    {
      'shop.ward': 'id int4, city text not null',
      'shop.visit':
        'id int4, patient int4 not null, ward_id int4, kind text not null, days int4 not null, cost int4',
      'shop.item': 'id int4, visit_id int4, price int4 not null',
    },
    `entities:
  ward: { source: db.shop.ward, primary_key: [id], columns: [id, city] }
  visit:
    source: db.shop.visit
    primary_key: [id]
    entity_key_columns: [id, ward_id]
    columns: [id, patient, ward_id, kind, days, cost]
  item: { source: db.shop.item, primary_key: [id], entity_key_columns: [id, visit_id], columns: [id, visit_id, price] }
metrics:
  cost: { entity: visit, expression: sum(cost) }
`,
  ),
  policy: policyText(
    'demo',
    Object.fromEntries(
      [...'abcdefghijklm'].map((name) => [`user:${name}`, 'all, some { attributes: { kind: k1 } }']),
    ),
    `privacy_units: { visit: patient }
roles:
  all:
    grants:
      - { on: ward, columns: "*" }
      - { on: visit, columns: [id, ward_id, kind, days, cost], ${GUARD} }
      - { on: item, columns: "*", ${GUARD} }
  some:
    grants: [{ on: visit, columns: "*", rows: "kind = attribute('kind')" }]
masks: {}
limits: { query: 100000, catalog: 100000 }
`,
  ),
  // 60 visits of 20 patients in 4 wards; three visits of ward 4, of patients 1 to 3, have another kind and no cost.
  script: `create schema shop;
create table shop.ward (id int4 primary key, city text not null);
insert into shop.ward select n, 'city' || n % 2 from generate_series(1, 4) n;
create table shop.visit (id int4 primary key, patient int4 not null, ward_id int4, kind text not null, days int4 not null, cost int4);
insert into shop.visit select n, 1 + n % 20, 1 + n % 3, 'k' || n % 2, n, 1000 + n from generate_series(1, 60) n;
insert into shop.visit select 100 + n, n, 4, 'k9', n, null from generate_series(1, 3) n;
create table shop.item (id int4 primary key, visit_id int4, price int4 not null);
insert into shop.item select n, 1 + n % 60, n from generate_series(1, 90) n`,
});
const fronts = await startFrontends(test.open, { fast: true });
t.teardown(async () => {
  await fronts.stop();
  await test.close();
});

const asker = (name: string, roles: readonly string[] = ['all']): Promise<Asker> =>
  fronts.asker('REST', { subject: `user:${name}`, aclRoles: roles });

async function told(who: Asker, text: string): Promise<string> {
  const { outcome } = await who.ask(text.replace(/(from|join) (ward|visit|item)\b/g, '$1 osl.entities.$2'));
  return outcome.kind === 'rows' ? JSON.stringify(outcome.rows) : `${outcome.code} ${outcome.message}`;
}

const FEW = 'E0537 the answer, together with earlier ones, would show figures of fewer than 5 members';

t.test('a question that differs in few members is refused, and a repeated one answered', async (t) => {
  const [a, b] = [await asker('a'), await asker('b')];
  const whole = 'select sum(days) from visit';
  t.equal(await told(a, whole), '[["1836"]]');
  t.equal(await told(a, 'select sum(days) from visit where id <> 7'), FEW);
  t.equal(await told(a, whole), '[["1836"]]');
  t.equal(await told(a, 'SELECT  sum(days) FROM visit'), '[["1836"]]', 'however it is written');
  t.equal(
    await told(a, "select sum(days) from visit where kind <> 'nothing'"),
    '[["1836"]]',
    'the same rows',
  );
  t.equal(await told(b, 'select sum(days) from visit where id <> 7'), '[["1829"]]', 'somebody else');
  t.equal(await told(b, whole), FEW);
});

t.test('rows of one patient count once', async (t) => {
  const a = await asker('c');
  t.equal(await told(a, 'select count(*) from visit'), '[["63"]]');
  const rest = 'select count(*) from visit where id not in (1, 21, 41, 2, 22, 42)';
  t.equal(await told(a, rest), FEW, 'six visits of two patients');
  t.equal(await told(a, 'select count(*) from visit where id > 10'), '[["53"]]');
});

t.test('groups that are too small are not the rest of a total', async (t) => {
  const a = await asker('d');
  t.equal(
    await told(a, 'select ward_id, sum(days) from visit group by ward_id order by ward_id'),
    '[["1","630"],["2","590"],["3","610"]]',
  );
  t.equal(await told(a, 'select sum(days) from visit'), FEW);
  t.equal(await told(a, 'select sum(days) from visit where ward_id < 4'), '[["1830"]]');
  t.equal(
    await told(a, 'select ward_id, count(*) from visit group by rollup(ward_id)'),
    FEW,
    'in one answer',
  );
});

t.test('figures of different columns are not subtracted', async (t) => {
  const a = await asker('e');
  t.equal(await told(a, 'select count(*), sum(cost) from visit'), '[["63","61830"]]');
  t.equal(await told(a, 'select count(cost) from visit'), FEW, 'three visits have no cost');
});

t.test('joins with parents, metrics, parameters', async (t) => {
  const a = await asker('f');
  const joined = (more: string): string =>
    `select sum(v.days) from visit v join ward w on v.ward_id = w.id where w.city = 'city1'${more}`;
  t.equal(await told(a, joined('')), '[["1240"]]');
  t.equal(await told(a, 'select sum(days) from visit where ward_id in (1, 3) and id <> 3'), FEW);
  t.equal(await told(a, joined(' and v.id <> 3')), FEW);
  t.equal(await told(a, 'select measure(cost) from visit'), '[["61830"]]');
  t.equal(await told(a, 'select sum(cost) from visit where id <> 9'), FEW);

  const wire = await fronts.asker('extended wire', { subject: 'user:g', aclRoles: ['all'] });
  t.teardown(() => wire.end());
  for (let i = 0; i < 5; i++) {
    const { outcome } = await wire.ask('select sum(days) from visit where id <> 7');
    t.equal(outcome.kind, 'rows', 'as often as it is asked');
  }
  const { outcome } = await wire.ask('select sum(days) from visit where id <> 8');
  t.equal(outcome.kind === 'refused' && outcome.code, 'E0537', 'on the way of known shapes too');
});

t.test('what cannot be compared is refused', async (t) => {
  const a = await asker('h');
  for (const text of [
    'select count(*) from visit v join item i on i.visit_id = v.id',
    'select count(*) from item where visit_id in (select ward_id from visit group by ward_id)',
  ])
    t.match(await told(a, text), /^E0537 the query cannot be compared with earlier ones/, text);
  const both = await asker('i', ['all', 'some']);
  t.match(
    await told(both, 'select sum(days) from visit'),
    /E0537 the query cannot be compared .*rows that other/,
  );
});

t.test('refusals are counted', async (t) => {
  const a = await asker('j');
  await told(a, 'select sum(days) from visit');
  for (let id = 1; id <= 32; id++)
    t.equal(await told(a, `select sum(days) from visit where id <> ${id}`), FEW);
  t.match(
    await told(a, "select sum(days) from visit where kind = 'k1'"),
    /^E0537 the answers that can be compared with each other are used up until 20/,
  );
  t.equal(await told(a, 'select sum(days) from visit'), '[["1836"]]', 'what was answered stays so');
});

t.test('a question that reads the clock is never the same', async (t) => {
  const a = await asker('l');
  const still = 'select sum(days) from visit';
  const moving = "select sum(days) from visit where now() > '2020-01-01'";
  t.equal(await told(a, still), '[["1836"]]');
  t.equal(await told(a, moving), '[["1836"]]');
  // As if the clock had moved a filter past one row.
  await test.engine.system.script(sql`delete from shop.visit where id = 60`);
  t.equal(await told(a, still), '[["1776"]]', 'a repeated question shows what has changed');
  t.equal(await told(a, moving), FEW);
  await test.engine.system.script(sql`insert into shop.visit values (60, 1, 1, 'k0', 60, 1060)`);
});

t.test('a history with a flipped bit is no history, and one of an older version is', async (t) => {
  const a = await asker('m');
  const dir = join(dirname(test.policyFile), 'data', 'overlaps');
  const before = new Set(readdirSync(dir));
  await told(a, 'select sum(days) from visit');
  const paths = readdirSync(dir)
    .filter((name) => !before.has(name))
    .map((name) => join(dir, name));
  t.ok(paths.length > 0);
  const CHECKSUM = 32;
  for (const path of paths) writeFileSync(path, readFileSync(path).subarray(0, -CHECKSUM));
  t.equal(await told(a, 'select sum(days) from visit where id <> 7'), FEW, 'without a checksum');
  for (const path of paths) {
    const bytes = readFileSync(path);
    const at = bytes.length - CHECKSUM - 1;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(path, bytes);
  }
  t.match(
    await told(a, 'select sum(days) from visit where id <> 7'),
    /^E0537 earlier answers.* cannot be read/,
  );
});

t.test('without its history nothing is answered', async (t) => {
  const a = await asker('k');
  await told(a, 'select sum(days) from visit');
  const dir = join(dirname(test.policyFile), 'data', 'overlaps');
  t.ok(readdirSync(dir).length > 5);
  for (const name of readdirSync(dir)) writeFileSync(join(dir, name), 'damaged');
  t.match(
    await told(a, 'select sum(days) from visit where id <> 7'),
    /^E0537 earlier answers.* cannot be read/,
  );
  t.ok(test.lines.some((l) => l.message.includes('earlier answers cannot be read')));
});
