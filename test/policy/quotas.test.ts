import t from 'tap';
import { type Lease, LeaseBook, LeasedCounter } from '../../policy/limits/leases.js';
import { type Charge, createQuotas, QuotaBook } from '../../policy/limits/quota-counts.js';
import { type Quota, type QuotaRule, quotasOf } from '../../policy/limits/quotas.js';
import { SharedQuotas } from '../../policy/limits/shared-quotas.js';
import { WindowCounter } from '../../policy/limits/window.js';
import { fc } from '../support/fast-check.js';
import { identity } from './tokens.js';

const NONE = { entities: new Set<string>(), declared: '' };
const MINUTE = 60_000;
const DAY = 86_400_000;

function quota(unit: Quota['unit'], most: number, windowMs = MINUTE): Quota {
  return {
    key: `${unit} ${windowMs}`,
    unit,
    limit: most,
    windowMs,
    label: unit,
    lacksTask: false,
    entities: NONE.entities,
  };
}

t.test('who counts against what', async (t) => {
  const rule = (more: Partial<QuotaRule>): QuotaRule => ({
    name: 'limits.subject[0]',
    bucket: 'query',
    unit: 'rows',
    limit: 10,
    per: 'minute',
    windowMs: MINUTE,
    role: null,
    each: null,
    ...NONE,
    ...more,
  });
  const rules = [
    rule({ each: 'subject' }),
    rule({}),
    rule({ role: 'sales' }),
    rule({ role: 'sales', each: 'subject' }),
    rule({ bucket: 'sample', unit: 'requests' }),
  ];
  const keys = (
    who: ReturnType<typeof identity>,
    roles: readonly string[],
    bucket: 'query' | 'sample' = 'query',
  ) => quotasOf(rules, who, new Set(roles), bucket).map(({ key }) => key);
  const [ann, bob] = [identity({ chain: ['ann'] }), identity({ chain: ['bob'] })];
  const [annOwn, tenant] = keys(ann, []);
  t.equal(keys(ann, []).length, 2, 'those of everybody');
  const [bobOwn, bobTenant, sales, bobSales] = keys(bob, ['sales', 'other']);
  t.not(bobOwn, annOwn);
  t.equal(bobTenant, tenant);
  const [, , carlSales, carlOwn] = keys(identity({ chain: ['carl'] }), ['sales']);
  t.equal(carlSales, sales, 'of the members together');
  t.not(carlOwn, bobSales);
  t.equal(keys(ann, [], 'sample').length, 1);
  t.not(keys(identity({ chain: ['ann'], tenant: 'globex' }), [])[0], annOwn);
  t.equal(keys(identity({ chain: ['root', 'ann'] }), [])[0], annOwn, 'the leaf counts');
});

t.test('chains and tasks are counted separately, and a label says whose', async (t) => {
  const rule = (each: QuotaRule['each'], per: QuotaRule['per'] = 'day'): QuotaRule => ({
    ...{ name: `of_${each}`, bucket: 'query', unit: 'rows', limit: 10, per, windowMs: DAY, role: null, each },
    ...NONE,
  });
  const rules = [rule('subject'), rule('chain'), rule('chain', 'task')];
  const of = (chain: readonly string[], task: string | null = null) =>
    quotasOf(rules, identity({ chain }), new Set(), 'query', task);
  const [direct, forAnn, forBob] = [of(['bot']), of(['ann', 'bot']), of(['bob', 'bot'])];
  t.equal(direct[0]?.key, forAnn[0]?.key, 'the subject is the leaf');
  t.equal(new Set([direct, forAnn, forBob].map((quotas) => quotas[1]?.key)).size, 3);
  t.equal(forAnn[0]?.label, 'of_subject: 10 rows per day of bot');
  t.equal(forAnn[1]?.label, 'of_chain: 10 rows per day of the chain ann > bot');
  t.same(
    [null, 'one', 'two'].map((task) => of(['bot'], task)[2]?.lacksTask),
    [true, false, false],
  );
  const who = identity({ chain: ['ann', 'bot'] });
  const keys = ['one', 'two', 'one'].map((task) => quotasOf(rules, who, new Set(), 'query', task)[2]?.key);
  t.not(keys[0], keys[1]);
  t.equal(keys[0], keys[2]);
});

t.test('what is spent refuses the next, until the window ends', async (t) => {
  const clock = { ms: 5 };
  const quotas = createQuotas(new QuotaBook(() => clock.ms));
  const both = [quota('requests', 3), quota('rows', 100), quota('rows', 500, 60 * MINUTE)];
  t.same(quotas.take(both), { ok: true });
  quotas.charge(both, 'rows', 99);
  t.same(quotas.take(both), { ok: true });
  quotas.charge(both, 'rows', 450); // an answer goes on to its end
  const refused = quotas.take(both);
  t.match(refused, { ok: false, quota: both[2], waitMs: 60 * MINUTE }, 'of two that are spent the later');
  t.notOk(quotas.mayTake(both));
  clock.ms += 60 * MINUTE;
  t.ok(quotas.mayTake(both));
  for (let n = 0; n < 3; n++) t.same(quotas.take(both), { ok: true });
  clock.ms += 1_000;
  t.match(quotas.take(both), { ok: false, quota: both[0], waitMs: 59_000 });
});

t.test('a window begins with the first request, not when an operator looks at it', async (t) => {
  const clock = { ms: 5 };
  const quotas = createQuotas(new QuotaBook(() => clock.ms));
  const both = [quota('requests', 1), quota('rows', 100)];
  const endsInMs = async () => (await quotas.state(both)).map((count) => count.endsInMs);
  t.same(await endsInMs(), [MINUTE, MINUTE]);
  clock.ms += 50_000;
  t.same(await endsInMs(), [MINUTE, MINUTE]);
  t.same(quotas.take(both), { ok: true });
  clock.ms += 20_000;
  t.same(await endsInMs(), [40_000, MINUTE], 'no row is counted yet');
  t.match(quotas.take(both), { ok: false, waitMs: 40_000 });
});

t.test('beyond so many counts all others share one', async (t) => {
  const book = new QuotaBook(() => 0, 2);
  const add = (key: string) => book.add({ key, windowMs: MINUTE, amount: 1 }).used;
  t.same([add('a'), add('b'), add('c'), add('d'), add('a')], [1, 1, 1, 2, 2]);
});

/** Resolves once `book` has heard of so much. */
async function told(book: QuotaBook, [one]: readonly Quota[], used: number): Promise<void> {
  if (one === undefined) return;
  while (book.add({ ...one, amount: 0 }).used !== used)
    await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Counts that are older are requested anew. */
const STALE_MS = 1_001;

t.test('several processes that ask when what they know is old let through exactly what is left', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 2, max: 4 }),
      fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }),
      async (most, count, order) => {
        const clock = { ms: 0 };
        const book = new QuotaBook(() => clock.ms);
        const add = async (charges: readonly Charge[]) => charges.map((charge) => book.add(charge));
        const options = { add, peers: () => count, now: () => clock.ms };
        const all = Array.from({ length: count }, () => new SharedQuotas(options));
        const mine = [quota('requests', most, DAY)];
        let passed = 0;
        for (const at of order) {
          clock.ms += STALE_MS;
          if ((await all[at % count]?.take(mine))?.ok === true) passed += 1;
          await told(book, mine, passed);
        }
        return passed === Math.min(most, order.length);
      },
    ),
    { numRuns: 20 },
  );
});

t.test('what is told late was charged all the same', async (t) => {
  const clock = { ms: 0 };
  const book = new QuotaBook(() => clock.ms);
  const add = async (charges: readonly Charge[]) => charges.map((charge) => book.add(charge));
  const make = () => new SharedQuotas({ add, peers: () => 2, now: () => clock.ms });
  const [first, second] = [make(), make()];
  const mine = [quota('bytes', 1_000, DAY)];
  t.same(await first.take(mine), { ok: true });
  t.same(await second.take(mine), { ok: true });
  t.ok(first.mayTake(mine), 'for a second what is known counts');
  first.charge(mine, 'bytes', 700);
  second.charge(mine, 'bytes', 700);
  await told(book, mine, 1_400);
  clock.ms += STALE_MS;
  t.notOk(first.mayTake(mine), 'it asks first');
  t.match(await first.take(mine), { ok: false });
  t.match(await second.take(mine), { ok: false });
});

t.test('however fast they are, processes exceed a quota only by what runs when it is used up', async (t) => {
  const book = new QuotaBook();
  const add = async (charges: readonly Charge[]) => {
    await new Promise((resolve) => setTimeout(resolve, 2));
    return charges.map((charge) => book.add(charge));
  };
  const all = Array.from({ length: 2 }, () => new SharedQuotas({ add, peers: () => 2 }));
  const mine = [quota('rows', 10_000, DAY)];
  let rows = 0;
  const client = async (quotas: SharedQuotas): Promise<void> => {
    while ((await quotas.take(mine)).ok) {
      await new Promise((resolve) => setImmediate(resolve));
      quotas.charge(mine, 'rows', 1);
      rows += 1;
    }
  };
  const clients = 4;
  await Promise.all(all.flatMap((quotas) => Array.from({ length: clients }, () => client(quotas))));
  t.ok(rows >= 10_000 && rows <= 10_000 + 2 * all.length * clients, `${rows} rows`);
});

t.test('while the counts of all cannot be reached, each lets through its share of them', async (t) => {
  const clock = { ms: 0 };
  const book = new QuotaBook(() => clock.ms);
  let down = false;
  const add = async (charges: readonly Charge[]) => {
    if (down) throw new Error('nobody there');
    return charges.map((charge) => book.add(charge));
  };
  const alone = new SharedQuotas({ add, peers: () => 3, now: () => clock.ms });
  const mine = [quota('requests', 12, DAY)];
  for (let n = 0; n < 3; n++) t.match(await alone.take(mine), { ok: true });
  await told(book, mine, 3);
  down = true;
  clock.ms += STALE_MS;
  let passed = 0;
  for (let n = 0; n < 20; n++) if ((await alone.take(mine)).ok) passed += 1;
  t.equal(passed, 3, 'of the nine that are left');
  down = false;
  clock.ms += 2 * STALE_MS;
  for (let n = 0; n < 20; n++) if ((await alone.take(mine)).ok) passed += 1;
  t.equal(passed, 9, 'the others took none');
  clock.ms += DAY;
  t.match(await alone.take(mine), { ok: true }, 'a new window');
});

t.test('nobody is told to wait longer than a window, whatever fraction the clock reads', (t) => {
  const { now } = performance;
  t.teardown(() => {
    performance.now = now;
  });
  const waits = new Set<number>();
  for (let i = 1; i <= 20_000; i++) {
    const moment = i * 17.123_456_789;
    performance.now = () => moment;
    const counter = new WindowCounter(1, 10);
    counter.take('anybody');
    const second = counter.take('anybody');
    waits.add(second.ok ? 0 : second.retryAfterSeconds);
  }
  t.strictSame([...waits], [1]);
  t.end();
});

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
