import { test } from 'tap';
import { FairShare, type FairShareParty } from '../../src/engine/fair-share.js';

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

  /** How many `party` holds. */
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
