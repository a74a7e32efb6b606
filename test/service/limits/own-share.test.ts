import t from 'tap';
import {
  createLeasedLimiter,
  createPasswordGuesses,
  DEFAULT_LIMITS,
  type Identity,
} from '../../../policy/index.js';
import { SharedCounts } from '../../../src/service/limits/shared-counts.js';

const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };
const away = (): Promise<never> => Promise.reject(new Error('away'));

t.test('a policy that is activated while the store is away takes nothing of the own share', async (t) => {
  let peers = 0;
  const here = (): Promise<number> => (peers++ === 0 ? Promise.resolve(2) : away());
  const counts = await SharedCounts.join(
    { lease: away, add: away, addEntities: away, here, close: async () => undefined },
    { tenant: 'demo', log: LOG },
  );
  t.teardown(() => counts.close());
  const limits = { ...DEFAULT_LIMITS, query: 8 };
  const limiter = createLeasedLimiter(counts.share(createPasswordGuesses()), limits);
  const identity = { tenant: 'demo', subject: 'user:ann' } as Identity; // what is counted
  const taken = async (): Promise<boolean> => (await limiter.take('query', identity)).ok;
  t.same([await taken(), await taken()], [true, true]);
  limiter.configure(limits);
  t.same([await taken(), await taken()], [true, true], 'half of the limit is the share of one of two');
  t.equal(await taken(), false, 'and no more than that');
});
