import { setTimeout } from 'node:timers/promises';
import { InternalError, queryError } from 'osl-compiler';
import type { AuditSurface } from '../../../audit/index.js';
import {
  type Identity,
  type LimitBucket,
  type Limiter,
  type LimitResult,
  type Quota,
  type QuotaCount,
  type QuotaResult,
  quotasOf,
} from '../../../policy/index.js';
import type { Caller } from './caller.js';
import type { RequestParts } from './parts.js';
import { SealedValue } from './sealed.js';

const WIRE_PATIENCE_SECONDS = 1;

/**
 * Counts a request against the rate limit and the quotas. Postgres clients do not retry after a delay, so their
 * requests wait once for the next window if it starts within a second.
 *
 * @throws QueryError E4290, and E0532 if a quota per task applies and the request names no task
 */
export function limit(
  parts: Pick<RequestParts, 'controls'>,
  caller: Caller,
  bucket: LimitBucket,
  surface: AuditSurface,
): void | Promise<void> {
  const { limiter } = SealedValue.open(parts.controls);
  const { identity } = caller;
  const quotas = quotasFor(caller, bucket);
  requireTask(quotas);
  // INVARIANT: requests refused by the per-second limit do not count against quotas.
  const countQuotas =
    quotas.length === 0 ? undefined : (): void | Promise<void> => takeQuotas(limiter, quotas);
  const afterRateLimit = (result: LimitResult): void | Promise<void> => {
    if (result.ok) return countQuotas?.();
    const { retryAfterSeconds } = result;
    if (surface !== 'wire' || retryAfterSeconds > WIRE_PATIENCE_SECONDS)
      throw queryError('rateLimited', { retryAfterSeconds });
    return setTimeout(1_000 * retryAfterSeconds)
      .then(() => limiter.take(bucket, identity))
      .then(({ ok }) => {
        if (!ok) throw queryError('rateLimited', { retryAfterSeconds });
        return countQuotas?.();
      });
  };
  const result = limiter.take(bucket, identity);
  return result instanceof Promise ? result.then(afterRateLimit) : afterRateLimit(result);
}

/** Counts a request synchronously. Returns false without counting it if it would have to wait or be refused. */
export function takeSynchronously(
  limiter: Pick<Limiter, 'takeIfLeft' | 'quotas'>,
  caller: Caller,
  bucket: LimitBucket,
  identity: Identity,
): boolean {
  const quotas = quotasFor(caller, bucket);
  if (quotas.some(({ lacksTask }) => lacksTask)) return false;
  if (quotas.length > 0 && !limiter.quotas.mayTake(quotas)) return false;
  if (!limiter.takeIfLeft(bucket, identity)) return false;
  if (quotas.length > 0) limiter.quotas.charge(quotas, 'requests', 1);
  return true;
}

/** Counts a complete answer against the caller's quotas. */
export function chargeAnswer(
  { quotas: counts }: Pick<Limiter, 'quotas'>,
  caller: Caller,
  bucket: LimitBucket,
  { rows, bytes, ms }: { readonly rows: number; readonly bytes: number; readonly ms: number },
): void {
  const quotas = quotasFor(caller, bucket);
  if (quotas.length === 0) return;
  counts.charge(quotas, 'rows', rows);
  counts.charge(quotas, 'bytes', bytes);
  counts.charge(quotas, 'ms', Math.ceil(ms));
}

/** Returns the caller's quotas that count requests in a rate-limit bucket, or those that count the entities shown. */
export function quotasFor(
  { identity, access, snapshot, task }: Caller,
  counter: LimitBucket | 'entities',
): readonly Quota[] {
  return quotasOf(snapshot.quotas, identity, access.dataRoles, counter, task);
}

/** @throws QueryError E0532 if one of `quotas` counts per task and the request names none */
export function requireTask(quotas: readonly Quota[]): void {
  const quota = quotas.find(({ lacksTask }) => lacksTask);
  if (quota !== undefined) throw queryError('missingTask', { budget: quota.label });
}

/** Counts a request against the quotas `applicable`. @throws QueryError E4290 if one of them is used up */
function takeQuotas({ quotas }: Pick<Limiter, 'quotas'>, applicable: readonly Quota[]): void | Promise<void> {
  const result = quotas.take(applicable);
  return result instanceof Promise ? result.then(requireNotSpent) : requireNotSpent(result);
}

/** @throws QueryError E4290 if a quota is used up */
function requireNotSpent(result: QuotaResult): void {
  if (result.ok) return;
  const { quota, waitMs } = result;
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const renewsAt = renewalTime(waitMs);
  throw queryError('budgetSpent', { budget: quota.label, renewsAt, retryAfterSeconds });
}

/** Returns the time `waitMs` from now, rounded up to a second, as RFC 3339 in UTC. */
export function renewalTime(waitMs: number): string {
  const at = 1_000 * Math.ceil((Date.now() + waitMs) / 1_000);
  return `${new Date(at).toISOString().slice(0, -5)}Z`;
}

/** Returns the current counts of `quotas`, in the same order. @throws QueryError E5038 */
export function quotaCounts(
  { controls }: Pick<RequestParts, 'controls'>,
  quotas: readonly Quota[],
): Promise<readonly QuotaCount[]> {
  const { limiter } = SealedValue.open(controls);
  const countOf = async (quota: Quota): Promise<QuotaCount> => {
    const { key, windowMs, limit: maxSize, unit } = quota;
    const [count] =
      unit === 'entities'
        ? (await limiter.entities.add([{ key, windowMs, maxSize, members: [] }])).counts
        : await limiter.quotas.state([quota]);
    if (count === undefined) throw new InternalError('a limit has no count');
    return count;
  };
  return Promise.all(quotas.map(countOf));
}

/**
 * Lifetime of a `Payment` in ms. It equals the limiter's window, so at most twice the permitted number of statements
 * can run.
 */
const PAYMENT_TTL_MS = 1_000;

/** Rate-limit charge for compiling a prepared statement. It also covers the first execution within a second. */
export class Payment {
  #until = performance.now() + PAYMENT_TTL_MS;

  take(): boolean {
    const isValid = performance.now() <= this.#until;
    this.#until = 0;
    return isValid;
  }
}
