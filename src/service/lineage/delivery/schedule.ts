const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses after the first attempt, the second, …; after the last attempt an event is a dead letter. ms */
const PAUSES: readonly number[] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];

export const ATTEMPTS: number = PAUSES.length + 1;

/** The most that a receiver may ask us to wait. */
const LONGEST_WISH = 24 * HOUR;

/**
 * When an event that failed is tried again, ms from now; null for never. Up to a fifth is added by chance, so that
 * what failed together does not come together.
 *
 * @param attempts made so far, at least one
 * @param wish what the receiver asked for, ms
 * @param chance 0 to 1
 */
export function pauseAfter(attempts: number, wish: number | null, chance: number): number | null {
  const pause = PAUSES[attempts - 1];
  if (pause === undefined) return null;
  return Math.max(Math.round(pause * (1 + chance / 5)), Math.min(wish ?? 0, LONGEST_WISH));
}

/** What `Retry-After` asks for, in ms from `now`; null where it says nothing that can be read. */
export function wishOf(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header.trim()) * SECOND;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
