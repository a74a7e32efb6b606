import { join } from 'node:path';
import t, { test } from 'tap';
import { ATTACKS } from '../../leakbench/attacks/index.js';
import { COPIES, UNPROTECTED } from '../../leakbench/endpoints/anchors.js';
import { OSL_REST, OSL_UNORDERED, OSL_WIRE } from '../../leakbench/endpoints/osl.js';
import { ROW_SECURITY } from '../../leakbench/endpoints/row-security.js';
import { rankScore } from '../../leakbench/judge.js';
import { type Run, runEndpoint } from '../../leakbench/run.js';
import { startNativePostgres } from '../support/native-postgres.js';

/** The bench finds what is there and nothing else, and nothing at the gateway. Timing is left to whole runs. */

t.setTimeout(600_000);
const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';
t.teardown(() => native?.stop());
process.env['LEAKBENCH_OSL'] = `${process.execPath} ${join(process.cwd(), 'bin', 'osl.js')}`;

const UNTIMED = ATTACKS.filter((a) => a.class !== 'timing');
const url = native?.url ?? '';

function leaksOf({ verdicts }: Run): readonly string[] {
  return verdicts.filter((v) => v.outcome === 'leak').map((v) => v.attack.id);
}

function answeredBy({ usable }: Run): number {
  return [...usable.values()].reduce((n, { answered }) => n + answered, 0);
}

test('attacks have numbers of their own, and there are enough', (t) => {
  t.equal(new Set(ATTACKS.map((a) => a.id)).size, ATTACKS.length);
  t.ok(ATTACKS.length >= 240, `${ATTACKS.length} attacks`);
  t.end();
});

test('what has nothing hidden has no leak', { skip }, async (t) => {
  const run = await runEndpoint(COPIES, url, UNTIMED);
  t.strictSame(leaksOf(run), []);
  t.equal(answeredBy(run), 36);
});

test('tables without protection leak in every class', { skip }, async (t) => {
  const some = UNTIMED.filter((a) => /-0[1-4]$/.test(a.id) || a.class === 'inference');
  const leaks = leaksOf(await runEndpoint(UNPROTECTED, url, some));
  t.strictSame(new Set(leaks.map((id) => id.replace(/-\d+$/, ''))), new Set(some.map((a) => a.class)));
});

test('row security leaks what is known of it: sizes, statistics, estimates, and the order of groups', {
  skip,
}, async (t) => {
  const some = UNTIMED.filter((a) => ['catalog', 'inference', 'joins'].includes(a.class));
  const leaks = leaksOf(await runEndpoint(ROW_SECURITY, url, some));
  for (const id of ['catalog-01', 'catalog-06', 'catalog-09', 'catalog-17', 'inference-05'])
    t.ok(leaks.includes(id), id);
  t.notOk(leaks.some((id) => id.startsWith('joins')));
});

test('the gateway leaks nothing, over the Postgres protocol and over REST', { skip }, async (t) => {
  const wire = await runEndpoint(OSL_WIRE, url, UNTIMED);
  t.strictSame(leaksOf(wire), []);
  t.equal(answeredBy(wire), 36, 'and answers what the clerk may ask');
  const rest = await runEndpoint(OSL_REST, url, UNTIMED);
  t.strictSame(leaksOf(rest), []);
  t.ok(answeredBy(rest) >= 23, `${answeredBy(rest)} questions have a form in REST`);
});

test('without `order` in its policy, the order of groups depends on statistics', { skip }, async (t) => {
  const some = UNTIMED.filter((a) => a.class === 'inference');
  t.strictSame(leaksOf(await runEndpoint(OSL_UNORDERED, url, some)), ['inference-05', 'inference-06']);
});

test('times are compared by their ranks', (t) => {
  const around = (ms: number) => Array.from({ length: 40 }, (_, i) => ms + (i % 7) / 10);
  t.ok(rankScore(around(2), around(1)) > 7);
  t.equal(rankScore(around(1), around(1)), 0);
  t.end();
});
