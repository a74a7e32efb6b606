import t from 'tap';
import { type Asker, type Cell, type Frontends, type Reply, SURFACES } from '../../support/frontends.js';
import { diceFrom } from '../oracle/dice.js';
import { asAsked, randomQuestion } from '../oracle/questions.js';
import { CLERKS_WORLD } from './clerks-world.js';
import { brief } from './reading.js';
import { CLERK, leaksIn } from './shop.js';
import { openTwins } from './twins.js';

/**
 * Random questions of a clerk to two shops that differ only in what clerks may not see, over each surface in turn:
 * every answer, refusal and audit decision is the same. `OSL_TWIN_RUNS` questions, from `OSL_ORACLE_SEED`.
 */
const RUNS = Number(process.env['OSL_TWIN_RUNS'] ?? 400);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_105);

t.setTimeout(6 * 3_600_000);

const { realFronts, twinFronts, askers } = await openTwins(t);

/** A session, opened anew before its token ends. */
const RENEW_MS = 120_000;
let opened = 0;

async function askerOf(of: Frontends, surface: (typeof SURFACES)[number]): Promise<Asker> {
  if (Date.now() - opened > RENEW_MS) {
    for (const a of askers.values()) a.end();
    askers.clear();
    opened = Date.now();
  }
  const key = `${of.pgPort} ${surface}`;
  const known = askers.get(key) ?? (await of.asker(surface, CLERK));
  askers.set(key, known);
  return known;
}

/** Everything that can be told apart, but the order of rows that have none and the scale of equal numbers. */
function told({ outcome, types }: Reply, audited: readonly string[]): string {
  if (outcome.kind === 'refused') return JSON.stringify([outcome, types, audited]);
  const rows = outcome.rows.map((r) => JSON.stringify(r.map(plainNumber)));
  return JSON.stringify([outcome.columns, types, audited, rows.sort()]);
}

function plainNumber(cell: Cell): Cell {
  return cell !== null && /^-?\d+\.\d+$/.test(cell) ? cell.replace(/\.?0+$/, '') : cell;
}

function decisions(of: Frontends): readonly string[] {
  return of
    .takeAudit()
    .map((e) => (e.kind === 'decision' ? `${e.decision} ${e.code}` : `${e.kind} ${e.outcome} ${e.rows}`));
}

t.test('what a clerk may not see changes nothing on any surface', async (t) => {
  const counts = { asked: 0, refused: 0, rows: 0 };
  const started = Date.now();
  const dice = diceFrom(SEED);
  const differing: string[] = [];
  for (let i = 0; i < RUNS && differing.length === 0; i++) {
    const surface = SURFACES[i % SURFACES.length] ?? 'REST';
    const text = asAsked(randomQuestion(CLERKS_WORLD, dice, true));
    const both: string[] = [];
    for (const fronts of [realFronts, twinFronts]) {
      const asker = await askerOf(fronts, surface);
      fronts.takeAudit();
      const reply = await asker.ask(text);
      if (leaksIn(reply.raw).length > 0) differing.push(`a secret in the answer to ${text}`);
      if (fronts === realFronts && reply.outcome.kind === 'refused') counts.refused++;
      if (fronts === realFronts && reply.outcome.kind === 'rows') counts.rows += reply.outcome.rows.length;
      both.push(told(reply, decisions(fronts)));
    }
    counts.asked++;
    if (both[0] !== both[1]) differing.push([surface, text, ...both].join('\n'));
  }
  t.strictSame(differing, [], brief(differing.join('\n')));
  t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
  t.ok(counts.refused < counts.asked / 3, 'most questions are answered');
  t.ok(counts.rows > counts.asked, 'most answers have rows');
});
