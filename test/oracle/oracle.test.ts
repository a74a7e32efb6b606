import fc from 'fast-check';
import { emit } from 'osl-compiler';
import t from 'tap';
import { Coverage, IMPOSSIBLE } from './coverage.js';
import { diceArbitrary } from './dice.js';
import { asAsked, asCopied, randomQuestion } from './questions.js';
import { asBytes, openOracle, stage, templates } from './trial.js';
import { randomWorld } from './world.js';

/**
 * The governed answer on the whole data equals the original question's answer on a copy that was filtered and
 * masked beforehand. `OSL_ORACLE_RUNS` questions (nightly: 120,000), from `OSL_ORACLE_SEED`; `OSL_ORACLE_SHRINK` looks for a
 * smaller example, which takes minutes.
 */
const RUNS = Number(process.env['OSL_ORACLE_RUNS'] ?? 8_000);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_101);
const PER_WORLD = 20;
/** From so many on, every cell must be filled, not only every pair. */
const MANY = 100_000;

const engine = await openOracle();
t.teardown(() => engine.close());
t.setTimeout(3 * 3_600_000);

t.test('the governed answer is that of the copy', async (t) => {
  const coverage = new Coverage();
  const counts = { asked: 0, refused: 0, failed: 0, empty: 0 };
  const started = Date.now();
  await fc.assert(
    fc.asyncProperty(diceArbitrary, async (dice) => {
      const world = randomWorld(dice);
      const { governed, answer, truth } = await stage(world, engine);
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice);
        const plan = governed(question);
        counts.asked++;
        if (plan === null) {
          counts.refused++;
          continue;
        }
        coverage.add(plan, world);
        const [got, wanted] = [await answer(emit(plan)), await truth(question)];
        if (got.sqlstate !== null) counts.failed++;
        else if (got.rows.length === 0) counts.empty++;
        if (asBytes(got) === asBytes(wanted)) continue;
        throw new Error(
          [
            asAsked(question),
            asCopied(question, world),
            emit(plan).sql,
            asBytes(got),
            'but the copy says',
            asBytes(wanted),
          ].join('\n'),
        );
      }
    }),
    {
      numRuns: Math.ceil(RUNS / PER_WORLD),
      seed: SEED,
      endOnFailure: process.env['OSL_ORACLE_SHRINK'] === undefined,
    },
  );
  t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
  t.comment(coverage.summary());
  t.ok(counts.refused < counts.asked / 5, 'few keys are refused');
  t.ok(
    templates.filled > counts.asked / 5,
    `${templates.filled} plans came from the same question with other literals`,
  );
  t.ok(counts.empty < counts.asked / 2, 'most answers have rows');
  t.same(coverage.emptyPairs(), [], 'every pair of node, mask, join and grant union was met');
  if (RUNS >= MANY) t.same(coverage.emptyCells(), [], 'and every cell');
  for (const { node, join, why } of IMPOSSIBLE) t.comment(`no cell: ${node} × ${join}: ${why}`);
});
