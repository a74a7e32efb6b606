import { setTimeout } from 'node:timers/promises';
import { queryError } from 'osl-compiler';
import type { AuditSurface } from '../../../policy/audit/index.js';
import type { Identity, LimitBucket } from '../../../policy/index.js';
import type { DecidingParts } from './parts.js';

const WIRE_PATIENCE_SECONDS = 1;

/**
 * Counts a request. A wire client cannot be told to come back, and most would show the error to a person, so there a
 * request that is over the limit waits for the next window once.
 *
 * @throws QueryError E4290
 */
export async function limit(
  { limiter }: Pick<DecidingParts, 'limiter'>,
  identity: Identity,
  bucket: LimitBucket,
  surface: AuditSurface,
): Promise<void> {
  const first = await limiter.take(bucket, identity);
  if (first.ok) return;
  if (surface === 'wire' && first.retryAfterSeconds <= WIRE_PATIENCE_SECONDS) {
    await setTimeout(1_000 * first.retryAfterSeconds);
    const second = await limiter.take(bucket, identity);
    if (second.ok) return;
  }
  throw queryError('rateLimited', { retryAfterSeconds: first.retryAfterSeconds });
}
