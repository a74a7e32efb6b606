import { LIMIT_BUCKETS, type LimitBucket, type LimitsDocument } from '../document.js';

export { LIMIT_BUCKETS };

/** Maximum number of requests per second for one subject, by bucket. */
export type RateLimits = Readonly<Record<LimitBucket, number>>;

/**
 * The defaults from the contract, except `authoring` (drafts and publications) and `catalog` (catalog queries of BI
 * tools), which are ours.
 */
export const DEFAULT_LIMITS: RateLimits = Object.freeze({
  query: 60,
  sample: 30,
  schema: 5,
  authoring: 5,
  catalog: 200,
});

/** The limits of a policy, including defaults. */
export function limitsOf(document: LimitsDocument | undefined): RateLimits {
  return Object.freeze(perBucket((bucket) => document?.[bucket] ?? DEFAULT_LIMITS[bucket]));
}

/** Builds a value for each bucket. */
export function perBucket<T>(f: (bucket: LimitBucket) => T): Readonly<Record<LimitBucket, T>> {
  // LIMIT_BUCKETS lists every bucket.
  return Object.fromEntries(LIMIT_BUCKETS.map((bucket) => [bucket, f(bucket)])) as Record<LimitBucket, T>;
}
