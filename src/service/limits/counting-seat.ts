import { createLeasedLimiter, type RateLimits } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import type { ProcessFiles } from '../seat.js';
import type { LimitsPlace } from '../settings/load.js';
import type { Settings } from '../settings.js';
import { openPostgresCounts } from './postgres.js';
import { openRedisCounts } from './redis.js';
import { type CountStore, SharedCounts } from './shared-counts.js';

/**
 * The seat itself, which counts alone or with the other workers of its server; or, where the settings name a store, one
 * that counts there with all gateways. Until the store has answered once it is not known of how many processes this is
 * one, so what would be counted is refused (E5038). @throws StartProblem where there can be no store
 */
export async function countingSeat(
  seat: ProcessFiles,
  { load }: Settings,
  tenant: string,
  log: ServiceLog,
): Promise<{ readonly seat: ProcessFiles; heard(): boolean; close(): Promise<void> }> {
  if (load.limits === null) return { seat, heard: () => true, close: async () => undefined };
  const store = await opened(load.limits);
  const counts = await SharedCounts.join(store, { tenant, log });
  // Guesses of passwords are counted by each server.
  const limiter = (limits: RateLimits) =>
    createLeasedLimiter(counts.share(seat.limiter(limits).guesses), limits);
  return {
    seat: Object.freeze({ ...seat, limiter }),
    heard: () => counts.heard,
    close: () => counts.close(),
  };
}

function opened(place: LimitsPlace): Promise<CountStore> {
  return place.kind === 'redis' ? openRedisCounts(place.url) : openPostgresCounts(place.at);
}
