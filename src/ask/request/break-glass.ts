import { queryError } from 'osl-compiler';
import { breakGlassLimitsOf, type Emergency, type Identity } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { RequestParts } from './parts.js';
import { respond } from './respond.js';

/** A use of break-glass access, as reported to the operator and the policy's owner. */
export interface BreakGlassUse extends Emergency {
  readonly subject: string;
  readonly reason: string;
  readonly surface: string;
  readonly requestId: string;
  /** End of the emergency, in ms since the epoch. */
  readonly endsAt: number;
}

/** Registry of break-glass access, over all processes of the server. */
export interface BreakGlassRegistry {
  /** Returns the current emergency of `identity` with this reason; null if none began within the last `minutes`. */
  running(identity: Identity, reason: string, minutes: number): Promise<Emergency | null>;
  /** Starts an emergency. If the daily limit is reached, returns the seconds until the next one is allowed. */
  take(identity: Identity, reason: string, perDay: number): Promise<Emergency | number>;
  /** Notifies the operator and the policy's owner of a use, without waiting for delivery. */
  alarm(use: BreakGlassUse): void;
}

export interface BreakGlassParts extends RequestParts {
  readonly breakGlassRegistry: BreakGlassRegistry;
}

/** Length limits, in UTF-16 code units, of a reason, which must be one line of readable text. */
const MIN_REASON_LENGTH = 8;
const MAX_REASON_LENGTH = 500;
// biome-ignore format: the ranges stay apart
const UNREADABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/u;

/**
 * Grants break-glass access. The decision record contains the reason and is durable before rights are widened. Until
 * the emergency ends, a call with the same reason returns the same emergency without another record.
 *
 * @throws QueryError E2101, E2104, E3001, E2001, E4290, E5030
 */
export async function breakGlass(
  parts: BreakGlassParts,
  call: RequestCall,
  identity: Identity,
  reason: string,
): Promise<Emergency> {
  const { snapshot } = parts.model();
  const allowed = snapshot === null ? null : breakGlassLimitsOf(identity, snapshot);
  const running =
    allowed === null ? null : await parts.breakGlassRegistry.running(identity, reason, allowed.minutes);
  if (running !== null) return running;
  return respond<{ readonly emergency: Emergency; readonly endsAt: number }, Emergency>(parts, call, {
    action: 'break_glass',
    bucket: 'catalog',
    readsNoRows: true,
    decide: async ({ identity, snapshot }, record) => {
      const limits = breakGlassLimitsOf(identity, snapshot);
      if (limits === null) throw queryError('noGlass', {});
      if (
        reason.trim().length < MIN_REASON_LENGTH ||
        reason.length > MAX_REASON_LENGTH ||
        UNREADABLE.test(reason)
      )
        throw queryError('glassReason', { least: MIN_REASON_LENGTH, most: MAX_REASON_LENGTH });
      const emergency = await parts.breakGlassRegistry.take(identity, reason, limits.perDay);
      if (typeof emergency === 'number') throw queryError('glassSpent', { retryAfterSeconds: emergency });
      const endsAt = emergency.startedAt + limits.minutes * 60_000;
      record.setDetail(
        JSON.stringify({ break_glass: emergency.id, reason, ends: new Date(endsAt).toISOString() }),
      );
      return { emergency, endsAt };
    },
    answer: ({ emergency, endsAt }, caller) => {
      const { subject } = caller.identity;
      const { surface, requestId } = call;
      parts.breakGlassRegistry.alarm({ ...emergency, subject, reason, surface, requestId, endsAt });
      return emergency;
    },
  });
}
