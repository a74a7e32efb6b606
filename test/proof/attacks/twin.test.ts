import t from 'tap';
import { differ } from '../../support/differ.js';
import type { Reply } from '../../support/frontends.js';
import { brief, inOrder, mayShow, observable, readings } from './reading.js';
import { AUDITOR, CLERK, leaksIn } from './shop.js';
import { ATTACKS } from './table.js';
import { askerOf, openTwins } from './twins.js';

/** Two shops that differ only in what a clerk may not see. To a clerk they must be one and the same. */

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const twins = await openTwins(t);
const { realFronts, twinFronts } = twins;

t.test('a shop that differs only in what is hidden answers the same', async (t) => {
  for (const surface of ['extended wire', 'REST'] as const) {
    for (const { n, name, tries } of ATTACKS) {
      await t.test(`${surface}: ${n}. ${name}`, async (t) => {
        for (const [text, expected, caller = CLERK] of tries) {
          if (mayShow(expected)) continue;
          for (const reading of readings(text)) {
            const [real, other] = await Promise.all(
              [realFronts, twinFronts].map(async (f) =>
                (await askerOf(twins, f, surface, caller)).ask(reading),
              ),
            );
            if (real === undefined || other === undefined) throw new Error('two shops give two replies');
            t.strictSame(unordered(other, reading), unordered(real, reading), brief(reading));
          }
        }
      });
    }
  }
});

/** Everything that can be told apart, but the order of rows that have none. */
function unordered(reply: Reply, text: string): unknown {
  const { outcome } = reply;
  if (outcome.kind === 'refused') return outcome;
  return { ...outcome, rows: inOrder(text, outcome.rows) };
}

t.test('the harness finds what it looks for', async (t) => {
  const auditor = await realFronts.asker('simple wire', AUDITOR);
  const found = new Set<string>();
  for (const { tries } of ATTACKS) {
    for (const [text] of tries) {
      for (const reading of readings(text))
        for (const s of leaksIn((await auditor.ask(reading)).raw)) found.add(s);
    }
  }
  auditor.end();
  t.ok(found.size > 10, `an auditor's answers hold ${found.size} of the secrets`);
  t.ok(found.has('770077007') && found.has('SECRET') && found.has('1977-07-17'));
  const text = 'select id, ssn from customer order by id';
  const [one, other] = await Promise.all(
    [realFronts, twinFronts].map(async (f) => observable(await (await f.asker('REST', AUDITOR)).ask(text))),
  );
  differ(t, other, one, 'an auditor tells the two shops apart');
});
