import { queryError } from 'osl-compiler';
import { type Emergency, type Identity, mayBreakGlass } from '../../../policy/index.js';
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
  /** Notifies the operator and the policy's owner, without waiting for delivery. */
  alarm(broken: BreakGlassUse): void;
}

export interface BreakGlassParts extends RequestParts {
  readonly glasses: BreakGlassRegistry;
}

/** Length limits, in UTF-16 code units, of a reason, which must be one line of readable text. */
const LEAST = 8;
const MOST = 500;
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
  const allowed = snapshot === null ? null : mayBreakGlass(identity, snapshot);
  const running = allowed === null ? null : await parts.glasses.running(identity, reason, allowed.minutes);
  if (running !== null) return running;
  return respond<{ readonly emergency: Emergency; readonly endsAt: number }, Emergency>(parts, call, {
    action: 'break_glass',
    bucket: 'catalog',
    readsNoRows: true,
    decide: async ({ identity, snapshot }, record) => {
      const glass = mayBreakGlass(identity, snapshot);
      if (glass === null) throw queryError('noGlass', {});
      if (reason.trim().length < LEAST || reason.length > MOST || UNREADABLE.test(reason))
        throw queryError('glassReason', { least: LEAST, most: MOST });
      const taken = await parts.glasses.take(identity, reason, glass.perDay);
      if (typeof taken === 'number') throw queryError('glassSpent', { retryAfterSeconds: taken });
      const endsAt = taken.startedAt + glass.minutes * 60_000;
      record.says(JSON.stringify({ break_glass: taken.id, reason, ends: new Date(endsAt).toISOString() }));
      return { emergency: taken, endsAt };
    },
    answer: ({ emergency, endsAt }, caller) => {
      const { subject } = caller.identity;
      const { surface, requestId } = call;
      parts.glasses.alarm({ ...emergency, subject, reason, surface, requestId, endsAt });
      return emergency;
    },
  });
}
