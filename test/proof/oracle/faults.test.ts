import { type EmittedSql, emit, type GovernedPlan } from 'osl-compiler';
import t from 'tap';
import type { Answer } from '../golden/engine.js';
import { tablesSql } from './copies.js';
import { diceFrom } from './dice.js';
import { FAULTS, type Fault } from './faults.js';
import { emitUngoverned } from './internals.js';
import { asAsked, type Question, randomQuestion } from './questions.js';
import { asBytes, openOracle, planOrRefusal, type Stage, stage, valuesFor } from './trial.js';
import { twinOf } from './twin.js';
import { accessOf, catalogOf, randomWorld } from './world.js';

/** Each seeded fault must be found, by the oracle or by non-interference, within so many worlds of questions. */
const WORLDS = 1_500;
const PER_WORLD = 12;
const SEED = 202;
/** Worlds in which faults were met when this was written: they come first, the others until every fault is found. */
const FIRST = [0, 2, 3, 5, 6, 7, 8, 11, 15, 48, 80, 205, 571];
const ORDER = [...new Set([...FIRST, ...Array(WORLDS).keys()])];

const engine = await openOracle();
t.teardown(() => engine.close());
t.setTimeout(600_000);

interface Found {
  readonly by: 'oracle' | 'non-interference';
  readonly after: number;
  readonly question: string;
}

const found = new Map<Fault, Found>();
let asked = 0;

function faulty(fault: Fault, plan: GovernedPlan): EmittedSql {
  const { query, slots } = fault.applied(plan);
  return emitUngoverned(query, slots);
}

function note(fault: Fault, by: Found['by'], question: Question): void {
  found.set(fault, { by, after: asked, question: asAsked(question) });
}

function sameText(a: EmittedSql, b: EmittedSql): boolean {
  return a.sql === b.sql && JSON.stringify(a.slots) === JSON.stringify(b.slots);
}

/** Asks every fault that is still at large, and the twin where it answers as it should. */
async function hunt(
  question: Question,
  here: Stage,
  plan: GovernedPlan,
  twin: GovernedPlan | null,
): Promise<void> {
  const good = emit(plan);
  let truth: string | null = null;
  for (const fault of FAULTS.filter((f) => !found.has(f))) {
    const bad = faulty(fault, plan);
    if (sameText(bad, good)) continue;
    truth ??= asBytes(await here.truth(question));
    const answer = asBytes(await here.answer(bad));
    if (answer !== truth) note(fault, 'oracle', question);
    else if (twin !== null && (await twinAnswer(faulty(fault, twin), here)) !== answer)
      note(fault, 'non-interference', question);
  }
}

async function twinAnswer({ sql, slots }: EmittedSql, { world }: Stage): Promise<string> {
  const answer: Answer = await engine.ask(sql, valuesFor(slots, world));
  return asBytes(answer);
}

t.test('every seeded fault is found', async (t) => {
  for (const i of ORDER) {
    if (found.size === FAULTS.length) break;
    const dice = diceFrom(SEED * 1_000 + i);
    const world = randomWorld(dice);
    const here = await stage(world, engine);
    const twin = await twinOf(world, engine, dice);
    await engine.setUp(`begin; ${tablesSql(twin, 'twin')} commit`);
    const [catalog, access] = [catalogOf(twin, 'twin'), accessOf(twin)];
    for (let j = 0; j < PER_WORLD; j++) {
      const question = randomQuestion(world, dice);
      const plan = here.governed(question);
      if (plan === null) continue;
      asked++;
      await hunt(question, here, plan, planOrRefusal(asAsked(question), catalog, access));
    }
  }
  for (const fault of FAULTS) {
    const how = found.get(fault);
    t.ok(how, how === undefined ? fault.name : `${fault.name}: ${how.by}, after ${how.after} questions`);
  }
});
