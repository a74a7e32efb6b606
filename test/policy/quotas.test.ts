import t from 'tap';
import { type Charge, createQuotas, QuotaBook } from '../../policy/limits/quota-counts.js';
import { type Quota, type QuotaRule, quotasOf } from '../../policy/limits/quotas.js';
import { SharedQuotas } from '../../policy/limits/shared-quotas.js';
import { fc } from '../support/fast-check.js';
import { identity } from './tokens.js';

const MINUTE = 60_000;

function quota(unit: Quota['unit'], most: number, windowMs = MINUTE): Quota {
  return { key: `${unit} ${windowMs}`, unit, most, windowMs };
}

t.test('who counts against what', async (t) => {
  const rule = (more: Partial<QuotaRule>): QuotaRule => ({
    bucket: 'query',
    unit: 'rows',
    most: 10,
    windowMs: MINUTE,
    role: null,
    each: false,
    ...more,
  });
  const rules = [
    rule({ each: true }),
    rule({}),
    rule({ role: 'sales' }),
    rule({ role: 'sales', each: true }),
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

t.test('what is spent refuses the next, until the window ends', async (t) => {
  const clock = { ms: 5 };
  const quotas = createQuotas(new QuotaBook(() => clock.ms));
  const both = [quota('requests', 3), quota('rows', 100), quota('rows', 500, 60 * MINUTE)];
  t.same(quotas.take(both), { ok: true });
  quotas.charge(both, 'rows', 99);
  t.same(quotas.take(both), { ok: true });
  quotas.charge(both, 'rows', 450); // an answer goes on to its end
  t.same(quotas.take(both), { ok: false, retryAfterSeconds: 3_600 }, 'of two that are spent the later');
  t.notOk(quotas.mayTake(both));
  clock.ms += 60 * MINUTE;
  t.ok(quotas.mayTake(both));
  for (let n = 0; n < 3; n++) t.same(quotas.take(both), { ok: true });
  clock.ms += 1_000;
  t.same(quotas.take(both), { ok: false, retryAfterSeconds: 59 });
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

const DAY = 86_400_000;
/** What was heard longer ago is asked for anew. */
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
