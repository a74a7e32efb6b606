import t from 'tap';
import { createLimiter, DEFAULT_LIMITS } from '../../policy/index.js';
import type { Caller } from '../../src/ask/request/caller.js';
import { chargeAnswer, quotasFor, takeSynchronously } from '../../src/ask/request/limit.js';
import { identity } from '../policy/tokens.js';
import { inOneMoment } from '../support/moment.js';

const ann = identity({ chain: ['ann'] });
const DAY_MS = 86_400_000;

/** A caller of whom a day's quotas are all that is looked at. */
function callerWith(most: Readonly<Record<'requests' | 'rows', number>>): Caller {
  const quotas = (['requests', 'rows'] as const).map((unit) => ({
    name: 'limits.subject[0]',
    bucket: 'query',
    unit,
    limit: most[unit],
    per: 'day',
    windowMs: DAY_MS,
    role: null,
    each: 'subject',
  }));
  const caller = { identity: ann, task: null, access: { dataRoles: new Set() }, snapshot: { quotas } };
  return caller as unknown as Caller;
}

t.test('what is counted at once is refused beyond a quota, and then counts nothing', async (t) => {
  const limiter = createLimiter();
  const caller = callerWith({ requests: 2, rows: 100 });
  const taken = Array.from({ length: 4 }, () => takeSynchronously(limiter, caller, 'query', ann));
  t.same(taken, [true, true, false, false]);
  t.equal(takeSynchronously(limiter, caller, 'sample', ann), true, 'quotas are of their bucket');
});

t.test('rows of an answer count against the quota of the next', async (t) => {
  const limiter = createLimiter();
  const caller = callerWith({ requests: 100, rows: 10 });
  t.equal(quotasFor(caller, 'query').length, 2);
  t.equal(takeSynchronously(limiter, caller, 'query', ann), true);
  chargeAnswer(limiter, caller, 'query', { rows: 10, bytes: 1, ms: 1 });
  t.equal(takeSynchronously(limiter, caller, 'query', ann), false);
});

t.test('beyond the limit of a second nothing counts against a quota', async (t) => {
  const limiter = createLimiter({ limits: { ...DEFAULT_LIMITS, query: 1 } });
  const caller = callerWith({ requests: 2, rows: 100 });
  const taken = await inOneMoment(async () =>
    [1, 2, 3].map(() => takeSynchronously(limiter, caller, 'query', ann)),
  );
  t.same(taken, [true, false, false]);
  limiter.configure({ ...DEFAULT_LIMITS, query: 100 });
  t.same(
    [1, 2].map(() => takeSynchronously(limiter, caller, 'query', ann)),
    [true, false],
    'one request of two had been counted',
  );
});
