import t from 'tap';
import { Turns } from '../../../src/base/threads/turns.js';

t.test('callers take turns, however many each has waiting', async (t) => {
  const turns = new Turns();
  const order: string[] = [];
  const ask = (caller: string, name: string): Promise<void> =>
    turns.take(caller, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push(name);
    });
  await Promise.all([
    ...['a1', 'a2', 'a3', 'a4'].map((n) => ask('a', n)),
    ...['b1', 'b2'].map((n) => ask('b', n)),
    ask('c', 'c1'),
  ]);
  t.same(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

t.test('a caller has only so many waiting, and a failure hands the turn on', async (t) => {
  const turns = new Turns();
  const failing = turns.take('a', async () => {
    throw new Error('not today');
  });
  const waiting = Array.from({ length: 32 }, (_, i) => turns.take('a', async () => i));
  t.ok(turns.isFull('a'));
  t.notOk(turns.isFull('b'));
  await t.rejects(failing, /not today/);
  t.same(
    await Promise.all(waiting),
    Array.from({ length: 32 }, (_, i) => i),
  );
  t.notOk(turns.isFull('a'));
});
