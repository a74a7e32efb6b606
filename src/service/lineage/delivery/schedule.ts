const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses after each attempt, ms; after the last attempt an event is a dead letter. */
const PAUSES: readonly number[] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];

export const ATTEMPTS: number = PAUSES.length + 1;

/** Longest `Retry-After` that is honoured. */
const LONGEST_WISH = 24 * HOUR;

/**
 * Pause before the next attempt, ms, with up to 20 % jitter; null: no more attempts.
 *
 * @param attempts made so far, at least one
 * @param wish `Retry-After` of the receiver, ms
 * @param chance random number from 0 to 1
 */
export function pauseAfter(attempts: number, wish: number | null, chance: number): number | null {
  const pause = PAUSES[attempts - 1];
  if (pause === undefined) return null;
  return Math.max(Math.round(pause * (1 + chance / 5)), Math.min(wish ?? 0, LONGEST_WISH));
}

/** Parses `Retry-After`, ms from `now`; null if absent or malformed. */
export function wishOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * SECOND;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
