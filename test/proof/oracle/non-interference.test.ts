import { emit } from 'osl-compiler';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { seedOf } from '../../support/part.js';
import { tablesSql } from './copies.js';
import { diceArbitrary } from './dice.js';
import { asAsked, randomQuestion } from './questions.js';
import { asBytes, openOracle, planOrRefusal, stage, valuesFor } from './trial.js';
import { assertTwins, twinOf } from './twin.js';
import { accessOf, catalogOf, randomWorld } from './world.js';

/**
 * Two databases that differ only in hidden rows, in masked cells and in where rows lie give identical bytes: rows
 * in text format, types, error codes. `OSL_ORACLE_RUNS` questions, from `OSL_ORACLE_SEED`; `OSL_ORACLE_SHRINK` looks for a
 * smaller example, which takes minutes.
 */
const RUNS = Number(process.env['OSL_ORACLE_RUNS'] ?? 400);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? seedOf('non-interference', 20_260_102));
const PER_WORLD = 20;

const engine = await openOracle();
t.teardown(() => engine.close());
t.setTimeout(3 * 3_600_000);

t.test('what the caller may not see changes nothing that the caller gets', async (t) => {
  const counts = { asked: 0, refused: 0, failed: 0 };
  const started = Date.now();
  await fc.assert(
    fc.asyncProperty(diceArbitrary, async (dice) => {
      const world = randomWorld(dice);
      const { governed, answer } = await stage(world, engine);
      const twin = await twinOf(world, engine, dice);
      const analyze = dice.chance(0.3) ? twin.tables.map((x) => `analyze twin.${x.name};`).join(' ') : '';
      await engine.setUp(`begin; ${tablesSql(twin, 'twin')} ${analyze} commit`);
      await assertTwins(world, twin, engine);
      const [catalog, access] = [catalogOf(twin, 'twin'), accessOf(twin)];
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice, true);
        const plan = governed(question);
        const other = planOrRefusal(asAsked(question), catalog, access);
        counts.asked++;
        if (plan === null || other === null) {
          counts.refused++;
          if (plan !== other) throw new Error(`refused in one only: ${asAsked(question)}`);
          continue;
        }
        const { sql, slots } = emit(other);
        const [one, two] = [await answer(emit(plan)), await engine.ask(sql, valuesFor(slots, world))];
        if (one.sqlstate !== null) counts.failed++;
        if (asBytes(one) !== asBytes(two)) {
          throw new Error(
            [asAsked(question), emit(plan).sql, asBytes(one), 'but its twin says', asBytes(two)].join('\n'),
          );
        }
      }
    }),
    {
      numRuns: Math.ceil(RUNS / PER_WORLD),
      seed: SEED,
      endOnFailure: process.env['OSL_ORACLE_SHRINK'] === undefined,
    },
  );
  t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
  t.ok(counts.refused < counts.asked / 5, 'few keys are refused');
});
