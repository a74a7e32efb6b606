import type { Circumstances } from './circumstances.js';
import type { BreakGlass, Conditions, Hours } from './conditions.js';
import type { Identity } from './identity.js';
import { nextMinute } from './local-time.js';
import { purposeOf } from './purpose.js';
import type { PolicySnapshot } from './snapshot.js';

/** Whether all of `conditions` holds for a request of `identity`. What is not known does not hold. */
export function holds(
  conditions: Conditions,
  identity: Identity,
  snapshot: PolicySnapshot,
  { now, surface, address, purpose: stated, emergency }: Circumstances,
): boolean {
  const { startsAt, endsAt, hours, surfaces, network, claims, purposes, breakGlass } = conditions;
  if (!(now >= startsAt && now < endsAt)) return false;
  if (hours !== null && !isWithin(hours, now)) return false;
  if (surfaces !== null && !surfaces.has(surface)) return false;
  if (network !== null && (address === null || !network(address))) return false;
  for (const [name, values] of claims) {
    const claimed = identity.claims?.get(name) ?? NONE;
    if (!claimed.some((value) => values.has(value))) return false;
  }
  const purpose = purposes === null ? null : purposeOf(identity, snapshot, stated);
  if (purposes !== null && (purpose === null || !purposes.has(purpose))) return false;
  return breakGlass === null || isBroken(breakGlass, identity, now, emergency);
}

const NONE: readonly string[] = Object.freeze([]);

/** A glass is broken by a person, who answers for it: one who acts for another does not. */
function isBroken(
  { minutes }: BreakGlass,
  { chain }: Identity,
  now: number,
  emergency: Circumstances['emergency'],
): boolean {
  if (emergency === null || chain.length !== 1) return false;
  return now >= emergency.startedAt && now < emergency.startedAt + minutes * MINUTE_MS;
}

const MINUTE_MS = 60_000;

function isWithin({ clock, from, to, days }: Hours, now: number): boolean {
  const { day, minute } = clock(now);
  if (from < to) return days.has(day) && minute >= from && minute < to;
  return (days.has(day) && minute >= from) || (days.has((day + 6) % 7) && minute < to);
}

/**
 * Until when what `holds` says of `conditions` cannot change by itself: ms since the epoch, later than `now`. Whatever is
 * kept of a caller's rights is kept no longer.
 */
export function holdsUntil(
  { startsAt, endsAt, hours, breakGlass }: Conditions,
  { now, emergency }: Circumstances,
): number {
  const ends =
    breakGlass === null || emergency === null ? [] : [emergency.startedAt + breakGlass.minutes * MINUTE_MS];
  const moments = [startsAt, endsAt, ...ends].filter((moment) => moment > now);
  return Math.min(...moments, hours === null ? Number.POSITIVE_INFINITY : nextMinute(now));
}
