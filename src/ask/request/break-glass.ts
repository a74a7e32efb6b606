import { queryError } from 'osl-compiler';
import { type Emergency, type Identity, mayBreakGlass } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { RequestParts } from './parts.js';
import { respond } from './respond.js';

/** A use of break-glass access, as reported to the operator and the owner of the data. */
export interface BrokenGlass extends Emergency {
  readonly subject: string;
  readonly reason: string;
  readonly surface: string;
  readonly requestId: string;
  /** ms since the epoch */
  readonly endsAt: number;
}

/** Break-glass access in use, and the uses of each subject, over all processes of the server. */
export interface Glasses {
  /** The current emergency of `identity` with this reason, begun within `minutes`; null if there is none. */
  running(identity: Identity, reason: string, minutes: number): Promise<Emergency | null>;
  /** Begins an emergency; if the daily limit is reached, returns the seconds until the next one is possible. */
  take(identity: Identity, reason: string, perDay: number): Promise<Emergency | number>;
  /** Notifies operator and owner; the delivery may be slow. */
  alarm(broken: BrokenGlass): void;
}

export interface GlassParts extends RequestParts {
  readonly glasses: Glasses;
}

/** A reason is for people to read: some words, on one line, in the order in which they were written. */
const LEAST = 8;
const MOST = 500;
// biome-ignore format: the ranges stay apart
const UNREADABLE = /[\p{Cc}\p{Cs}\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/u;

/**
 * Breaks the glass for `call`, whose caller says why: a request like any other, whose decision has the reason, and is
 * durable before any right widens. The same reason again, while that runs, is the same glass, and no further record.
 *
 * @throws QueryError E2101, E2104, E3001, E2001, E4290, E5030
 */
export async function breakGlass(
  parts: GlassParts,
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
