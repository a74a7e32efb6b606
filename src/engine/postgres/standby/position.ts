import { setTimeout as sleep } from 'node:timers/promises';
import { openSessionOnFirst, type PostgresSession } from '../../../base/postgres/index.js';

/** A position in the write-ahead log, in bytes. */
export type WalPosition = bigint;

const FORM = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/;
const PAGE_BYTES = 8_192n;
const PAGE_HEADER_BYTES = 24n;
const SEGMENT_HEADER_BYTES = 40n;

/** Parses a `pg_lsn`, such as `16/B374D848`. Throws Error for anything else. */
export function logPosition(text: string): WalPosition {
  const [, high, low] = FORM.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`\`${text}\` is no position in the log`);
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/**
 * Returns the end of the last record before an insert position. If the next record begins a page, Postgres reports the
 * position after the page header, which a standby reaches only with that record: an idle standby would seem to lag.
 *
 * @param segmentBytes `wal_segment_size`
 */
export function lastRecordEnd(inserted: WalPosition, segmentBytes: bigint): WalPosition {
  if (inserted % segmentBytes === SEGMENT_HEADER_BYTES) return inserted - SEGMENT_HEADER_BYTES;
  return inserted % PAGE_BYTES === PAGE_HEADER_BYTES ? inserted - PAGE_HEADER_BYTES : inserted;
}

/** Identifies the history of a log. Servers with another system identifier or timeline have different data. */
export interface LogOrigin {
  /** `system_identifier` of the cluster. */
  readonly system: string;
  readonly timeline: number;
}

/**
 * Positions in the primary's log, each with the time just before it was requested from the primary. Commits before
 * that time end at or before the position, so a standby that has replayed the log up to the position has all of them.
 * Clocks of different machines are never compared.
 */
export class PrimaryHistory {
  readonly #maxAgeMs: number;
  readonly #samples: { readonly at: number; readonly position: WalPosition }[] = [];
  #origin: LogOrigin | null = null;

  /** @param maxAgeMs age in ms at which a sample is dropped */
  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs;
  }

  /** @param at time just before the request to the primary, in ms on the clock of `performance.now()` */
  add(at: number, position: WalPosition, origin: LogOrigin): void {
    const last = this.#samples.at(-1);
    const continues = this.matches(origin) && (last === undefined || last.position <= position);
    if (!continues) this.#samples.length = 0;
    this.#origin = origin;
    while ((this.#samples[0]?.at ?? at) < at - this.#maxAgeMs) this.#samples.shift();
    this.#samples.push({ at, position });
  }

  get isEmpty(): boolean {
    return this.#origin === null;
  }

  matches(origin: LogOrigin): boolean {
    return this.matchesSystem(origin) && this.#origin?.timeline === origin.timeline;
  }

  matchesSystem({ system }: LogOrigin): boolean {
    return this.#origin?.system === system;
  }

  /** Returns the latest sampled time before which all commits end by `replayed`; null if all samples lie beyond it. */
  asOf(replayed: WalPosition): number | null {
    return this.#samples.findLast(({ position }) => position <= replayed)?.at ?? null;
  }
}

/** A server's origin and log position: the end of the inserted records or, on a standby, of the replayed records. */
export interface ServerPosition {
  readonly isStandby: boolean;
  readonly position: WalPosition;
  readonly origin: LogOrigin;
  /** Start time as the server prints it. Identifies the server, since no two start in the same microsecond. */
  readonly startedAt: string;
}

/** Query for the start time of the session's server. */
export const STARTED_AT = 'select pg_catalog.pg_postmaster_start_time()::pg_catalog.text as started_at';

/**
 * Query for a server's position. It uses the insert position, not the flush position, since commits without a flush are
 * visible too. The control file of a standby shows a new timeline only after the next restart point;
 * `pg_stat_wal_receiver` shows it at once, to roles with pg_read_all_stats.
 */
const POSITION = `
  select r.standby, pg_catalog.pg_postmaster_start_time()::pg_catalog.text as started_at,
         case when r.standby then pg_catalog.pg_last_wal_replay_lsn()
              else pg_catalog.pg_current_wal_insert_lsn() end::pg_catalog.text as position,
         (select system_identifier::pg_catalog.text from pg_catalog.pg_control_system()) as system,
         case when r.standby then greatest(
                (select timeline_id from pg_catalog.pg_control_checkpoint()),
                (select min_recovery_end_timeline from pg_catalog.pg_control_recovery()),
                (select received_tli from pg_catalog.pg_stat_wal_receiver))
              else ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8))
                ::pg_catalog.bit(32)::pg_catalog.int4 end as timeline,
         (select setting from pg_catalog.pg_settings where name = 'wal_segment_size') as segment
    from (select pg_catalog.pg_is_in_recovery() as standby) r`;

/** Reads the server's position in the log. @throws Error if the session is lost or the answer is not a position */
export async function positionOf(session: PostgresSession): Promise<ServerPosition> {
  const [row] = await session.query(POSITION);
  const isStandby = row?.['standby'];
  const timeline = row?.['timeline'];
  if (typeof isStandby !== 'boolean' || typeof timeline !== 'number')
    throw new Error('the server does not tell its position in the log');
  const position = logPosition(String(row?.['position']));
  return {
    isStandby,
    position: isStandby ? position : lastRecordEnd(position, BigInt(String(row?.['segment']))),
    startedAt: String(row?.['started_at']),
    origin: { system: String(row?.['system']), timeline },
  };
}

/** Result of comparing a server that is configured as a standby with its primary. */
export interface StandbyComparison {
  readonly isStandby: boolean;
  readonly isOfSystem: boolean;
  readonly isOnTimeline: boolean;
  /** Upper bound on the age of the server's data in ms; null if over the limit or if a field above is false. */
  readonly lagMs: number | null;
}

/** The session ends if a server does not answer for this long, in ms. */
const SILENCE_MS = 10_000;
const POLL_MS = 20;

/**
 * Asks the primary for its position, then polls the standby until it has replayed the log up to that position. Throws
 * Error if a server cannot be reached or does not report its position.
 *
 * @param withinMs time in ms after which the standby counts as too old
 */
export async function compareStandby(
  primaryUrl: string,
  url: string,
  withinMs: number,
): Promise<StandbyComparison> {
  const sessions: PostgresSession[] = [];
  const open = async (at: string): Promise<PostgresSession> => {
    const session = await openSessionOnFirst(at, {
      application_name: 'osl-gateway setup',
      silenceMs: SILENCE_MS,
    });
    sessions.push(session);
    return session;
  };
  try {
    const standby = await open(url);
    const primary = await open(primaryUrl);
    const requestedAt = performance.now();
    const target = await positionOf(primary);
    const first = await positionOf(standby);
    const compared = {
      isStandby: first.isStandby,
      isOfSystem: first.origin.system === target.origin.system,
      isOnTimeline: first.origin.timeline === target.origin.timeline,
    };
    const isComparable = compared.isStandby && compared.isOfSystem && compared.isOnTimeline;
    if (!isComparable) return { ...compared, lagMs: null };
    return { ...compared, lagMs: await lagOf(standby, first, target, requestedAt, withinMs) };
  } finally {
    for (const session of sessions) session.cut();
  }
}

async function lagOf(
  standby: PostgresSession,
  first: ServerPosition,
  target: ServerPosition,
  requestedAt: number,
  withinMs: number,
): Promise<number | null> {
  for (let current = first; ; current = await positionOf(standby)) {
    const ms = performance.now() - requestedAt;
    if (ms > withinMs) return null;
    if (current.position >= target.position) return Math.ceil(ms);
    await sleep(POLL_MS);
  }
}
