import { join } from 'node:path';
import t, { test } from 'tap';
import { ATTACKS, type Attack, CLASSES } from '../../leakbench/attacks/index.js';
import type { EndpointKind } from '../../leakbench/endpoint.js';
import { OSL_MCP, OSL_REST, OSL_UNORDERED, OSL_WIRE } from '../../leakbench/endpoints/osl.js';
import { COPIES, ROW_SECURITY, UNPROTECTED } from '../../leakbench/endpoints/plain-postgres.js';
import { rankScore } from '../../leakbench/judge.js';
import { page } from '../../leakbench/report.js';
import { type EndpointRun, runEndpoints } from '../../leakbench/run.js';
import { startNativePostgres } from '../support/native-postgres.js';

/**
 * The bench finds what is there and nothing else, and nothing at the gateway: with a part of the attacks, one of each
 * source in each class. Whole runs, and times, are for `leakbench/main.ts` and `npm run nightly`.
 */

t.setTimeout(600_000);
const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';
t.teardown(() => native?.stop());
process.env['LEAKBENCH_OSL'] = `${process.execPath} ${join(process.cwd(), 'bin', 'osl.js')}`;
const url = native?.url ?? '';

const UNTIMED = ATTACKS.filter((a) => a.class !== 'timing');
const PART = someOf(UNTIMED);

/** The first attack of each class, source and language. */
function someOf(attacks: readonly Attack[]): readonly Attack[] {
  const known = new Set<string>();
  return attacks.filter(({ class: of, source, language = 'sql', before }) => {
    const key = `${of} ${source} ${language} ${before !== undefined}`;
    const isFirst = !known.has(key);
    known.add(key);
    return isFirst;
  });
}

function ofIds(...ids: readonly string[]): readonly Attack[] {
  return UNTIMED.filter((a) => ids.includes(a.id));
}

async function runOne(kind: EndpointKind, attacks: readonly Attack[]): Promise<EndpointRun> {
  const [run] = await runEndpoints([kind], url, attacks);
  if (run === undefined) throw new Error('no run');
  return run;
}

function leaksOf({ verdicts }: EndpointRun): readonly string[] {
  return verdicts.filter((v) => v.outcome === 'leak').map((v) => v.attack.id);
}

function answeredBy({ usable }: EndpointRun): number {
  return [...usable.values()].reduce((n, { answered }) => n + answered, 0);
}

/** Anchors and the gateway run at the same time: a run waits for its database most of the time. */
const started =
  native === null
    ? null
    : Promise.all([
        runOne(COPIES, PART),
        runOne(UNPROTECTED, PART),
        runOne(
          ROW_SECURITY,
          ofIds(
            'catalog-01',
            'catalog-06',
            'catalog-09',
            'catalog-17',
            'catalog-31',
            'inference-05',
            'joins-01',
            'joins-02',
          ),
        ),
        runEndpoints([OSL_WIRE, OSL_REST, OSL_MCP], url, PART),
        runOne(OSL_UNORDERED, ofIds('inference-05', 'inference-06', 'inference-07')),
      ] as const);

async function runs() {
  if (started === null) throw new Error('no native Postgres');
  const [copies, unprotected, rowSecurity, gateway, unordered] = await started;
  const [wire, rest, mcp] = gateway;
  if (wire === undefined || rest === undefined || mcp === undefined) throw new Error('a run is missing');
  return { copies, unprotected, rowSecurity, wire, rest, mcp, unordered };
}

test('attacks have numbers of their own, sources, and there are enough', (t) => {
  t.equal(new Set(ATTACKS.map((a) => a.id)).size, ATTACKS.length);
  t.ok(ATTACKS.length >= 450, `${ATTACKS.length} attacks`);
  t.ok(new Set(ATTACKS.map((a) => a.source)).size >= 40, 'of many sources');
  t.strictSame(new Set(PART.map((a) => a.class)), new Set(CLASSES.filter((name) => name !== 'timing')));
  t.end();
});

test('what has nothing hidden has no leak', { skip }, async (t) => {
  const { copies } = await runs();
  t.strictSame(leaksOf(copies), []);
  t.equal(answeredBy(copies), 36);
});

test('tables without protection leak in every class', { skip }, async (t) => {
  const { unprotected } = await runs();
  const classes = leaksOf(unprotected).map((id) => id.replace(/-\d+$/, ''));
  t.strictSame(new Set(classes), new Set(PART.map((a) => a.class)));
});

test('row security leaks what is known of it: sizes, statistics, estimates, names, and the order of groups', {
  skip,
}, async (t) => {
  const { rowSecurity } = await runs();
  const known = ['catalog-01', 'catalog-06', 'catalog-09', 'catalog-17', 'catalog-31', 'inference-05'];
  t.strictSame(leaksOf(rowSecurity), known);
});

test('the gateway leaks nothing, over the Postgres protocol, REST and MCP', { skip }, async (t) => {
  const { wire, rest, mcp } = await runs();
  for (const run of [wire, rest, mcp]) t.strictSame(leaksOf(run), [], run.name);
  t.equal(answeredBy(wire), 36, 'and answers what the clerk may ask');
  for (const run of [rest, mcp]) t.ok(answeredBy(run) >= 23, `${answeredBy(run)} questions have a form`);
  const own = mcp.verdicts.filter((v) => v.attack.language === 'mcp');
  t.ok(own.length > 0 && own.every((v) => v.outcome !== 'not expressible'), 'its own tools are tried too');
});

test('without `order` in its policy, the order of groups depends on statistics', { skip }, async (t) => {
  const { unordered } = await runs();
  t.strictSame(leaksOf(unordered), ['inference-05', 'inference-06']);
});

test('the page shows every run, and escapes what it quotes', { skip }, async (t) => {
  const { unprotected } = await runs();
  const html = page([unprotected]);
  t.match(html, 'unprotected');
  t.ok(
    leaksOf(unprotected).every((id) => html.includes(id)),
    'with each leak',
  );
  t.notMatch(html, /<script|src=|href="http/);
  t.notMatch(html.replace(/<style>.*<\/style>/s, '').replace(/<[^<>]*>/g, ''), /[<>]/);
});

test('times are compared by their ranks', (t) => {
  const around = (ms: number) => Array.from({ length: 40 }, (_, i) => ms + (i % 7) / 10);
  t.ok(rankScore(around(2), around(1)) > 7);
  t.equal(rankScore(around(1), around(1)), 0);
  t.end();
});
