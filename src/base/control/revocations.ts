import { sql } from '../sql.js';
import type { ControlDatabase, ControlQueries } from './database.js';

/** A revocation as stored for all gateways. Times are ms since the epoch. */
export interface SharedRevocation {
  /** A UUID. */
  readonly id: string;
  readonly kind: 'token' | 'subject';
  readonly name: string;
  readonly at: number;
  readonly until: number;
}

/** Stores a revocation for all gateways, which are notified on commit. Idempotent. @throws ControlFault */
export function shareRevocation(
  database: ControlDatabase,
  tenant: string,
  { id, kind, name, at, until }: SharedRevocation,
  gateway: string,
): Promise<void> {
  return database.transaction(`revoked ${tenant}`, async (tx) => {
    await tx.query(
      sql`insert into osl_control.revocation (tenant, number, id, kind, name, at_ms, until_ms, gateway)
       select $1, 1 + coalesce((select max(number) from osl_control.revocation where tenant = $1), 0),
              $2, $3, $4, $5, $6, $7
        where not exists (select from osl_control.revocation where tenant = $1 and id = $2)`,
      [tenant, id, kind, name, at, until, gateway],
    );
  });
}

/** Number of the newest revocation; 0 if there is none. @throws ControlFault */
export async function lastRevocation(control: ControlQueries, tenant: string): Promise<number> {
  const [row] = await control.query(
    sql`select coalesce(max(number), 0) as number from osl_control.revocation where tenant = $1`,
    [tenant],
  );
  return Number(row?.['number']);
}

/** Revocations above `number` that are in force at `now`, ms since the epoch. @throws ControlFault */
export async function revokedAfter(
  control: ControlQueries,
  tenant: string,
  number: number,
  now: number,
): Promise<readonly SharedRevocation[]> {
  const rows = await control.query(
    sql`select id::text as id, kind, name, at_ms, until_ms from osl_control.revocation
      where tenant = $1 and number > $2 and until_ms > $3 order by number`,
    [tenant, number, now],
  );
  return rows.map((row) => ({
    id: String(row['id']),
    kind: row['kind'] === 'subject' ? 'subject' : 'token',
    name: String(row['name']),
    at: Number(row['at_ms']),
    until: Number(row['until_ms']),
  }));
}
