import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { columnLineage, compileInSteps, emit, explain, parse, prepareText, QueryError } from 'osl-compiler';
import t from 'tap';
import { columnsOf } from '../../../src/ask/receipts/receipt-request.js';
import { partOf, range } from '../../support/part.js';
import { CALLERS, CATALOG } from '../golden/catalog.js';
import { type Dice, diceFrom } from '../oracle/dice.js';

/** Random questions that grow: what is twice as long takes no stage of the compiler much more than twice as long. */

/**
 * Room for what is made young, in MiB. With less, garbage is collected from some length of a text on and not below it: a
 * step, which looks like growth between two lengths. What a text holds the thread for with it is for `held.test.ts`.
 */
const YOUNG = ['--min-semi-space-size=64', '--max-semi-space-size=64'];
if (!YOUNG.every((flag) => process.execArgv.includes(flag))) {
  const args = [...process.execArgv, ...YOUNG, fileURLToPath(import.meta.url)];
  process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1);
}

const SHAPES = Number(process.env['OSL_GROWTH_SHAPES'] ?? 12);
const MOST_GROWTH = 2.6;
/** ms; what takes less has not grown enough to be judged, and what is set beside it counts for no less than 1. */
const LEAST = 8;
/** A suspect is tried twice, then four times, and so on up to this. */
const MOST_TRIES = 10;

/** Milliseconds on a processor, those of the collector of garbage with them. */
function processMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

type Piece = (n: number) => string;

const times = (n: number, one: (i: number) => string, between: string): string =>
  Array.from({ length: Math.max(1, n) }, (_, i) => one(i)).join(between);

/** A number whose length grows with `n` in one way or another. */
function numberPiece(dice: Dice, depth: number): Piece {
  const inner =
    depth > 0 ? numberPiece(dice, depth - 1) : () => dice.of(['id', '1', 'length(name)', 'abs(id)']);
  const fixed = inner(1);
  const truth = truthPiece(dice, 0); // drawn once, so that each length is one of the same shape
  return dice.of<Piece>([
    (n) => `case ${times(n, (i) => `when id = ${i} then ${fixed}`, ' ')} end`,
    (n) => `coalesce(${times(n, () => fixed, ', ')})`,
    (n) => `greatest(${times(n, (i) => `${fixed} + ${i}`, ', ')})`,
    (n) => `(array[${times(n, () => fixed, ', ')}])[1]`,
    (n) => `case when ${truth(n)} then ${fixed} else 0 end`,
    (n) => `length(concat(${times(n, () => 'name', ', ')}))`,
  ]);
}

function truthPiece(dice: Dice, depth: number): Piece {
  const value = depth > 0 ? numberPiece(dice, depth - 1)(1) : dice.of(['id', 'length(name)', 'id + 1']);
  return dice.of<Piece>([
    (n) => `(${times(n, (i) => `${value} = ${i}`, ' or ')})`,
    (n) => `(${times(n, (i) => `${value} <> ${i}`, ' and ')})`,
    (n) => `${value} in (${times(n, (i) => String(i), ', ')})`,
    (n) => `${value} in (${times(n, (i) => `id + ${i}`, ', ')})`,
    (n) => `(${times(n, (i) => `name like 'a${i}%'`, ' or ')})`,
    (n) => `(${times(n, (i) => `${value} between ${i} and ${i + 1}`, ' or ')})`,
    (n) => `id = any (array[${times(n, (i) => String(i), ', ')}])`,
  ]);
}

function queryPiece(dice: Dice, depth: number): Piece {
  const from = depth > 0 ? `(${queryPiece(dice, depth - 1)(2)}) t` : 'customer';
  const number = numberPiece(dice, 2);
  const truth = truthPiece(dice, 1);
  const [one, so] = [number(2), truth(2)];
  return dice.of<Piece>([
    (n) => `select id, name, ${number(n)} as v from ${from} where ${so}`,
    (n) => `select id, name, ${one} as v from ${from} where ${truth(n)}`,
    (n) =>
      `select max(id) as id, max(name) as name, ${number(1)} as v from ${from} group by id, name having ${times(n, (i) => `max(id) > ${i}`, ' and ')}`,
    (n) => `select id, name from ${from} order by ${times(Math.min(n, 800), (i) => `id + ${i}`, ', ')}`,
    (n) =>
      `select id, name, ${times(Math.min(n, 800), (i) => `sum(id) over (order by name) as w${i}`, ', ')} from ${from}`,
    (n) => `select id, name, ${times(Math.min(n, 800), (i) => `id as a${i}`, ', ')} from ${from} where ${so}`,
    (n) =>
      `select id, name from ${from} union all select * from (values ${times(n, (i) => `(${i}, 'a')`, ', ')}) v`,
    (n) =>
      `with ${times(Math.min(n, 100), (i) => `c${i} as (select id, name from customer where id <> ${i})`, ', ')} select c0.id, c0.name from c0 where ${so.replaceAll('id', 'c0.id').replaceAll('name', 'c0.name')}`,
  ]);
}

const STAGES = ['look', 'bind', 'govern', 'template', 'emit', 'explain', 'lineage'] as const;

/** Milliseconds of each stage; null where the text is refused. */
function stagesOf(text: string): readonly number[] | null {
  const access = CALLERS.get('overlap')?.access;
  if (access === undefined) throw new Error('no caller');
  const took: number[] = [];
  let before = processMs();
  const lap = (): void => {
    const now = processMs();
    took.push(now - before);
    before = now;
  };
  try {
    prepareText(text);
    lap();
    const parsed = parse(text);
    const steps = compileInSteps(text, null, CATALOG, access, { parsed });
    steps.next();
    before = processMs();
    for (let step = steps.next(); ; step = steps.next()) {
      lap();
      if (step.done !== true) continue;
      const { plan } = step.value;
      emit(plan);
      columnsOf(plan);
      lap();
      explain(plan);
      lap();
      columnLineage(plan);
      lap();
      return took;
    }
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

/** The least of some tries, stage by stage. */
function least(text: string, tries: number): readonly number[] | null {
  let best: readonly number[] | null = null;
  for (let i = 0; i < tries; i++) {
    const took = stagesOf(text);
    if (took === null) return null;
    best = best === null ? took : best.map((ms, j) => Math.min(ms, took[j] ?? ms));
  }
  return best;
}

/** A stage of a question that seemed to grow too fast. */
interface Suspect {
  readonly stage: number;
  readonly small: string;
  readonly large: string;
}

/** By how much a stage grows from one text to another; 1 where it is too short to be judged. */
function growthOf({ stage, small, large }: Suspect, tries: number): number {
  const [a = 0, b = 0] = [least(small, tries)?.[stage], least(large, tries)?.[stage]];
  return b < LEAST ? 1 : b / Math.max(a, 1);
}

t.setTimeout(600_000);
t.test('no stage takes more than twice the time for twice the text, and a little', async (t) => {
  const part = partOf('shapes', range(1, SHAPES + 1), 3);
  const suspects: Suspect[] = [];
  let judged = 0;
  for (const seed of part) {
    const piece = queryPiece(diceFrom(seed), seed % 3);
    for (let n = 100; n <= 1_600; n *= 2) {
      const [small, large] = [piece(n), piece(2 * n)];
      const [before, after] = [least(small, 2), least(large, 2)];
      if (before === null || after === null) break;
      for (const stage of STAGES.keys()) {
        judged++;
        const [a = 0, b = 0] = [before[stage], after[stage]];
        if (b >= LEAST && b > MOST_GROWTH * Math.max(a, 1)) suspects.push({ stage, small, large });
      }
    }
  }
  t.ok(judged > part.length, `${judged} stages were judged`);
  // The collector of garbage and neighbours on the same core come and go: what grows does so each time.
  for (const suspect of suspects) {
    let growth = Number.POSITIVE_INFINITY;
    for (let tries = 2; tries <= MOST_TRIES && growth > MOST_GROWTH; tries += 2)
      growth = Math.min(growth, growthOf(suspect, tries));
    t.ok(
      growth <= MOST_GROWTH,
      `${STAGES[suspect.stage]} grows by ${growth.toFixed(1)}: ${suspect.small.slice(0, 400)}`,
    );
  }
});
