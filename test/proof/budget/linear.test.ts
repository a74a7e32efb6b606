import {
  columnLineage,
  compileTemplate,
  emit,
  explain,
  type GovernedPlan,
  mentionedNames,
  QueryError,
  shapeOf,
} from 'osl-compiler';
import t from 'tap';
import { columnsOf } from '../../../src/ask/receipts/receipt-request.js';
import { partOf } from '../../support/part.js';
import { CALLERS, CATALOG } from '../golden/catalog.js';
import { DOUBLINGS, type Doubling } from './doublings.js';
import { PassCounter, type Work } from './passes.js';
import type { Family } from './texts.js';

/**
 * What each pass of the compiler does grows as its input does and no faster, for every construct that can refer to
 * another twice, up to the depth at which it is refused, and beyond. Counted, not timed, so that it says the same on any
 * machine.
 */

/** Logarithm of how much more a pass does, by that of how much more it is given. */
const MOST_SLOPE = 1.2;
/** Slope, by levels, of what doubles with each and would not end at a few more; what is written out stays below it. */
const RUNAWAY = 5;
/** Blocks of code below which a pass has not begun to grow. */
const LEAST = 4_000;
/** Of all that is done for a text, the part of a pass that is too little to be judged by itself. */
const LITTLE = 0.03;
/** A short text may have so many blocks of code run, whatever it says: some 50 ms of them. */
const MOST_WORK = 12_000_000;

/** Of those who ask: by a row filter, and under two grants of which each shows other columns of other rows. */
const ASKERS = ['regional', 'overlap'];
const FREE_CATALOG = { ...CATALOG, joins: 'any' as const };

/** In how many of the two worlds each construct is tried; nightly in both. */
const BOTH = Number(process.env['OSL_BUDGET_WAYS'] ?? 1) > 1;
const WORLDS = ['semantic', 'physical'] as const;

interface Tried {
  readonly levels: number;
  readonly plan: GovernedPlan | null;
  readonly work: Work;
  /** Nodes of the plan; of what is refused, UTF-16 units of the text. */
  readonly nodes: number;
  /** Characters of the SQL. */
  readonly sql: number;
}

const counter = new PassCounter();
t.teardown(() => counter.close());

/** Who asks for what. */
interface Asking {
  readonly family: Doubling;
  readonly write: Family['at'];
  readonly world: (typeof WORLDS)[number];
  readonly asker: string;
}

/** The plan of `n` levels; null where they are refused. */
function planOf({ family, write, world, asker }: Asking, n: number): GovernedPlan | null {
  const access = CALLERS.get(asker)?.access;
  if (access === undefined) throw new Error(`no caller ${asker}`);
  const text = write(n);
  try {
    return compileTemplate(text, shapeOf(text), family.free ? FREE_CATALOG : CATALOG, access, { world }).plan;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

function tried(asking: Asking, n: number): Tried {
  let plan: GovernedPlan | null = null;
  const work = counter.count(() => {
    plan = planOf(asking, n);
    if (plan !== null) {
      emit(plan);
      columnsOf(plan);
      explain(plan);
      columnLineage(plan);
    }
    mentionedNames(asking.write(n), asking.world, CATALOG);
  });
  const made = plan as GovernedPlan | null; // set within
  return made === null
    ? { levels: n, plan: null, work, nodes: asking.write(n).length, sql: 0 }
    : { levels: n, plan: made, work, nodes: nodesOf(made.query), sql: emit(made).sql.length };
}

/** Values, FROM items, queries and what they consist of, each in each place where it stands. */
function nodesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + nodesOf(item), 0);
  let nodes = 'kind' in value || 'expr' in value || 'materialized' in value ? 1 : 0;
  for (const [key, child] of Object.entries(value))
    if (!['relation', 'definition', 'equality'].includes(key)) nodes += nodesOf(child);
  return nodes;
}

const slope = (before: number, after: number, grown: number): number =>
  Math.log(after / before) / Math.log(grown);

/** The passes that grow faster than `grown` says. */
function tooFast(small: Tried, large: Tried, grown: number, most: number): readonly string[] {
  const sum = [...large.work.values()].reduce((a, b) => a + b, 0);
  return [...large.work].flatMap(([pass, after]) => {
    const before = Math.max(small.work.get(pass) ?? 0, LEAST / grown);
    const found = slope(before, after, grown);
    if (after < LEAST || after < LITTLE * sum || found <= most) return [];
    return [`${pass} ${before.toFixed(0)} → ${after}, slope ${found.toFixed(2)}`];
  });
}

/** What became of more and more levels, twice as many each time, up to twice those that are refused first. */
function climbed(asking: Asking): readonly Tried[] | string {
  const all: Tried[] = [];
  for (let n = 1; all.filter((t) => t.plan === null).length < 2; n *= 2) {
    const now = tried(asking, n);
    const before = all.at(-1);
    const [fault] = before === undefined || now.plan === null ? [] : tooFast(before, now, 2, RUNAWAY);
    if (fault !== undefined) return `${n} levels: ${fault}`;
    all.push(now);
  }
  return all;
}

/** The most levels that are answered, of which so many are, and twice as many are not. */
function mostAnswered(asking: Asking, answered: number): Tried {
  let [low, high] = [answered, 2 * answered];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (planOf(asking, middle) !== null) low = middle;
    else high = middle;
  }
  return tried(asking, low);
}

function faultsOf(asking: Asking): readonly string[] {
  const { family } = asking;
  const all = climbed(asking);
  if (typeof all === 'string') return [all];
  const answered = all.filter((t) => t.plan !== null);
  const [few, many] = all.filter((t) => t.plan === null);
  const last = answered.at(-1);
  if (last === undefined) return ['not even one level is answered'];
  const large = BOTH ? mostAnswered(asking, last.levels) : last;
  const small = BOTH ? tried(asking, Math.max(1, large.levels >> 1)) : (answered.at(-2) ?? last);
  const faults: string[] = [];
  if (large.levels >= 8) {
    const ofText = large.levels / small.levels; // each level says the same
    const most = family.pairs ? 2 : MOST_SLOPE;
    faults.push(
      ...tooFast(small, large, family.expands ? Math.max(ofText, large.nodes / small.nodes) : ofText, most),
    );
    if (!family.expands && slope(small.sql, large.sql, ofText) > MOST_SLOPE)
      faults.push(`the SQL grows from ${small.sql} to ${large.sql}`);
  }
  if (few !== undefined && many !== undefined) faults.push(...tooFast(few, many, 2, MOST_SLOPE));
  for (const { levels, work } of [large, few, many].filter((x) => x !== undefined)) {
    const sum = [...work.values()].reduce((a, b) => a + b, 0);
    if (sum > MOST_WORK) faults.push(`${levels} levels: ${sum} blocks of code run`);
  }
  return faults.map((fault) => `${small.levels} and ${large.levels} levels: ${fault}`);
}

t.setTimeout(600_000);

t.test('no pass follows a reference twice', async (t) => {
  const part = partOf('doublings', [...DOUBLINGS.entries()], 3);
  let judged = 0;
  for (const [i, family] of part) {
    const one = family.raw === null ? 'semantic' : (WORLDS[i % 2] ?? 'semantic');
    const worlds = BOTH && family.raw !== null ? WORLDS : [one];
    for (const [j, world] of worlds.entries()) {
      const write = (world === 'semantic' ? null : family.raw) ?? family.at;
      const asker = family.asker ?? ASKERS[((i >> 1) + j) % ASKERS.length] ?? '';
      // V8 may lose counts, and makes none up: what is found once more is there.
      const find = (): readonly string[] => faultsOf({ family, write, world, asker });
      const faults = find().length === 0 ? [] : find();
      for (const fault of faults) t.fail(`${family.name}, ${world}, ${asker}, ${fault}`);
      judged++;
    }
  }
  t.ok(judged >= part.length, `${judged} were judged`);
});
