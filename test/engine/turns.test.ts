import { test } from 'tap';
import { unboundedMemory } from '../../src/engine/answer-memory.js';
import { FairScheduler, type SchedulerClock, SLICE_BYTES, type Stream } from '../../src/engine/turns.js';
import { type Transport, UpstreamSession } from '../../src/engine/upstream-session.js';
import { dataRow } from './fixture.js';

/** An event loop whose turns and time are the test's. */
class Loop implements SchedulerClock {
  #now = 0;
  #next: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  next(turn: () => void): void {
    this.#next.push(turn);
  }

  pass(ms: number): void {
    this.#now += ms;
  }

  /** One turn; false where nothing was due. */
  turn(): boolean {
    const due = this.#next.splice(0);
    for (const turn of due) turn();
    return due.length > 0;
  }
}

/** Has so many slices to pass on, each of which takes `ms`. */
function stream(loop: Loop, name: string, slices: number, ms: number, log: string[]): Stream {
  let left = slices;
  return {
    slice: (bytes) => {
      log.push(bytes === SLICE_BYTES ? name : `${name} of ${bytes}`);
      loop.pass(ms);
      left -= 1;
      return left > 0;
    },
  };
}

test('streams go round, a slice each, and a turn of the loop is over after half a millisecond', async (t) => {
  const loop = new Loop();
  const turns = new FairScheduler(loop);
  const log: string[] = [];
  turns.join(stream(loop, 'a', 5, 0.2, log));
  turns.join(stream(loop, 'b', 2, 0.2, log));
  turns.join(stream(loop, 'c', 3, 0.2, log));
  t.same(log, [], 'nothing before the next turn');
  const each: string[] = [];
  while (loop.turn()) each.push(log.splice(0).join(''));
  t.same(each, ['abc', 'abc', 'aca', 'a']);
});

test('a slice that takes long is alone in its turn, and its stream waits for all others', async (t) => {
  const loop = new Loop();
  const turns = new FairScheduler(loop);
  const log: string[] = [];
  turns.join(stream(loop, 'slow', 2, 30, log));
  turns.join(stream(loop, 'quick', 3, 0.1, log));
  const each: string[] = [];
  while (loop.turn()) each.push(log.splice(0).join(' '));
  t.same(each, ['slow', 'quick slow', 'quick quick']);
});

test('whoever leaves is asked no more, and whoever passes rows on by itself has its turn too', async (t) => {
  const loop = new Loop();
  const turns = new FairScheduler(loop);
  const log: string[] = [];
  const gone = stream(loop, 'gone', 9, 0.1, log);
  turns.join(gone);
  turns.join(stream(loop, 'a', 1, 0.1, log));
  turns.leave(gone);
  const mine = turns.wait().then(() => log.push('mine'));
  loop.turn();
  await mine;
  t.same(log, ['a', 'mine']);
});

/** An upstream that always has more, as a fast one over a fast network; it hands over 64 KiB at a time, 32 times. */
class Torrent implements Transport {
  readonly graceMs = 0;
  paused = false;
  #receive: (chunk: Uint8Array) => void = () => undefined;

  attach(receive: (chunk: Uint8Array) => void): void {
    this.#receive = receive;
  }

  /** What the system hands over before anything else is heard. */
  poll(): void {
    for (let n = 0; n < 32 && !this.paused; n++) this.#receive(CHUNK);
  }

  write(): boolean {
    return true;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  async cancel(): Promise<void> {}

  destroy(): void {}
}

const ROW = dataRow(['x'.repeat(121)]);
const CHUNK = Buffer.concat(Array.from({ length: 65_536 / ROW.length }, () => ROW));

/** A session in front of a torrent, and the bytes that it has passed on. */
function running(wait: () => void | Promise<void> = () => undefined) {
  const torrent = new Torrent();
  const session = new UpstreamSession(torrent, unboundedMemory());
  const passed = { bytes: 0 };
  session.submit({
    send: (out) => out.sync(),
    subject: null,
    largeRow: () => 'pass' as const,
    starved: () => undefined,
    rows: (bytes) => {
      passed.bytes += bytes.length;
      const end = performance.now() + 1; // what encoding costs, more or less
      while (performance.now() < end);
      return wait();
    },
    message: () => undefined,
    ready: () => undefined,
    lost: () => undefined,
  });
  return { torrent, session, passed };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('three upstreams that always have more pass 32 KiB on at once, then a slice a turn, each as many', async (t) => {
  const all = [running(), running(), running()];
  for (const { torrent } of all) torrent.poll();
  for (const { torrent, passed } of all) {
    t.ok(passed.bytes <= 2 * SLICE_BYTES + ROW.length, `${passed.bytes} at once`);
    t.equal(torrent.paused, true, 'and the upstream is not read');
  }
  let most = 0;
  for (let n = 0; n < 120; n++) {
    const before = all.reduce((sum, { passed }) => sum + passed.bytes, 0);
    await nextTurn();
    most = Math.max(most, all.reduce((sum, { passed }) => sum + passed.bytes, 0) - before);
    for (const { torrent } of all) torrent.poll();
  }
  t.ok(most <= 2 * (SLICE_BYTES + ROW.length), `${most} bytes in one turn`);
  const [least, , greatest] = all.map(({ passed }) => passed.bytes).sort((a, b) => a - b);
  t.ok(Number(greatest) - Number(least) <= 65_536 + SLICE_BYTES, `from ${least} to ${greatest}`);
  t.ok(Number(least) > 20 * SLICE_BYTES, 'and nobody stands still');
  for (const { session } of all) session.destroy();
});

test('a reader that lags gets its stream no more turns, and the others theirs', async (t) => {
  const lagging = running(() => new Promise(() => undefined));
  const other = running();
  lagging.torrent.poll();
  other.torrent.poll();
  const { bytes } = lagging.passed;
  for (let n = 0; n < 20; n++) {
    await nextTurn();
    other.torrent.poll();
    lagging.torrent.poll();
  }
  t.equal(lagging.passed.bytes, bytes);
  t.equal(lagging.torrent.paused, true);
  t.ok(other.passed.bytes > 15 * SLICE_BYTES);
  lagging.session.destroy();
  other.session.destroy();
});
