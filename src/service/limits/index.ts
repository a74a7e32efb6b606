/** Counts of limits that several gateways share, in Postgres or in Redis. */
export { openPostgresCounts } from './postgres.js';
export { openRedisCounts } from './redis.js';
export { SharedCounts } from './shared-counts.js';
export type { CountStore } from './store.js';
