import { setTimeout as sleep } from 'node:timers/promises';
import { openSessionOnFirst, type PostgresSession } from '../../../base/postgres/index.js';
import { positionOf, type ServerPosition } from './probe.js';

/** A server that is named as a standby, compared with its primary. */
export interface StandbyComparison {
  readonly isStandby: boolean;
  readonly isOfSystem: boolean;
  readonly isOnTimeline: boolean;
  /** Upper bound on the age of its data in ms; null if it was not within the limit. */
  readonly lagMs: number | null;
}

/** The session ends if a server does not answer for this long, in ms. */
const SILENCE_MS = 10_000;
const POLL_MS = 20;

/**
 * Asks the primary for its position, and the other server until it has replayed it. Throws Error if one cannot be
 * reached, or does not tell its position.
 *
 * @param withinMs time in ms after which the standby is too old
 */
export async function compareStandby(
  primaryUrl: string,
  url: string,
  withinMs: number,
): Promise<StandbyComparison> {
  const sessions: PostgresSession[] = [];
  const opened = async (at: string): Promise<PostgresSession> => {
    const session = await openSessionOnFirst(at, {
      application_name: 'osl-gateway setup',
      silenceMs: SILENCE_MS,
    });
    sessions.push(session);
    return session;
  };
  try {
    const standby = await opened(url);
    const primary = await opened(primaryUrl);
    const askedAt = performance.now();
    const target = await positionOf(primary);
    const first = await positionOf(standby);
    const compared = {
      isStandby: first.isStandby,
      isOfSystem: first.origin.system === target.origin.system,
      isOnTimeline: first.origin.timeline === target.origin.timeline,
    };
    const isComparable = compared.isStandby && compared.isOfSystem && compared.isOnTimeline;
    if (!isComparable) return { ...compared, lagMs: null };
    return { ...compared, lagMs: await lagOf(standby, first, target, askedAt, withinMs) };
  } finally {
    for (const session of sessions) session.cut();
  }
}

async function lagOf(
  standby: PostgresSession,
  first: ServerPosition,
  target: ServerPosition,
  askedAt: number,
  withinMs: number,
): Promise<number | null> {
  for (let now = first; ; now = await positionOf(standby)) {
    const ms = performance.now() - askedAt;
    if (ms > withinMs) return null;
    if (now.position >= target.position) return Math.ceil(ms);
    await sleep(POLL_MS);
  }
}
