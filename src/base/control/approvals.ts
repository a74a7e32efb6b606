import { sql } from '../sql.js';
import type { ControlDatabase, ControlQueries } from './database.js';

/** An approval request as stored for all gateways, each part as JSON. */
export interface StoredApproval {
  readonly request: string;
  readonly decision: string | null;
  readonly revoked: string | null;
}

/** Returns the entries that have not ended at `now` (ms since the epoch). @throws ControlFault */
export async function approvalsAt(
  control: ControlQueries,
  tenant: string,
  now: number,
): Promise<readonly StoredApproval[]> {
  const rows = await control.query(
    sql`select request, decision, revoked from osl_control.approval
      where tenant = $1 and until_ms > $2 order by at, id`,
    [tenant, now],
  );
  return rows.map(({ request, decision, revoked }) => ({
    request: String(request),
    decision: decision === null ? null : String(decision),
    revoked: revoked === null ? null : String(revoked),
  }));
}

/**
 * Adds a request unless `refuses` returns a limit for the entries that exist; requests of all gateways are added one
 * after another. Idempotent. Entries that have ended are removed.
 *
 * @param until end of the request, ms since the epoch
 * @throws ControlFault
 */
export function addApproval(
  database: ControlDatabase,
  tenant: string,
  {
    id,
    request,
    until,
    gateway,
  }: Readonly<Record<'id' | 'request' | 'gateway', string>> & { readonly until: number },
  refuses: (entries: readonly StoredApproval[]) => number | null,
): Promise<number | null> {
  return database.transaction(`approval ${tenant}`, async (tx) => {
    const now = Date.now();
    await tx.query(sql`delete from osl_control.approval where tenant = $1 and until_ms <= $2`, [tenant, now]);
    const limit = refuses(await approvalsAt(tx, tenant, now));
    if (limit !== null) return limit;
    await tx.query(
      sql`insert into osl_control.approval (tenant, id, request, until_ms, gateway) values ($1, $2, $3, $4, $5)
       on conflict do nothing`,
      [tenant, id, request, until, gateway],
    );
    return null;
  });
}

/** Stores the first decision about a request, and its new end; false if there is one, or no request. @throws ControlFault */
export async function decideStoredApproval(
  control: ControlQueries,
  tenant: string,
  id: string,
  decision: string,
  until: number | null,
): Promise<boolean> {
  const rows = await control.query(
    sql`update osl_control.approval set decision = $3, until_ms = coalesce($4, until_ms)
      where tenant = $1 and id = $2 and decision is null and until_ms > $5 returning id`,
    [tenant, id, decision, until, Date.now()],
  );
  return rows.length > 0;
}

/** Revokes an approval; false if it was revoked before, or there is none. @throws ControlFault */
export async function revokeStoredApproval(
  control: ControlQueries,
  tenant: string,
  id: string,
  revoked: string,
): Promise<boolean> {
  const rows = await control.query(
    sql`update osl_control.approval set revoked = $3
      where tenant = $1 and id = $2 and decision is not null and revoked is null and until_ms > $4 returning id`,
    [tenant, id, revoked, Date.now()],
  );
  return rows.length > 0;
}
