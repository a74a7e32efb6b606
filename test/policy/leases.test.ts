import t from 'tap';
import { type Lease, LeaseBook, LeasedCounter } from '../../policy/limits/leases.js';

/** A book and its holders: messages arrive in the order of each channel, late, and sometimes several in one turn. */
class World {
  ms = 1_000;
  readonly book: LeaseBook;
  readonly counters: readonly LeasedCounter[];
  readonly #random: () => number;
  /** Two for each holder: to it, and from it. */
  readonly #channels: readonly (() => void)[][];
  #pumping = false;

  constructor(seed: number, perWindow: number, holders: number, maxKeys = 100) {
    this.#random = randomFrom(seed);
    this.#channels = Array.from({ length: 2 * holders }, () => []);
    const now = (): number => this.ms;
    this.book = new LeaseBook({
      perWindow,
      maxKeys,
      holders,
      now,
      reclaim: (holder, key, endsAt) =>
        new Promise((resolve) => {
          this.#send(2 * holder, () => {
            const unused = this.counters[holder]?.reclaim(key, endsAt) ?? 0;
            this.#send(2 * holder + 1, () => resolve(unused));
          });
        }),
    });
    this.counters = Array.from({ length: holders }, (_, holder) => {
      const ask = (key: string, arrived: (lease: Lease) => void): Promise<void> =>
        new Promise((resolve, reject) => {
          const answer = (lease: Lease): void =>
            this.#send(2 * holder, () => {
              arrived(lease);
              resolve();
            });
          this.#send(2 * holder + 1, () => void this.book.lease(key, holder).then(answer, reject));
        });
      return new LeasedCounter(ask, now);
    });
  }

  #send(channel: number, message: () => void): void {
    this.#channels[channel]?.push(message);
    if (!this.#pumping) void this.#pump();
  }

  /** Delivers until nothing is under way. */
  async #pump(): Promise<void> {
    this.#pumping = true;
    for (let quiet = 0; quiet < 20; quiet++) {
      await null;
      const full = this.#channels.filter((channel) => channel.length > 0);
      const channel = full[Math.floor(this.#random() * full.length)];
      if (channel === undefined) continue;
      quiet = 0;
      for (const deliver of channel.splice(0, 1 + Math.floor(this.#random() * 3))) deliver();
    }
    this.#pumping = false;
  }

  /** So many uses of each key by random holders at once; how many of each key were let through. */
  async spend(uses: number, keys: readonly string[]): Promise<readonly number[]> {
    return Promise.all(
      keys.map(async (key) => {
        const taken = Array.from({ length: uses }, () => {
          const holder = this.counters[Math.floor(this.#random() * this.counters.length)];
          return holder?.take(key) ?? { ok: false };
        });
        return (await Promise.all(taken)).filter(({ ok }) => ok).length;
      }),
    );
  }
}

t.test(
  'holders together take exactly the limit of each window, however their messages interleave',
  async (t) => {
    const wrong: object[] = [];
    for (let seed = 1; seed <= 300; seed++) {
      const limit = 1 + (seed % 23);
      const world = new World(seed, limit, 1 + (seed % 4));
      for (let window = 0; window < 3; window++) {
        const passed = await world.spend(limit + 7, ['a', 'b']);
        wrong.push(...passed.filter((count) => count !== limit).map((count) => ({ seed, count, limit })));
        world.ms += 1_000;
      }
    }
    t.strictSame(wrong, []);
  },
);

t.test('nobody is refused while another holds what it has not used', async (t) => {
  const world = new World(7, 60, 2);
  const [one, other] = world.counters;
  t.strictSame(await one?.take('a'), { ok: true });
  let passed = 1;
  while ((await other?.take('a'))?.ok === true) passed++;
  t.equal(passed, 60);
  t.strictSame(await one?.take('a'), { ok: false, retryAfterSeconds: 1 });
});

t.test('what is given up at a new limit is there for others, and counts go on', async (t) => {
  const world = new World(3, 10, 2);
  const [one, other] = world.counters;
  await one?.take('a');
  world.book.perWindow = 4;
  for (const [key, lease] of one?.giveUp() ?? []) world.book.handBack(key, lease);
  let passed = 0;
  while ((await other?.take('a'))?.ok === true) passed++;
  t.equal(passed, 3, 'one of four had been used');
});

t.test('what a holder had that is gone counts as used', async (t) => {
  const world = new World(5, 60, 2);
  const [one, other] = world.counters;
  await one?.take('a');
  world.book.forget(0);
  let passed = 0;
  while ((await other?.take('a'))?.ok === true) passed++;
  t.equal(passed, 45, 'a lease is a quarter of what is left');
});

t.test('a flood of keys shares one count', async (t) => {
  const world = new World(11, 3, 2, 2);
  t.strictSame(await world.spend(5, ['a', 'b']), [3, 3]);
  const more = await world.spend(5, ['c', 'd', 'e']);
  t.equal(
    more.reduce((sum, n) => sum + n, 0),
    3,
  );
});

/** mulberry32: the same numbers from the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296;
  };
}
