import { setTimeout } from 'node:timers/promises';
import { queryError } from 'osl-compiler';
import type { AuditSurface } from '../../../policy/audit/index.js';
import type { Identity, LimitBucket, Limited } from '../../../policy/index.js';
import type { DecidingParts } from './parts.js';

const WIRE_PATIENCE_SECONDS = 1;

/**
 * Counts a request. A wire client cannot be told to come back, and most would show the error to a person, so there a
 * request that is over the limit waits for the next window once.
 *
 * @throws QueryError E4290
 */
export function limit(
  { limiter }: Pick<DecidingParts, 'limiter'>,
  identity: Identity,
  bucket: LimitBucket,
  surface: AuditSurface,
): void | Promise<void> {
  const refused = (taken: Limited): void | Promise<void> => {
    if (taken.ok) return;
    const { retryAfterSeconds } = taken;
    if (surface !== 'wire' || retryAfterSeconds > WIRE_PATIENCE_SECONDS)
      throw queryError('rateLimited', { retryAfterSeconds });
    return setTimeout(1_000 * retryAfterSeconds)
      .then(() => limiter.take(bucket, identity))
      .then(({ ok }) => {
        if (!ok) throw queryError('rateLimited', { retryAfterSeconds });
      });
  };
  const taken = limiter.take(bucket, identity);
  return taken instanceof Promise ? taken.then(refused) : refused(taken);
}
