import t from 'tap';
import { LIMIT_BUCKETS, type LimitBucket } from '../../policy/document.js';
import { addressGroup, createLimiter } from '../../policy/limits/limit.js';
import { DEFAULT_LIMITS } from '../../policy/limits/quotas.js';
import type { LimitResult } from '../../policy/limits/window.js';
import { identity } from './tokens.js';

const alice = identity({ chain: ['alice'] });
const now = { ms: 1_800_000_000_000 };
const realNow = performance.now;
t.before(() => {
  performance.now = () => now.ms;
});
t.after(() => {
  performance.now = realNow;
});

/** Returns the number of `times` uses that were let through. */
function passed(times: number, take: () => LimitResult): number {
  return Array.from({ length: times }, take).filter((o) => o.ok).length;
}

t.test('each bucket lets its limit through each second', async (t) => {
  for (const bucket of LIMIT_BUCKETS) {
    const limiter = createLimiter();
    const limit = DEFAULT_LIMITS[bucket];
    t.equal(
      passed(limit + 5, () => limiter.take(bucket, alice)),
      limit,
      bucket,
    );
    const refused = limiter.take(bucket, alice);
    t.strictSame(refused, { ok: false, retryAfterSeconds: 1 });
    now.ms += 999;
    t.strictSame(limiter.take(bucket, alice), { ok: false, retryAfterSeconds: 1 });
    now.ms += 1;
    t.strictSame(limiter.take(bucket, alice), { ok: true });
  }
});

t.test('the contract defaults', async (t) => {
  t.strictSame(DEFAULT_LIMITS, { query: 60, sample: 30, schema: 5, authoring: 5, catalog: 200 });
});

t.test('buckets, subjects and tenants do not share', async (t) => {
  const limiter = createLimiter();
  const use = (bucket: LimitBucket, who = alice) => passed(100, () => limiter.take(bucket, who));
  t.equal(use('query'), 60);
  t.equal(use('sample'), 30);
  t.equal(use('query', identity({ chain: ['bob'] })), 60);
  t.equal(use('query', identity({ chain: ['alice'], tenant: 'globex' })), 60);
  t.equal(use('query', identity({ chain: ['root', 'alice'] })), 0, 'the leaf counts, whatever its chain');
  t.equal(use('query', identity({ chain: ['x","alice'], tenant: 'acme' })), 60, 'no name spells another key');
  t.equal(use('query', identity({ chain: ['surplus'] })), 60);
});

t.test('a new policy takes effect without a second helping', async (t) => {
  const limiter = createLimiter({ limits: { ...DEFAULT_LIMITS, schema: 2 } });
  t.equal(
    passed(9, () => limiter.take('schema', alice)),
    2,
  );
  limiter.configure({ ...DEFAULT_LIMITS, schema: 12 });
  t.equal(
    passed(9, () => limiter.take('schema', alice)),
    3,
    '9 of 12 were asked for already',
  );
});

t.test('addresses are limited by group, in bounded memory', async (t) => {
  const limiter = createLimiter({ perAddress: 3, maxAddresses: 2 });
  t.equal(
    passed(5, () => limiter.takeAddress('192.0.2.1')),
    3,
  );
  t.equal(
    passed(5, () => limiter.takeAddress('::ffff:192.0.2.1')),
    0,
    'the same peer, mapped',
  );
  t.equal(
    passed(2, () => limiter.takeAddress('2001:db8::1')),
    2,
  );
  t.equal(
    passed(2, () => limiter.takeAddress('2001:db8::ffff:1')),
    1,
    'the same /64',
  );
  let surplus = 0;
  for (let i = 0; i < 1_000; i++) surplus += limiter.takeAddress(`10.0.${i >> 8}.${i & 255}`).ok ? 1 : 0;
  t.equal(surplus, 3, 'all further addresses of this second share one count');
  now.ms += 1_000;
  t.equal(
    passed(5, () => limiter.takeAddress('198.51.100.9')),
    3,
    'the next second starts afresh',
  );
});

t.test('the group of an address', async (t) => {
  const rows: readonly [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', 'local'],
    ['/run/osl.sock', 'local'],
    ['1.2.3.4.5', 'local'],
  ];
  for (const [address, group] of rows) t.equal(addressGroup(address), group, address);
});
