import { emit, type GovernedPlan } from 'osl-compiler';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { seedOf } from '../../support/part.js';
import type { Answer } from '../golden/engine.js';
import { Coverage, IMPOSSIBLE } from './coverage.js';
import { diceArbitrary, diceFrom } from './dice.js';
import { asAsked, asCopied, type Question, randomQuestion } from './questions.js';
import { asBytes, openOracle, planOrRefusal, type Stage, stage, templates } from './trial.js';
import { accessOf, catalogOf, randomWorld } from './world.js';

/**
 * The governed answer on the whole data equals the original question's answer on a copy that was filtered and
 * masked beforehand. `OSL_ORACLE_RUNS` questions (nightly: 120,000), from `OSL_ORACLE_SEED`; `OSL_ORACLE_SHRINK` looks for a
 * smaller example, which takes minutes; `OSL_ORACLE_PATH` begins at the `path` of a failure.
 */
const RUNS = Number(process.env['OSL_ORACLE_RUNS'] ?? 1_000);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? seedOf('oracle', 2));
const PER_WORLD = 20;
/** From so many on, every cell must be filled, not only every pair. */
const MANY = 100_000;

const engine = await openOracle();
t.teardown(() => engine.close());
t.setTimeout(3 * 3_600_000);

/** Class 22 of SQLSTATE: a value with which an expression fails. */
const isFailedValue = ({ sqlstate }: Answer): boolean => sqlstate?.startsWith('22') === true;

/**
 * The caller's answer, which is the copy's. A condition on a computed column of another table may fail on a row of that
 * table which nothing leads to, as in any join: then the copies must fail alike when they are joined.
 *
 * @throws Error where it is not
 */
async function checked(
  question: Question,
  plan: GovernedPlan,
  { world, answer, truth, joinedTruth }: Stage,
): Promise<Answer> {
  const [got, wanted] = [await answer(emit(plan)), await truth(question)];
  if (asBytes(got) === asBytes(wanted)) return got;
  if (isFailedValue(got) && asBytes(got) === asBytes(await joinedTruth(question))) return got;
  const texts = [asAsked(question), asCopied(question, world), emit(plan).sql, asBytes(got)];
  throw new Error([...texts, 'but the copy says', asBytes(wanted)].join('\n'));
}

const coverage = new Coverage();

t.test('the governed answer is that of the copy', async (t) => {
  const counts = { asked: 0, refused: 0, failed: 0, empty: 0 };
  const started = Date.now();
  await fc.assert(
    fc.asyncProperty(diceArbitrary, async (dice) => {
      const world = randomWorld(dice);
      const here = await stage(world, engine);
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice);
        const plan = here.governed(question);
        counts.asked++;
        if (plan === null) {
          counts.refused++;
          continue;
        }
        coverage.add(plan, world);
        const got = await checked(question, plan, here);
        if (got.sqlstate !== null) counts.failed++;
        else if (got.rows.length === 0) counts.empty++;
      }
    }),
    {
      numRuns: Math.ceil(RUNS / PER_WORLD),
      seed: SEED,
      path: process.env['OSL_ORACLE_PATH'] ?? '',
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
  await fillPairs();
  t.same(coverage.emptyPairs(), [], 'every pair of node, mask, join and grant union was met');
  for (const { node, join, why } of IMPOSSIBLE) t.comment(`no cell: ${node} × ${join}: ${why}`);
});

/** Candidates for the pairs that chance left empty: rare ones, of which only those are asked that fill one. */
const PAIR_CANDIDATES = 20_000;

async function fillPairs(): Promise<void> {
  const dice = diceFrom(SEED + 1);
  for (let seen = 0; seen < PAIR_CANDIDATES && coverage.emptyPairs().length > 0; seen++) {
    const world = randomWorld(dice);
    const question = randomQuestion(world, dice);
    const plan = planOrRefusal(asAsked(question), catalogOf(world, 'whole'), accessOf(world));
    if (plan === null || !coverage.fillsPair(plan, world)) continue;
    await checked(question, plan, await stage(world, engine));
    coverage.add(plan, world);
  }
}

/** Candidates for the cells that chance left empty: only those that fill one are asked, so that they are cheap. */
const CANDIDATES = 2_000_000;

t.test('every cell is filled', { skip: RUNS >= MANY ? false : 'in a nightly run' }, async (t) => {
  const dice = diceFrom(SEED);
  const before = coverage.emptyCells();
  let seen = 0;
  const sought = new Set(before);
  while (seen < CANDIDATES && sought.size > 0) {
    const world = randomWorld(dice);
    const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
    for (let i = 0; i < 2 * PER_WORLD; i++) {
      const question = randomQuestion(world, dice);
      const plan = planOrRefusal(asAsked(question), catalog, access);
      seen++;
      if (plan === null || !coverage.fills(plan, world)) continue;
      await checked(question, plan, await stage(world, engine));
      coverage.add(plan, world);
      sought.clear();
      for (const cell of coverage.emptyCells()) sought.add(cell);
    }
  }
  t.comment(`${before.length} cells were left to seek, among ${seen} candidates: ${before.join('; ')}`);
  t.same(coverage.emptyCells(), []);
});
