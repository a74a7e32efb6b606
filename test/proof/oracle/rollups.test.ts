import * as honest from 'osl-compiler';
import t from 'tap';
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
