import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Caller, startFrontends } from '../../support/frontends.js';
import { nativeOfRun } from '../../support/service.js';
import { CLERKS_WORLD } from '../attacks/clerks-world.js';
import { readings } from '../attacks/reading.js';
import { AUDITOR, CLERK, HELPED, MIXED, openShop } from '../attacks/shop.js';
import { ATTACKS } from '../attacks/table.js';
import { diceFrom } from '../oracle/dice.js';
import { asAsked, randomQuestion } from '../oracle/questions.js';
import { TEXTS } from '../parity/texts.js';
import { proveAtOnce, Tally, ThriceAsker } from './thrice.js';

/**
 * The two lanes of the wire are one: what is asked slowly, until it makes a route, and by the route is answered with the
 * same bytes and leaves the same records. On the embedded engine nothing goes fast, and nothing is asked here.
 */

t.setTimeout(3_600_000);

const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_105);
const QUESTIONS = Number(process.env['OSL_LANES_RUNS'] ?? 100);

const native = await nativeOfRun();
if (native === null) t.pass('no native Postgres for this run');
else {
  await native.stop();
  proveAtOnce();
  await suite();
}

async function suite(): Promise<void> {
  const shop = await openShop();
  const fronts = await startFrontends(shop.open, { fast: true });
  const askers = new Map<string, ThriceAsker>();
  t.teardown(async () => {
    for (const a of askers.values()) a.end();
    await fronts.stop();
    await shop.close();
  });
  const askerOf = async (caller: Caller, tally: Tally): Promise<ThriceAsker> => {
    const key = JSON.stringify(caller);
    const known = askers.get(key) ?? (await ThriceAsker.open(fronts, caller, tally));
    askers.set(key, known);
    return known;
  };
  /** So much of what is answered must go fast, or the lane is silently not taken. */
  const judge = async (t: Test, tally: Tally, least: number): Promise<void> => {
    await tally.compareRecords(t, join(shop.dir, 'data', 'audit'));
    const { asked, answered, fast } = tally;
    t.comment(`${asked} questions, ${answered} answered, ${fast} fast`);
    t.ok(fast >= least * answered, `${fast} of ${answered} answers went fast`);
  };

  t.test('what every surface answers alike', async (t) => {
    const tally = new Tally();
    for (const caller of [CLERK, AUDITOR, MIXED, HELPED]) {
      const asker = await ThriceAsker.open(fronts, caller, tally);
      for (const text of TEXTS) {
        await asker.simple(t, text);
        if (caller === CLERK || caller === MIXED) await asker.prepared(t, text);
      }
      asker.end();
    }
    await judge(t, tally, 0.8);
  });

  t.test('attacks', async (t) => {
    const tally = new Tally();
    for (const { tries, benign } of ATTACKS) {
      for (const [text, , caller = CLERK] of [...tries, ...benign]) {
        for (const reading of readings(text)) await (await askerOf(caller, tally)).simple(t, reading);
      }
    }
    await judge(t, tally, 0.7);
  });

  t.test('random questions of a clerk', async (t) => {
    const tally = new Tally();
    const dice = diceFrom(SEED);
    const asker = await ThriceAsker.open(fronts, CLERK, tally, 'database');
    for (let i = 0; i < QUESTIONS; i++)
      await asker.simple(t, asAsked(randomQuestion(CLERKS_WORLD, dice, true)));
    asker.end();
    await judge(t, tally, 0.5);
  });
}
