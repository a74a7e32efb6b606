import t, { type Test } from 'tap';
import { openRedisCounts } from '../../../src/service/limits/redis.js';
import { type CountStore, openPostgresCounts } from '../../../src/service/limits/shared-counts.js';
import { controlHouse, migrated, placeOf, SKIP } from '../../control/support.js';
import { NO_REDIS, startRedis } from '../../support/redis.js';

/** The stores in which several gateways count, called directly: Postgres and Redis count alike. */

const DAY = 86_400_000;

async function countsAlike(t: Test, store: CountStore): Promise<void> {
  t.teardown(() => store.close());
  const add = (...amounts: readonly (readonly [key: string, amount: number])[]) =>
    store.add(amounts.map(([key, amount]) => ({ key, windowMs: DAY, amount })));
  t.same(await add(['a', 0]), [{ used: 0, endsInMs: DAY }], 'nothing is counted yet');
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.same(await add(['a', 0]), [{ used: 0, endsInMs: DAY }], 'and a query has begun no window');
  t.match(await add(['b', 3], ['a', 2]), [{ used: 3 }, { used: 2 }]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [a, c, b] = await add(['a', 0], ['c', 0], ['b', 4]);
  t.match([a, c, b], [{ used: 2 }, { used: 0, endsInMs: DAY }, { used: 7 }], 'in the order of the charges');
  for (const count of [a, b]) t.ok((count?.endsInMs ?? DAY) < DAY, 'the window began with the first charge');
  t.match(await add(['b', -1]), [{ used: 6 }], 'a charge that was counted twice is taken back');
}

t.test('in Postgres', { skip: SKIP }, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  await countsAlike(t, await openPostgresCounts(placeOf(house.gateway)));
});

t.test('in Redis', async (t) => {
  const redis = await startRedis();
  if (redis === null) {
    t.pass(NO_REDIS, { skip: NO_REDIS });
    return;
  }
  t.teardown(() => redis.stop());
  await countsAlike(t, await openRedisCounts(redis.url));
});
