import type { Relation } from 'osl-compiler';
import t from 'tap';
import { planOf } from '../../../src/ask/data/planning.js';
import { createParsing } from '../../../src/ask/parsing/index.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { CALLERS } from '../golden/catalog.js';
import { Gateway } from './gateway.js';

/** Callers with large texts do not keep those with others waiting. */

const LARGE = 1_040_000;
/** What the grammar's own scanner would go through again and again. */
const comments = (seed: number): string => `select ${seed} ${'/**/'.repeat((LARGE - 20) / 4)}`;
/** Above what is parsed where it is asked. */
const long = (seed: number): string => `select ${seed}, ${'id + 1, '.repeat(400)} name from customer`;
/** What takes the grammar longest within the limits. */
const costly = (seed: number): string => `select ${seed}, ${'1,'.repeat(11_000)} 1`;

t.setTimeout(600_000);

t.test('a text of another size is not waited for, and callers with such take turns', async (t) => {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const parsing = createParsing({ log });
  t.teardown(() => parsing.close());
  const order: string[] = [];
  const parse = async (caller: string, name: string, text: string): Promise<void> => {
    await parsing.parse(text, caller);
    order.push(name);
  };
  await Promise.all([parse('a', '', costly(0)), parse('b', '', long(0))]); // both threads stand
  order.length = 0;
  const large = [1, 2, 3, 4, 5, 6].map((i) => parse('a', `a${i}`, costly(i)));
  const other = parse('c', 'c1', costly(9));
  const usual = [1, 2, 3].map((i) => parse('b', `b${i}`, long(i)));
  await Promise.all([...large, other, ...usual]);
  const place = (name: string): number => order.indexOf(name);
  t.ok(place('b3') < place('a3'), `texts of the usual size do not wait for large ones: ${order}`);
  t.ok(place('c1') <= place('a3'), `large ones of two callers take turns: ${order}`);
});

/** A catalog that never says what it has, as a fault of the compiler would have it. */
class Endless extends Map<string, Relation> {
  override get(): Relation | undefined {
    for (;;);
  }
}

t.test('compiling that does not end is stopped and refused, and the operator is told', async (t) => {
  const test = await startTestService({ embedded: true });
  t.teardown(() => test.close());
  const { service } = test;
  const { manifest } = service.model();
  const catalog = { ...manifest.catalog, version: 'endless', relations: new Endless() };
  const access = CALLERS.get('regional')?.access;
  if (access === undefined) throw new Error('no caller');
  const caller = { access, manifest: { ...manifest, catalog }, identity: { subject: 'user:ann' } };
  const text = `select ${'id, '.repeat(100)} name from customer`;
  const question = { body: { kind: 'osql', text }, parameterOids: [] };
  // No more of a caller, a question and a record is looked at on the way to its plan.
  const planned = planOf as unknown as (...parts: readonly unknown[]) => unknown;
  t.throws(() => planned(service, caller, question, {}), { code: 'E0511', sqlstate: '54001' });
  t.match(test.lines.at(-1), {
    level: 'error',
    message: 'a text was not compiled',
    fields: { caller: 'user:ann', size: text.length },
  });
});

t.test('comments without pause do not keep others waiting', async (t) => {
  const gateway = await Gateway.start();
  t.teardown(() => gateway.end());
  const { root } = await gateway.tokens();
  const wire = await connectPg({ port: gateway.wirePort, user: 'user:root', password: root });
  t.teardown(() => wire.end());
  let seed = 0;
  const asked = async (): Promise<number> => {
    const began = performance.now();
    const reply = await gateway.post('/osl/query', JSON.stringify({ osql: long(++seed) }), 'token');
    if (reply.status !== 200) throw new Error(reply.body);
    return performance.now() - began;
  };
  const median = async (): Promise<number> => {
    const took: number[] = [];
    for (let i = 0; i < 9; i++) took.push(await asked());
    return took.sort((a, b) => a - b)[4] ?? 0;
  };
  await median();
  let beside = true;
  const send = async (one: () => Promise<unknown>): Promise<number> => {
    let sent = 0;
    for (; beside; sent++) await one();
    return sent;
  };
  const alone = await median();
  const senders = [
    send(() => gateway.post('/osl/query', JSON.stringify({ osql: comments(++seed) }), 'root')),
    send(() => gateway.post('/osl/query', JSON.stringify({ osql: comments(++seed), explain: true }), 'root')),
    send(() => wire.query(comments(++seed))),
  ];
  // Each may be in its turn of the main thread when the other's comes: three of at most 50 ms, and the machine's.
  let together = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 4 && together > 5 * alone + 200; i++) together = Math.min(together, await median());
  beside = false;
  const sent = await Promise.all(senders);
  t.ok(together <= 5 * alone + 200, `${alone.toFixed(0)} ms alone, ${together.toFixed(0)} ms beside`);
  t.ok(
    sent.every((n) => n > 0),
    `comments were answered: ${sent}`,
  );
});
