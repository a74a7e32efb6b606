import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'tap';
import { IS_WHOLE, partOf, seedOf } from '../support/part.js';
import { BUGS } from './bugs.js';
import { bundleGateway } from './bundle.js';
import { type Plan, planOf } from './plan.js';
import { run } from './run.js';

/**
 * Gateways in simulated worlds: no answer under rights that have ended, nothing of another caller, no record lost,
 * nothing left over, whatever order things happen in.
 */

const SEED = Number(process.env['OSL_TEST_SEED'] ?? seedOf('simulation', 20261129, 1_000));
/** Sessions of all runs, and for each planted bug; null: a few bugs only. */
const SESSIONS = Number(process.env['OSL_SIMULATION_SESSIONS'] ?? 300);
const BUG_SESSIONS = Number(process.env['OSL_SIMULATION_BUG_SESSIONS'] ?? 0);

/** Sessions of one run. */
const EACH = 60;

const code = await bundleGateway(null);

test('the same seed is the same run', async (t) => {
  for (const seed of IS_WHOLE ? [SEED, SEED + 1] : [SEED]) {
    const plan = planOf(seed, { sessions: EACH });
    const [first, again] = [await run(plan, code), await run(plan, code)];
    t.strictSame(again, first, `seed ${seed}: ${first.steps} steps`);
  }
});

test('nothing is found that must not happen', { timeout: 0 }, async (t) => {
  const runs = Math.ceil(SESSIONS / EACH);
  let exchanges = 0;
  for (let seed = SEED; seed < SEED + runs; seed++) {
    const result = await run(planOf(seed, { sessions: EACH }), code);
    exchanges += result.exchanges;
    if (result.violations.length > 0)
      t.strictSame(result.violations, [], `npm run simulate -- --seed ${seed}`);
  }
  t.comment(`${runs * EACH} sessions, ${exchanges} questions, seeds ${SEED} to ${SEED + runs - 1}`);
  t.ok(exchanges > runs, `${exchanges} questions`);
});

/** Found within a few runs, one of each part: the log, the engine, rights, the wire. */
const QUICK = [
  'rows leave before the decision is recorded',
  'a session is reused while a cancel request is under way',
  'a session keeps its routes over a reload',
  'a request stays when its client disconnects',
];
/** Sessions within which these must be found. */
const QUICK_SESSIONS = 3_000;

/** Seeds of 1, 2, …, as the runs of CI have others: a bug must not be found by the day's luck alone. */
async function sessionsUntilFound(name: string, most: number): Promise<number | null> {
  const bug = BUGS.find((known) => known.name === name) ?? null;
  if (bug === null) throw new Error(`there is no bug ${name}`);
  const broken = await bundleGateway(bug);
  for (let n = 1; n * EACH <= most; n++) {
    const { violations } = await run(planOf(n, { sessions: EACH }), broken);
    if (violations.length > 0) return n * EACH;
  }
  return null;
}

test('every planted bug has its one place in the source', async (t) => {
  for (const { name, file, from } of BUGS) t.equal(readFileSync(file, 'utf8').split(from).length, 2, name);
});

test('planted bugs are found', { timeout: 0 }, async (t) => {
  const names = BUG_SESSIONS > 0 ? BUGS.map(({ name }) => name) : partOf('planted bugs', QUICK, 4);
  let found = 0;
  for (const name of names) {
    const sessions = await sessionsUntilFound(name, BUG_SESSIONS > 0 ? BUG_SESSIONS : QUICK_SESSIONS);
    if (sessions !== null) found += 1;
    t.comment(`${name}: ${sessions === null ? 'not found' : `after ${sessions} sessions`}`);
  }
  const least = BUG_SESSIONS > 0 ? Math.ceil(0.88 * BUGS.length) : names.length;
  t.ok(found >= least, `${found} of ${names.length} found`);
});

/** Shortened plans of runs that found a bug in the gateway, by the bug's name in `bugs.ts`. */
interface FoundPlan {
  readonly bug: string;
  readonly plan: Plan;
}

test('bugs that were found stay mended', async (t) => {
  const dir = new URL('../../../test/simulation/found/', import.meta.url);
  const files = readdirSync(dir);
  const shown = partOf('bugs without their mend', files, 3);
  for (const file of files) {
    const { bug, plan } = JSON.parse(readFileSync(new URL(file, dir), 'utf8')) as FoundPlan; // our own files
    t.strictSame((await run(plan, code)).violations, [], `${bug}: mended`);
    if (!shown.includes(file)) continue;
    const planted = BUGS.find(({ name }) => name === bug);
    if (planted === undefined) throw new Error(`${file}: there is no bug ${bug}`);
    const { violations } = await run(plan, await bundleGateway(planted));
    t.not(violations.length, 0, `${bug}: shows without the mend`);
  }
});
