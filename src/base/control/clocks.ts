import { sql } from '../sql.js';
import type { ControlQueries } from './database.js';

/** Interval in which each gateway must write its offset, so that it counts. */
const RECENT = sql`interval '30 seconds'`;

/** Returns the time of the database in ms since 1970. @throws ControlFault */
export async function databaseTime(control: ControlQueries): Promise<number> {
  const [row] = await control.query(
    sql`select (1000 * extract(epoch from clock_timestamp()))::float8 as now`,
  );
  return Number(row?.['now']);
}

/** The difference between the clock of a gateway and that of the control database. */
interface ClockOffset {
  readonly tenant: string;
  /** Name of the gateway, the same after a restart. */
  readonly gateway: string;
  /** Milliseconds by which it is ahead of the database. */
  readonly offsetMs: number;
}

/**
 * Stores the offset of a gateway, and returns the number of other gateways of the tenant that are running and within
 * `toleranceMs` of the database's time.
 *
 * @throws ControlFault
 */
export async function shareClockOffset(
  control: ControlQueries,
  { tenant, gateway, offsetMs }: ClockOffset,
  toleranceMs: number,
): Promise<number> {
  const [row] = await control.query(
    sql`with gone as (
       delete from osl_control.gateway_clock where seen_at < clock_timestamp() - interval '1 hour'),
     own as (
       insert into osl_control.gateway_clock as c (tenant, gateway, offset_ms, seen_at)
       values ($1, $2, $3, clock_timestamp())
       on conflict (tenant, gateway) do update set offset_ms = excluded.offset_ms, seen_at = excluded.seen_at)
     select count(*)::int as agreeing from osl_control.gateway_clock
     where tenant = $1 and gateway <> $2 and abs(offset_ms) <= $4
       and seen_at > clock_timestamp() - ${RECENT}`,
    [tenant, gateway, offsetMs, toleranceMs],
  );
  return Number(row?.['agreeing'] ?? 0);
}
