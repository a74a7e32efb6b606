/** Counts of limits that several gateways share, in Postgres or in Redis. */
export { openPostgresCounts } from './postgres.js';
export { openRedisCounts, REDIS_PACKAGE } from './redis.js';
export { SharedCounts, type SharedCountsOptions } from './shared-counts.js';
export type { CountStore, Portion } from './store.js';
