import t from 'tap';
import { type Question, randomQuestion } from './questions.js';
import { asAsked, diceOf, judged, openTrial, type Told } from './trial.js';
import { ASKERS, randomWorld, twinOf } from './world.js';

/**
 * Random questions with every option of RETRIEVE over random notes with hidden rows, row filters and redaction: each
 * answer is what brute force makes of the passages that the caller may see, and stays so to the byte while everything
 * changes that it may not see. `OSL_RETRIEVAL_RUNS` questions, from `OSL_TEST_SEED`.
 */
const RUNS = Number(process.env['OSL_RETRIEVAL_RUNS'] ?? 100);
const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_123);
const PER_ASKER = 20;

t.setTimeout(3 * 3_600_000);

const trial = await openTrial(SEED);
t.teardown(() => trial.close());

t.test(
  'each answer is that of brute force over what may be seen, and what is hidden changes nothing',
  async (t) => {
    const counts = { worlds: 0, asked: 0, doubts: 0, refused: 0, empty: 0, twins: 0 };
    while (counts.asked < RUNS) {
      const dice = diceOf(SEED, counts.worlds++);
      const world = randomWorld(dice);
      await trial.hold(world);
      const answers: { readonly question: Question; readonly told: Told }[] = [];
      for (const asker of ASKERS)
        for (let i = 0; i < PER_ASKER; i++) {
          const question = randomQuestion(world, trial.queries, dice, asker);
          const told = await trial.ask(question);
          answers.push({ question, told });
          const wrong = judged(trial, question, told);
          counts.asked++;
          if (told.status !== 200) counts.refused++;
          else if (told.rows.length === 0) counts.empty++;
          if (wrong === 'doubt') counts.doubts++;
          else if (wrong !== null) t.fail(`${asAsked(question)}: ${wrong}`);
        }
      for (const asker of ASKERS.slice(2)) {
        await trial.hold(twinOf(world, asker, dice));
        for (const { question, told } of answers.filter((a) => a.question.asker === asker)) {
          t.same(await trial.ask(question), told, `in a twin, ${asAsked(question)}`);
          counts.twins++;
        }
      }
    }
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)}`);
    t.ok(counts.doubts < counts.asked / 5, 'few answers are in doubt');
    t.ok(counts.empty < counts.asked / 3, 'most questions find something');
  },
);
