import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import {
  type Charge,
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
    { lease: away, add: away, addEntities: away, heartbeat: here, close: async () => undefined },
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

t.test('what a slow store has counted, though too late for its answer, is not counted again', async (t) => {
  const used = new Map<string, number>();
  let waits = 1_300;
  const add = async (charges: readonly Charge[]) => {
    const late = sleep(waits);
    waits = 0;
    await late;
    return charges.map(({ key, amount }) => {
      used.set(key, (used.get(key) ?? 0) + amount);
      return { used: used.get(key) ?? 0, endsInMs: 60_000 };
    });
  };
  const counts = await SharedCounts.join(
    { lease: away, add, addEntities: away, heartbeat: async () => 1, close: async () => undefined },
    { tenant: 'demo', log: LOG },
  );
  t.teardown(() => counts.close());
  const { charge } = counts.share(createPasswordGuesses());
  const charged = (amount: number): Charge[] => [{ key: 'rows', windowMs: 60_000, amount }];
  await t.rejects(charge(charged(5)), /no answer in 1000 ms/);
  await sleep(5_200); // for so long nobody asks the store
  t.match(await charge(charged(7)), [{ used: 7 }], 'the five again, and two more');
  t.match(await charge(charged(1)), [{ used: 8 }]);
});
