import { test } from 'tap';
import { unboundedMemory } from '../../src/engine/answer-memory.js';
import {
  FairScheduler,
  type SchedulerClock,
  SLICE_BYTES,
  type Stream,
} from '../../src/engine/fair-scheduler.js';
import { FairShare, type FairShareParty } from '../../src/engine/fair-share.js';
import { type Transport, UpstreamSession } from '../../src/engine/upstream-session.js';
import { dataRow } from './fixture.js';

/** Places that parties take and give back, as a pool does, in one line after the other. */
class Places {
  readonly share: FairShare<string>;
  readonly size: number;
  readonly held: FairShareParty[] = [];
  #asked = 0;

  constructor(size: number, reserve = 0.25) {
    this.size = size;
    this.share = new FairShare(reserve);
  }

  ask(party: FairShareParty): this {
    this.share.wait(party, `${party} ${this.#asked++}`);
    this.serve();
    return this;
  }

  end(party: FairShareParty): this {
    this.held.splice(this.held.indexOf(party), 1);
    this.share.giveBack(party);
    this.serve();
    return this;
  }

  /** Returns the number that `party` holds. */
  of(party: FairShareParty): number {
    return this.held.filter((p) => p === party).length;
  }

  serve(): void {
    for (;;) {
      const next = this.share.first(this.size - this.held.length, this.size);
      if (next === null) return;
      this.share.leave(next.party, next.item);
      this.share.take(next.party);
      this.held.push(next.party);
    }
  }
}

test('one party takes all but the reserve, and whoever comes is served at once', async (t) => {
  const places = new Places(8);
  for (let n = 0; n < 20; n++) places.ask('a');
  t.equal(places.of('a'), 6);
  t.equal(places.ask('b').of('b'), 1);
  t.equal(places.ask('b').of('b'), 1, 'the last place is for one that holds none');
  t.equal(places.ask('c').of('c'), 1);
  t.equal(places.ask('d').of('d'), 0, 'now all are taken');
});

test('while others wait, nobody gets a place beyond half, and all come to as many', async (t) => {
  const places = new Places(8);
  for (let n = 0; n < 100; n++) places.ask('a');
  for (let n = 0; n < 100; n++) places.ask('b');
  const seen: string[] = [];
  for (let n = 0; n < 20; n++) {
    places.end(places.held[0] ?? null);
    seen.push(`${places.of('a')} ${places.of('b')}`);
  }
  for (const state of seen.slice(6)) t.match(state, /^(3 [34]|4 [34])$/, state);
});

test('a place goes to whoever holds the fewest, then to whoever has had none for longest', async (t) => {
  const places = new Places(4, 0);
  for (const party of ['a', 'a', 'a', 'b', 'a', 'a', 'b', 'c', 'd']) places.ask(party);
  t.same(places.held, ['a', 'a', 'a', 'b']);
  t.equal(places.end('b').of('c'), 1, 'c has had none, b a moment ago');
  t.equal(places.end('a').of('d'), 1);
  t.equal(places.end('c').of('b'), 1);
  t.equal(places.end('d').of('a'), 3, 'only a waits');
});

test('with one place the parties take turns, whatever each has asked', async (t) => {
  const places = new Places(1);
  for (let n = 0; n < 50; n++) places.ask('a');
  for (let n = 0; n < 3; n++) places.ask('b');
  const turns: FairShareParty[] = [];
  for (let n = 0; n < 8; n++) {
    const [holder = null] = places.held;
    turns.push(holder);
    places.end(holder);
  }
  t.same(turns, ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'a']);
});

test('the gateway itself is never held back', async (t) => {
  const places = new Places(8);
  for (let n = 0; n < 20; n++) places.ask('a');
  t.equal(places.ask(null).ask(null).of(null), 2);
});

test('few places have no reserve, and none that waits is forgotten', async (t) => {
  for (const size of [1, 2, 3]) {
    const places = new Places(size);
    for (let n = 0; n < 10; n++) places.ask('a');
    t.equal(places.of('a'), size);
    for (let n = 0; n < 10; n++) places.end('a');
    t.equal(places.share.waiting, 0);
  }
});

test('who waits may leave, and then is not served', async (t) => {
  const share = new FairShare<string>(0.25);
  share.wait('a', 'one');
  share.wait('a', 'two');
  share.wait('b', 'three');
  t.equal(share.leave('a', 'one'), true);
  t.equal(share.leave('a', 'one'), false);
  t.same(share.first(1, 8), { party: 'a', item: 'two' });
  t.equal(share.leave('a', 'two'), true);
  t.same(share.first(1, 8), { party: 'b', item: 'three' });
  t.same(share.dismiss(), ['three']);
  t.equal(share.first(8, 8), null);
});

test('ten thousand parties wait, and each turn costs about nothing', async (t) => {
  const share = new FairShare<number>(0.25);
  for (let n = 0; n < 10_000; n++) share.wait(`party ${n}`, n);
  const began = process.cpuUsage();
  for (let n = 0; n < 10_000; n++) {
    const next = share.first(1, 8);
    if (next !== null) share.leave(next.party, next.item);
  }
  const { user } = process.cpuUsage(began);
  t.equal(share.waiting, 0);
  t.ok(user < 1_000_000, `${user / 1_000} ms of processor time`);
});

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

  /** Items that the system hands over before it reads anything else. */
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
    onMemoryShortage: () => undefined,
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
