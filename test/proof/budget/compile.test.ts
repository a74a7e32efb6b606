import {
  applyGrammar,
  columnLineage,
  compile,
  compileInSteps,
  emit,
  explain,
  oneStatement,
  prepareText,
  QueryError,
  shapeOf,
} from 'osl-compiler';
import t from 'tap';
import { SHORT_TEXT } from '../../../src/ask/parsing/index.js';
import { columnsOf } from '../../../src/ask/receipts/receipt-request.js';
import { partOf } from '../../support/part.js';
import { CALLERS, CATALOG } from '../golden/catalog.js';
import { mainThreadMs } from './main-thread.js';
import { FAMILIES, largest } from './texts.js';

/** What the compiler does in one go is short, whatever the text; and twice the text is not four times the work. */

const MOST_MS = 50;
const TRIES = 12;
/** Runs between two of one text at one size, but at night; no divisor of the number of sizes. */
const TURNS = 3;
/** Of those who ask: masked, and under two grants of which each shows other columns of other rows. */
const ASKERS = ['masked', 'overlap'].map((name) => {
  const caller = CALLERS.get(name);
  if (caller === undefined) throw new Error(`no caller ${name}`);
  return caller.access;
});

/** Each thing that is done in one go for `text`, in ms. A text that is parsed elsewhere costs its first look only. */
function turns(text: string, access: (typeof ASKERS)[number]): readonly number[] {
  const took: number[] = [];
  let before = mainThreadMs();
  const lap = (): void => {
    const now = mainThreadMs();
    took.push(now - before);
    before = now;
  };
  const short = text.length <= SHORT_TEXT;
  try {
    const prepared = prepareText(text);
    shapeOf(text);
    lap();
    const grammar = applyGrammar(prepared.parsed);
    before = short ? before : mainThreadMs();
    const parsed = oneStatement({ prepared, grammar });
    const steps = compileInSteps(text, shapeOf(text), CATALOG, access, { parsed });
    for (let step = steps.next(); ; step = steps.next()) {
      if (!short) lap();
      if (step.done !== true) continue;
      const { plan } = step.value;
      emit(plan);
      columnsOf(plan);
      if (!short) lap();
      explain(plan);
      if (!short) lap();
      columnLineage(plan);
      break;
    }
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
  }
  lap();
  return took;
}

/** The longest turn: the least of a few tries, so that code which is not yet compiled is not the text's fault. */
function held(text: string, access: (typeof ASKERS)[number]): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < TRIES && least > MOST_MS; i++)
    least = Math.min(least, Math.max(...turns(text, access)));
  return least;
}

t.setTimeout(600_000);
t.test('no text takes long in one go', { timeout: 600_000 }, async (t) => {
  const all = FAMILIES.flatMap((family, i) =>
    [SHORT_TEXT, 50_000, 110_000, 1_048_576].map((size, j) => ({ family, size, asker: i + j })),
  );
  for (const { family, size, asker } of partOf('texts that are compiled', all, TURNS)) {
    const { text, n } = largest(family, size);
    const access = ASKERS[asker % ASKERS.length] ?? ASKERS[0];
    const ms = access === undefined ? 0 : held(text, access);
    if (ms > MOST_MS) t.fail(`${family.name}: ${n}, ${text.length} units: ${ms.toFixed(0)} ms`);
  }
  t.pass('all were compiled');
});

t.test('the texts that were found are answered or refused at once', async (t) => {
  const [access] = ASKERS;
  if (access === undefined) throw new Error('nobody asks');
  const told = (text: string): string => {
    try {
      return `${compile(text, CATALOG, access).outputs.length} columns`;
    } catch (error) {
      if (error instanceof QueryError) return `${error.sqlstate} ${error.message}`;
      throw error;
    }
  };
  const doubling = (levels: number): string =>
    `${'select x||x||x||x as x from ('.repeat(levels)}select name as x from customer${') t'.repeat(levels)}`;
  t.equal(told(doubling(3)), '1 columns');
  t.match(told(doubling(12)), /^54001 .*derived columns written out/);
  const nestedBetween = `select ${'('.repeat(30)}id between 1 and 2${') between false and true'.repeat(30)} from customer`;
  t.match(told(nestedBetween), /^54001 .*number of its values/);
  t.match(
    told(`select ${'id,'.repeat(1_664)}id from customer`),
    /^54011 the select list can have at most 1664/,
  );
  t.equal(told(`select ${'id,'.repeat(1_663)}id from customer`), '1664 columns');
  t.match(told(`select ${'id,'.repeat(50_000)}id from customer`), /^54001 .*number of tokens/);
  t.match(told(`select 1 ${'/*'.repeat(16_000)}${'*/'.repeat(16_000)}`), /^54001 .*depth of comments/);
  t.match(told(`select 1 ${'+'.repeat(8_000)} 1`), /^42601 operator too long/);
  t.match(
    told(`select 1 from ${Array.from({ length: 800 }, (_, i) => `customer c${i}`).join(',')}`),
    /^54001 .*number of its tables/,
  );
  t.match(
    told(`with ${Array.from({ length: 4_000 }, (_, i) => `c${i} as (select 1)`).join(',')} select 1`),
    /^54001/,
  );
  t.equal(
    told(`select id from customer where id in (${Array.from({ length: 100_000 }, (_, i) => i).join(',')})`),
    '1 columns',
  );
});
