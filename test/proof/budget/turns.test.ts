import t from 'tap';
import { FairSlots } from '../../../src/base/threads/fair-slots.js';
import { FairTurns } from '../../../src/base/threads/main-thread-time.js';
import { LoopTurns } from '../../../wire/loop-turns.js';

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

t.test(
  'work of the main thread is spread over turns of the event loop, round robin between callers',
  async (t) => {
    const turns = new FairTurns();
    const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const order: string[] = [];
    let turn = 0;
    const busy =
      (name: string, ms: number) =>
      (hasWaited: boolean): string => {
        for (const end = performance.now() + ms; performance.now() < end; );
        order.push(`${name} in ${turn}${hasWaited ? '' : ' at once'}`);
        return name;
      };
    t.equal(turns.run('a', busy('a1', 3)), 'a1', 'at once, while the turn has time');
    t.equal(turns.run('a', busy('a2', 3)), 'a2');
    const waiting = [
      ...['a3', 'a4', 'a5'].map((name) => turns.run('a', busy(name, 6))),
      turns.run('b', busy('b1', 1)),
      turns.run('b', () => {
        throw new Error('not today');
      }),
    ];
    const failing = waiting.pop();
    const settled = Promise.allSettled([...waiting, failing]);
    while (order.length < 6) {
      await nextTurn();
      turn += 1;
    }
    t.same(order, ['a1 in 0 at once', 'a2 in 0 at once', 'a3 in 0', 'b1 in 1', 'a4 in 1', 'a5 in 2']);
    t.same(
      (await settled).map((s) => (s.status === 'fulfilled' ? s.value : String(s.reason))),
      ['a3', 'a4', 'a5', 'b1', 'Error: not today'],
    );
    await nextTurn();
    t.equal(turns.run('a', busy('a6', 0)), 'a6', 'at once again');
  },
);

t.test('steps of many connections are spread over turns of the event loop', async (t) => {
  const turns = new LoopTurns(16);
  let resumed = 0;
  const steps = Array.from({ length: 40 }, () => turns.take());
  for (const step of steps) void step?.then(() => (resumed += 1));
  t.equal(steps.filter((step) => step === null).length, 16, 'the first need not wait');
  const counts: number[] = [];
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    await null;
    counts.push(resumed);
  }
  t.same(counts, [16, 24, 24]);
});
