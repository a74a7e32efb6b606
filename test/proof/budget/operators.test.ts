import pg from 'pg';
import t from 'tap';
import { partOf } from '../../support/part.js';
import { Gateway } from './gateway.js';

/**
 * Operators over as many passages as a question may have do not hold the thread that serves everybody: they work in one
 * of their own. The gateway runs in a process of its own and measures itself, in time on a processor.
 */

const MOST_MS = 50;

t.setTimeout(600_000);
const gateway = await Gateway.start('notes');
t.teardown(() => gateway.end());

const from = "RETRIEVE(facet => 'notes', query => 'w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12', top_k => 1000)";
const ask = (select: string, source = from) =>
  gateway.post('/osl/query', JSON.stringify({ osql: `select ${select} from ${source}` }), 'token');
const point = () =>
  gateway.post(
    '/osl/query',
    JSON.stringify({ osql: 'select region from osl.entities.article where id = 7' }),
    'token',
  );

/** `n` labels with examples, as a literal. */
function labels(n: number, examples: number): string {
  const list = Array.from({ length: n }, (_, i) => ({
    label: `l${i}`,
    examples: Array.from({ length: examples }, (_, j) => `w${i}x${j}`),
  }));
  return `'${JSON.stringify(list)}'::jsonb`;
}

const OPERATORS: Readonly<Record<string, string>> = {
  OUTLIER: 'outlier(text, k => 5)',
  DEDUP: 'dedup(text)',
  CLUSTER: 'cluster(text, k => 50)',
  'RANK, spread': 'rank(text, lambda => 0.5)',
  'TAG with many labels': `tag(text, ${labels(3, 1_000)}, threshold => 0.2)`,
  'SIMILARITY to a long text': `similarity(text, '${'w1 w22 '.repeat(2_800)}')`,
};

t.test('no operator holds it', async (t) => {
  for (const [name, operator] of partOf('operators', Object.entries(OPERATORS), 3)) {
    let answer = { status: 0, body: '' };
    const ms = await gateway.heldBy(async () => {
      answer = await ask(`${operator} as o`);
    }, MOST_MS);
    t.equal(answer.status, 200, `${name}: ${answer.body.slice(0, 200)}`);
    t.ok(ms <= MOST_MS, `${name}: held for ${ms.toFixed(0)} ms`);
  }
});

t.test('point questions are answered while an operator works', async (t) => {
  const began = performance.now();
  let took = 0;
  const long = ask('cluster(text, k => 1000) as o').then(({ status }) => {
    took = performance.now() - began;
    return status;
  });
  let longest = 0;
  let answered = 0;
  for (; took === 0; answered++) {
    const asked = performance.now();
    t.equal((await point()).status, 200);
    longest = Math.max(longest, performance.now() - asked);
  }
  t.equal(await long, 200);
  t.ok(longest < took / 2, `of ${answered} the slowest took ${longest.toFixed(0)} ms of ${took.toFixed(0)}`);
});

t.test('too much work is refused with its code before it begins', async (t) => {
  const ms = await gateway.heldBy(async () => {
    const { status, body } = await ask(`classify(text, ${labels(40, 1_000)}) as o`);
    t.equal(status, 400);
    t.match(body, /E0511/);
    t.match(body, /CLASSIFY/);
  }, MOST_MS);
  t.ok(ms <= MOST_MS, `held for ${ms.toFixed(0)} ms`);
});

t.test('no query holds it, however long', async (t) => {
  const asked = "facet => 'notes', query => $1, top_k => 5";
  const searched = (query: string) =>
    gateway.post(
      '/osl/query',
      JSON.stringify({
        osql: `select highlights, score_parts
          from RETRIEVE(${asked}, highlight => true, explain_score => true)`,
        parameters: [query],
      }),
      'token',
    );
  for (const [query, expected] of [
    ['w1 w2Parts w3 '.repeat(7_000), 200],
    ['w1 w2Parts w3 '.repeat(70_000), 400],
    [Array.from({ length: 15_000 }, (_, i) => `w${i}`).join(' '), 400],
  ] as const) {
    const ms = await gateway.heldBy(async () => t.equal((await searched(query)).status, expected), MOST_MS);
    t.ok(ms <= MOST_MS, `${query.length} units: held for ${ms.toFixed(0)} ms`);
  }
});

t.test('a time-out stops an operator, and the next one works', async (t) => {
  const { token } = await gateway.tokens();
  const [host, port] = ['127.0.0.1', gateway.wirePort];
  const client = new pg.Client({ host, port, user: 'user:ann', password: token, database: 'osl' });
  await client.connect();
  t.teardown(() => client.end());
  const slow = `select ${Object.values(OPERATORS)
    .map((o, i) => `cluster(text, k => ${900 + i}) as o${i}, ${o} as p${i}`)
    .join(', ')} from ${from}`;
  await client.query('set statement_timeout = 700');
  const began = performance.now();
  await t.rejects(client.query(slow), { code: '57014' });
  t.ok(performance.now() - began < 2_000, 'at its time, not when it would have been done');
  await client.query('set statement_timeout = 0');
  const { rows } = await client.query(`select outlier(text) as o from ${from} limit 1`);
  t.equal(rows.length, 1);
});
