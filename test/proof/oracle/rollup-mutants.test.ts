import type * as Compiler from 'osl-compiler';
import t from 'tap';
import { IS_WHOLE, partOf } from '../../support/part.js';
import { openEngine } from '../golden/engine.js';
import { diceFrom } from './dice.js';
import { type Mutant, mutant, mutatedCompilers, placesOf } from './mutated-compiler.js';
import { planIn, rolledWorld } from './rolled-world.js';

/**
 * Each rule by which a rollup is chosen, switched off by itself, so that it is used where it may not be: the verifier
 * refuses what then comes, or an answer is seen to differ. With the verifier silent, answers alone must tell.
 */
const MUTANTS: readonly Mutant[] = [
  mutant(
    'a row filter reads dimensions',
    'rollup/rollup',
    "return nodesIn(filters, 'base')",
    "return false && nodesIn(filters, 'base')",
  ),
  mutant(
    'what is aggregated is clear',
    'rollup/rollup',
    "columnRule(relation, name, granted).masked === 'none'",
    'true',
  ),
  mutant('minima are kept', 'rollup/rollup', '!granted.grants.every(showsRows)', 'false'),
  mutant(
    'values are of dimensions',
    'rollup/rollup',
    'source !== this.#source || !this.#dimensions.has(name)',
    'false',
  ),
  mutant('distinct values are no sum', 'rollup/rollup', 'if (call.distinct)', 'if (false)'),
  mutant("a rollup's rows are not counted", 'rollup/rollup', "new Set(['min',", "new Set(['count', 'min',"),
  mutant("a rollup's rows are not added up", 'rollup/rollup', "new Set(['min',", "new Set(['sum', 'min',"),
  mutant('random values are of rows', 'rollup/rollup', "e.definition.volatility === 'volatile'", 'false'),
  mutant('days have hours', 'rollup/rollup', "day: new Set(['day'", "day: new Set(['hour', 'day'"),
  mutant('months have weeks', 'rollup/rollup', "week: new Set(['week'", "week: new Set(['week', 'month'"),
  mutant('a bound is a beginning', 'rollup/rollup', 'literal?.holds(beginsAt(days, type)) === true', 'true'),
  mutant(
    'a period is before its end',
    'rollup/rollup',
    "definition.name !== '>=' && definition.name !== '<'",
    "!['>=', '<', '<=', '>'].includes(definition.name)",
  ),
  mutant('time is of UTC', 'rollup/rollup', 'e.name === this.#rollup.time?.column', "e.name === 'local'"),
  mutant(
    'NULL is not counted',
    'rollup/rollup',
    'this.#counted(call, count.name, filter)',
    "this.#counted(call, '#n', filter)",
  ),
  mutant(
    'NULL of a dimension is not counted',
    'rollup/rollup',
    'const there = isNotNull(arg);',
    'const there = isNotNull(this.#slots.literal("1", "int4"));',
  ),
  mutant('a filter of a count holds', 'rollup/rollup', 'allOf([filter, there])', 'there'),
  mutant(
    'an average is of values',
    'rollup/rollup',
    "'sum', count, filter)",
    "'sum', { name: '#n', type: 'int8' }, filter)",
  ),
  mutant(
    'none is no NULL',
    'rollup/rollup',
    'args: Object.freeze([rows, none])',
    'args: Object.freeze([rows, rows])',
  ),
];

/** What the verifier and the answers of the oracle are one for: another guard of the compiler stands before them. */
const SILENT = mutant('', 'verify/rollup', 'if (scan === undefined)\n        return;', 'return;');
const WORLDS = 48;
/** For the verifier, whose alarms need not all come. */
const LEAST_WORLDS = 12;
const PER_WORLD = 40;

const engine = await openEngine(['s', 'osl_rollups']);
const compilers = mutatedCompilers();
t.teardown(() => engine.close());
t.teardown(() => compilers.close());
t.setTimeout(600_000);

interface Suspect {
  readonly rule: string;
  readonly loud: typeof Compiler;
  readonly silent: typeof Compiler;
  alarm: boolean;
  seen: boolean;
}

t.test(
  'the text of each rule stands once in the compiler, also of those that run at another commit',
  async (t) => {
    for (const m of [...MUTANTS, SILENT]) t.equal(placesOf(m), 1, `${m.rule}: ${m.file}: ${m.from}`);
  },
);

t.test('every rule that is switched off is caught', async (t) => {
  const suspects: Suspect[] = [];
  for (const m of partOf('mutants of rollups', MUTANTS, 3))
    suspects.push({
      rule: m.rule,
      loud: await compilers.with([m]),
      silent: await compilers.with([m, SILENT]),
      alarm: false,
      seen: false,
    });
  const honest = await compilers.with([]);
  const dice = diceFrom(7);
  for (let w = 0; w < WORLDS && (w < LEAST_WORLDS || suspects.some((s) => !s.seen)); w++) {
    const world = await rolledWorld(dice, engine);
    if (world === null) continue;
    for (let i = 0; i < PER_WORLD; i++) {
      const question = world.question();
      const plain = planIn(honest, world, question, new Set());
      const over = planIn(honest, world, question, world.rollups);
      if (typeof plain === 'string' || typeof over === 'string') continue;
      const sql = honest.emit(over).sql;
      let wanted: string | null = null;
      for (const suspect of suspects) {
        const { loud, silent } = suspect;
        if (w < LEAST_WORLDS && !suspect.alarm && planIn(loud, world, question, world.rollups) === 'alarm')
          suspect.alarm = true;
        if (suspect.seen) continue;
        const plan = planIn(silent, world, question, world.rollups);
        if (typeof plan === 'string') {
          suspect.seen = true;
          continue;
        }
        if (plan.rollup === null || silent.emit(plan).sql === sql) continue;
        wanted ??= await world.answer(honest, plain);
        if ((await world.answer(silent, plan)) !== wanted) suspect.seen = true;
      }
    }
  }
  for (const { rule, alarm, seen } of suspects) {
    t.ok(seen, `${rule}: seen in an answer, or refused by the rest of the compiler`);
    t.comment(`${rule}: ${alarm ? 'the verifier refuses it' : 'the oracle alone tells'}`);
  }
  const alarms = suspects.filter((s) => s.alarm).length;
  t.ok(alarms >= (IS_WHOLE ? 9 : 2), `the verifier refuses ${alarms} of ${suspects.length}`);
});
