import t from 'tap';
import { partOf } from '../../support/part.js';
import { loadFaults, turnOn } from './faulty.js';
import { MUTANTS } from './mutants.js';
import type { Question } from './questions.js';

/**
 * Each seeded fault of retrieval is found by what `retrieval.test.ts` asks: an answer is not that of brute force.
 * They are all in one service, and one at a time is on.
 */
t.setTimeout(900_000);

loadFaults();
// After the faults: what these load is the product.
const { randomQuestion } = await import('./questions.js');
const { ASKERS, randomWorld } = await import('./world.js');
const { asAsked, diceOf, judged, openTrial } = await import('./trial.js');

const SEED = 7;
/** Faults of this run. */
const PART = partOf('faults of retrieval', MUTANTS, 3);
/** Each fault must be found within so many questions of a world, in so many worlds. */
const [WORLDS, QUESTIONS] = [3, 150];

const trial = await openTrial(SEED);
t.teardown(() => trial.close());

t.test('every seeded fault is found', async (t) => {
  const found = new Map<string, string>();
  let asked = 0;
  /** The service keeps plans by their texts, and one of a fault must serve no other question. */
  const ask = async (question: Question, fault: string): Promise<ReturnType<typeof judged>> => {
    turnOn(fault);
    const told = await trial.ask({ ...question, mark: ++asked });
    turnOn('');
    return judged(trial, question, told);
  };
  for (let n = 0; n < WORLDS && found.size < PART.length; n++) {
    const dice = diceOf(SEED, n);
    const world = randomWorld(dice);
    await trial.hold(world);
    for (let i = 0; i < QUESTIONS && found.size < PART.length; i++) {
      const question = randomQuestion(world, trial.queries, dice, dice.of(ASKERS));
      const honest = await ask(question, '');
      if (honest === 'doubt') continue;
      t.equal(honest, null, asAsked(question));
      for (const { fault } of PART.filter((m) => !found.has(m.fault))) {
        const wrong = await ask(question, fault);
        if (wrong !== null)
          found.set(fault, `after ${i + QUESTIONS * n} questions, ${asAsked(question)}: ${wrong}`);
      }
    }
  }
  for (const { fault } of PART) {
    t.ok(found.has(fault), fault);
    t.comment(`${fault}: ${found.get(fault)}`);
  }
  t.comment(`${asked} answers`);
});
