import type { PostgresSession } from '../../../base/postgres/index.js';
import type { LogOrigin } from './history.js';
import { type LogPosition, lastRecordEnd, logPosition } from './position.js';

/** A server's origin, and the end of its log: of what is written or, on a standby, of what is replayed. */
export interface ServerPosition {
  readonly isStandby: boolean;
  readonly position: LogPosition;
  readonly origin: LogOrigin;
  /** When the server was started, as it writes it; no two servers were started in the same microsecond. */
  readonly startedAt: string;
}

/** When the server of a session was started. */
export const STARTED_AT = 'select pg_catalog.pg_postmaster_start_time()::pg_catalog.text as started_at';

/**
 * The position of inserted records, not of flushed ones, since commits without a flush are visible too. A standby tells
 * its timeline late in its control file, at its next restart point; `pg_stat_wal_receiver` tells it at once, to roles
 * with pg_read_all_stats.
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

/** @throws Error if the session is lost or the server says something else */
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
