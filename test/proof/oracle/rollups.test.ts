import * as honest from 'osl-compiler';
import t from 'tap';
import { parseManifest } from '../../../src/model/manifest/index.js';
import { accessOf } from '../../model/graph/world.js';
import { openEngine } from '../golden/engine.js';
import { diceFrom } from './dice.js';
import { planIn, rolledWorld } from './rolled-world.js';

/**
 * Random questions under random policies are answered from random rollups as they are from the entity: the same rows,
 * to the byte. `OSL_ORACLE_ROLLUPS` questions, from `OSL_ORACLE_SEED`.
 */
const RUNS = Number(process.env['OSL_ORACLE_ROLLUPS'] ?? 1_200);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 5);
const PER_WORLD = 30;

/** The columns that a result is computed from, by output, and those that determine its rows. */
function columnsIn(plan: honest.GovernedPlan): string {
  const { outputs, rows } = honest.columnLineage(plan);
  return [...outputs.map((o) => o.inputs), rows].map((all) => all.map((i) => i.column).join()).join('; ');
}

await honest.ready();
const engine = await openEngine(['s', 'osl_rollups']);
t.teardown(() => engine.close());
t.setTimeout(3 * 3_600_000);

t.test('the answer over a rollup is the answer over the rows', async (t) => {
  const dice = diceFrom(SEED);
  const counts = { asked: 0, refused: 0, used: 0, alarms: 0 };
  const why = new Map<string, number>();
  const masked = { grouped: 0, filtered: 0, attribute: 0, timed: 0 };
  const NONE: ReadonlySet<string> = new Set();
  for (let run = 0; run < RUNS; run += PER_WORLD) {
    const world = await rolledWorld(dice, engine);
    if (world === null) continue;
    for (let i = 0; i < PER_WORLD; i++) {
      const question = world.question();
      const plain = planIn(honest, world, question, NONE);
      const over = planIn(honest, world, question, world.rollups);
      counts.asked++;
      if (typeof plain === 'string' || typeof over === 'string') {
        counts.refused++;
        if (over === 'alarm') counts.alarms++;
        if (over !== plain) t.fail(`${JSON.stringify(question)}: ${String(over)}`);
        continue;
      }
      for (const p of over.passedRollups) why.set(p.why, (why.get(p.why) ?? 0) + 1);
      if (over.rollup === null) continue;
      counts.used++;
      if (columnsIn(over) !== columnsIn(plain))
        t.fail(
          `${JSON.stringify(question)}: ${columnsIn(plain)}, in the lineage over the rollup ${columnsIn(over)}`,
        );
      const { sql } = honest.emit(over);
      if (over.maskedColumns.length > 0) masked.grouped++;
      if (/where/.test(sql)) masked.filtered++;
      if (over.slots.some((slot) => slot.kind === 'attribute')) masked.attribute++;
      if (sql.includes('#t')) masked.timed++;
      const [wanted, got] = [await world.answer(honest, plain), await world.answer(honest, over)];
      if (wanted !== got)
        t.fail(
          [JSON.stringify(question), honest.emit(plain).sql, sql, wanted, 'the rollup says', got].join('\n'),
        );
    }
  }
  t.comment(JSON.stringify({ ...counts, ...masked, why: Object.fromEntries(why) }));
  t.equal(counts.alarms, 0, 'the verifier lets through what was chosen');
  t.ok(counts.used > counts.asked / 8, `${counts.used} of ${counts.asked} were answered from a rollup`);
  for (const [what, times] of Object.entries(masked)) t.ok(times > counts.used / 100, `${what}: ${times}`);
  t.ok(why.size >= 5, `reasons were met: ${[...why.keys()].join('; ')}`);
});

const SUMS = `
version: 1
tenant: acme
connectors: { db: { kind: pglite, tables: { s.sums: { columns: { id: { type: int4 }, qty: { type: int4 } } } } } }
entities: { sum: { source: db.s.sums, primary_key: [id], columns: [id, qty] } }
rollups: { whole: { entity: sum, measures: [qty], max_age: 60 } }`;
const READER =
  '{ version: 1, tenant: acme, subjects: { ann: { ceiling: [r] } }, roles: { r: { grants: [{ on: sum, columns: "*" }] } }, masks: {} }';

t.test('a rollup without dimensions has no row where its entity has none', async (t) => {
  const manifest = parseManifest(SUMS, 'manifest.yaml');
  const access = accessOf(manifest, READER, 'ann');
  const built = [...manifest.rollups.values()].map(
    ({ rollup, query }) =>
      `drop table if exists osl_rollups."${rollup.table}"; create table osl_rollups."${rollup.table}" as ${query}`,
  );
  const answer = async (text: string, rollups: ReadonlySet<string>): Promise<unknown> => {
    const plan = honest.compile(text, manifest.catalog, access, { rollups });
    t.equal(plan.rollup, rollups.size === 0 ? null : 'whole', text);
    const { sql, slots } = honest.emit(plan);
    return (
      await engine.ask(
        sql,
        slots.map((s) => (s.kind === 'literal' ? String(s.value) : null)),
      )
    ).rows;
  };
  for (const rows of ['', 'insert into s.sums values (1, 2), (2, null);']) {
    await engine.setUp(
      `drop table if exists s.sums; create table s.sums (id int4, qty int4); ${rows} ${built}`,
    );
    for (const text of [
      'select count(*), count(qty), sum(qty), avg(qty), max(qty) from sum',
      'select min(7), bool_and(true), count(distinct 1) from sum',
      "select 'x' as k, count(*) from sum group by 1",
      'select count(*) from sum having min(7) = 7',
    ])
      t.same(await answer(text, new Set(['whole'])), await answer(text, new Set()), `${rows} ${text}`);
  }
});
