/** Kinds of requests, each of which counts by itself. */
export type LimitBucket = 'query' | 'sample' | 'schema' | 'authoring' | 'catalog';

export const LIMIT_BUCKETS: readonly LimitBucket[] = Object.freeze([
  'query',
  'sample',
  'schema',
  'authoring',
  'catalog',
]);
