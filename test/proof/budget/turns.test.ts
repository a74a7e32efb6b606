import t from 'tap';
import { FairSlots } from '../../../src/base/threads/fair-slots.js';

t.test('callers take turns, however many each has waiting', async (t) => {
  const turns = new FairSlots();
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
  const turns = new FairSlots();
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

t.test('as many at a time as there are places, and who leaves the queue takes none', async (t) => {
  const turns = new FairSlots(2);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (caller: string, name: string, signal: AbortSignal | null = null): Promise<void> =>
    turns.take(
      caller,
      () => {
        begun.push(name);
        return new Promise((done) => ends.set(name, done));
      },
      signal,
    );
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const leaving = new AbortController();
  const [a1, a2] = [ask('a', 'a1'), ask('a', 'a2')];
  const left = ask('b', 'b1', leaving.signal);
  const [a3, c1] = [ask('a', 'a3'), ask('c', 'c1')];
  await settled();
  t.same(begun, ['a1', 'a2']);
  leaving.abort(new Error('no more'));
  await t.rejects(left, /no more/);
  await t.rejects(ask('b', 'b2', leaving.signal), /no more/, 'nor is one waited for that is late already');
  ends.get('a2')?.();
  await a2;
  await settled();
  t.same(begun, ['a1', 'a2', 'a3']);
  ends.get('a1')?.();
  ends.get('a3')?.();
  await settled();
  t.same(begun, ['a1', 'a2', 'a3', 'c1']);
  ends.get('c1')?.();
  await Promise.all([a1, a3, c1]);
  const again = [ask('d', 'd1'), ask('d', 'd2'), ask('d', 'd3')];
  await settled();
  t.same(begun.slice(4), ['d1', 'd2'], 'both places are free again');
  for (const name of ['d1', 'd2', 'd3']) {
    ends.get(name)?.();
    await settled();
  }
  await Promise.all(again);
});
