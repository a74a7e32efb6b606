import type { Test } from 'tap';
import { type Asker, type Frontends, startFrontends } from '../../support/frontends.js';
import { openShop, REAL, type Shop, TWIN } from './shop.js';

/** Two shops that differ only in what a clerk may not see, each behind frontends of its own. */
export interface Twins {
  readonly real: Shop;
  readonly twin: Shop;
  readonly realFronts: Frontends;
  readonly twinFronts: Frontends;
  /** Open sessions by a key of the caller's; they end with the test. */
  readonly askers: Map<string, Asker>;
}

export async function openTwins(t: Pick<Test, 'teardown'>, more = ''): Promise<Twins> {
  const real = await openShop(REAL, null, more);
  const twin = await openShop(TWIN, real, more);
  const [realFronts, twinFronts] = [await startFrontends(real.open), await startFrontends(twin.open)];
  const askers = new Map<string, Asker>();
  t.teardown(async () => {
    for (const a of askers.values()) a.end();
    await Promise.all([realFronts.stop(), twinFronts.stop()]);
    await Promise.all([real.close(), twin.close()]);
  });
  return { real, twin, realFronts, twinFronts, askers };
}

/** One session for each caller, surface and shop, as long as it lives. */
export async function askerOf(
  { askers }: Twins,
  of: Frontends,
  ...session: Parameters<Frontends['asker']>
): Promise<Asker> {
  const key = `${of.pgPort} ${JSON.stringify(session)}`;
  const known = askers.get(key) ?? (await of.asker(...session));
  askers.set(key, known);
  return known;
}
