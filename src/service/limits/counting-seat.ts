import { createLeasedLimiter, type Limits } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { StartProblem } from '../../base/start-problem.js';
import { messageOf } from '../../base/thrown.js';
import type { Seat } from '../seat.js';
import type { LimitsPlace } from '../settings/load.js';
import type { Settings } from '../settings.js';
import { type CountStore, openPostgresCounts, openRedisCounts, SharedCounts } from './index.js';

/**
 * The seat itself, which counts alone or with the other workers of its server; or, where the settings name a store, one
 * that counts there with all gateways. @throws StartProblem where the store does not answer
 */
export async function countingSeat(
  seat: Seat,
  { load }: Settings,
  tenant: string,
  log: ServiceLog,
): Promise<{ readonly seat: Seat; readonly close: () => Promise<void> }> {
  if (load.limits === null) return { seat, close: async () => undefined };
  const store = await opened(load.limits);
  const counts = await SharedCounts.join(store, { tenant, log }).catch(async (error: unknown) => {
    await store.close();
    throw noStore(error);
  });
  // Guesses of passwords are counted by each server.
  const limiter = (limits: Limits) => createLeasedLimiter(counts.share(seat.limiter(limits).guesses), limits);
  return { seat: Object.freeze({ ...seat, limiter }), close: () => counts.close() };
}

async function opened(place: LimitsPlace): Promise<CountStore> {
  try {
    return await (place.kind === 'redis' ? openRedisCounts(place.url) : openPostgresCounts(place.at));
  } catch (error) {
    throw error instanceof StartProblem ? error : noStore(error);
  }
}

function noStore(error: unknown): StartProblem {
  return new StartProblem(`the store of limits (OSL_LIMITS_URL, or OSL_CONTROL_URL): ${messageOf(error)}`);
}
