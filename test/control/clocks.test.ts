import { test } from 'tap';
import type { ServiceLog } from '../../src/base/log.js';
import { ClockComparison } from '../../src/service/control.js';
import { controlHouse, migrated, opened, SKIP } from './support.js';

const HOUR_MS = 3_600_000;

test('a clock is wrong if another gateway agrees with the database and this one does not', {
  skip: SKIP,
}, async (t) => {
  const house = await controlHouse(t);
  await migrated(house);
  const said: string[] = [];
  const note = (text: string): void => void said.push(text);
  const log: ServiceLog = { info: note, warn: note, error: note };
  const clock = new ClockComparison(opened(t, house.gateway), 'acme', 'this', log);
  const other = async (tenant: string, aheadMs: number, secondsAgo: number): Promise<void> => {
    await house.admin(`delete from osl_control.gateway_clock where gateway = 'other'`);
    await house.admin(
      `insert into osl_control.gateway_clock values ('${tenant}', 'other', ${aheadMs}, now() - ${secondsAgo} * interval '1 s')`,
    );
  };
  const { now } = Date;
  t.teardown(() => {
    Date.now = now;
  });
  const ahead = async (ms: number): Promise<boolean> => {
    Date.now = () => now() + ms;
    await clock.compare();
    return clock.isWrong;
  };

  t.equal(await ahead(0), false);
  t.equal(await ahead(HOUR_MS), false, 'alone');
  t.match(said.splice(0), [/no other gateway says which one is right/]);
  for (const [what, tenant, aheadMs, secondsAgo] of [
    ['another gateway has the same time', 'acme', HOUR_MS, 0],
    ['another gateway has a third time', 'acme', -HOUR_MS, 0],
    ['a gateway of another tenant agrees with the database', 'beta', 0, 0],
    ['a gateway that is gone did', 'acme', 0, 120],
  ] as const) {
    await other(tenant, aheadMs, secondsAgo);
    t.equal(await ahead(HOUR_MS), false, what);
  }
  await other('acme', 500, 5);
  t.equal(await ahead(HOUR_MS), true);
  t.equal(await ahead(-HOUR_MS), true);
  t.ok(Math.abs((clock.offsetMs ?? 0) + HOUR_MS) < 10_000);
  t.equal(await ahead(30_000), false, 'half a minute');
  t.match(said, [/the clock of this machine is wrong/, 'the clocks agree again']);
});
