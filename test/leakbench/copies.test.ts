import t, { test } from 'tap';
import { ATTACKS } from '../../leakbench/attacks/index.js';
import { COPIES } from '../../leakbench/endpoints/plain-postgres.js';
import { type AttackOutcome, judge } from '../../leakbench/judge.js';
import { createWorlds, dropWorlds } from '../../leakbench/world.js';
import { startNativePostgres } from '../support/native-postgres.js';

/**
 * The bench gives no alarm where nothing is hidden. `OSL_LEAKBENCH_RUNS` says how many attacks are judged, timed ones
 * among them; new worlds are made after each round of all attacks.
 */

t.setTimeout(7_200_000);
const runs = Number(process.env['OSL_LEAKBENCH_RUNS'] ?? 60);
const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';
t.teardown(() => native?.stop());
const PREFIX = `leakbench_copies_${process.pid}`;

test('no attack alarms where nothing is hidden', { skip }, async (t) => {
  const url = native?.url ?? '';
  const counts = new Map<AttackOutcome, number>();
  const alarms: string[] = [];
  for (let done = 0; done < runs; done += ATTACKS.length) {
    const worlds = await createWorlds(url, PREFIX, COPIES.data);
    const endpoint = await COPIES.start(worlds);
    try {
      for (const attack of ATTACKS.slice(0, runs - done)) {
        const { outcome, seen } = await judge(endpoint, attack);
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
        if (outcome === 'leak') alarms.push(`${attack.id}: ${seen?.a} ≠ ${seen?.b}`);
      }
    } finally {
      await endpoint.close();
      await dropWorlds(url, PREFIX);
    }
  }
  t.comment(JSON.stringify(Object.fromEntries(counts)));
  t.strictSame(alarms, []);
  t.equal(
    [...counts.values()].reduce((sum, n) => sum + n, 0),
    runs,
  );
});
