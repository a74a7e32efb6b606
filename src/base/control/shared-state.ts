import { sql } from '../sql.js';
import type { ControlDatabase, ControlQueries } from './database.js';
import { ControlConflict, controlVersions } from './policies.js';

/** A published version, as stored by a gateway. */
export interface PublishedVersion {
  readonly number: number;
  /** SHA-256 of `bytes`, in hex. */
  readonly id: string;
  readonly parent: string | null;
  readonly bytes: Buffer;
}

/** Returns the versions after number `after`, oldest first. @throws ControlFault */
export async function publishedAfter(
  control: ControlQueries,
  tenant: string,
  after: number,
): Promise<readonly PublishedVersion[]> {
  const rows = await control.query(
    sql`select number, id, parent, bytes from osl_control.published_version
     where tenant = $1 and number > $2 order by number`,
    [tenant, after],
  );
  return rows.map(({ number, id, parent, bytes }) => ({
    number: Number(number),
    id: String(id),
    parent: parent === null ? null : String(parent),
    bytes: Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0),
  }));
}

/** Returns the id of a published version; null if it does not exist. @throws ControlFault */
export async function publishedId(
  control: ControlQueries,
  tenant: string,
  number: number,
): Promise<string | null> {
  const [row] = await control.query(
    sql`select id from osl_control.published_version where tenant = $1 and number = $2`,
    [tenant, number],
  );
  return row === undefined ? null : String(row['id']);
}

/**
 * Publishes all of the versions for all gateways, or none. Gateways are notified on commit.
 *
 * @param activation number of the active policy that the versions were checked with; null if each gateway has its own
 * @throws ControlConflict if another gateway has published, or another policy is active; ControlFault
 */
export function shareVersions(
  database: ControlDatabase,
  tenant: string,
  versions: readonly PublishedVersion[],
  gateway: string,
  activation: number | null,
): Promise<void> {
  return database.transaction(`policy ${tenant}`, async (tx) => {
    const now = await controlVersions(tx, tenant);
    if (activation !== null && now.activation !== activation)
      throw new ControlConflict('another policy was activated meanwhile');
    if (now.published !== (versions[0]?.number ?? 0) - 1)
      throw new ControlConflict('another gateway has published meanwhile');
    for (const { number, id, parent, bytes } of versions)
      await tx.query(
        sql`insert into osl_control.published_version (tenant, number, id, parent, bytes, gateway)
         values ($1, $2, $3, $4, $5, $6)`,
        [tenant, number, id, parent, bytes, gateway],
      );
  });
}

/**
 * Registers the key if the tenant has none of this kind. Returns true if the registered key has this fingerprint, since
 * all gateways must have the same key. @throws ControlFault
 */
export async function isSharedKey(
  control: ControlQueries,
  tenant: string,
  kind: 'signing' | 'masking',
  fingerprint: string,
  gateway: string,
): Promise<boolean> {
  await control.query(
    sql`insert into osl_control.gateway_key (tenant, kind, fingerprint, gateway) values ($1, $2, $3, $4)
     on conflict do nothing`,
    [tenant, kind, fingerprint, gateway],
  );
  const [row] = await control.query(
    sql`select fingerprint from osl_control.gateway_key where tenant = $1 and kind = $2`,
    [tenant, kind],
  );
  return row?.['fingerprint'] === fingerprint;
}

/** A revocation as stored for all gateways. Times are in ms since the epoch. */
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

/** Returns the number of the newest revocation; 0 if there is none. @throws ControlFault */
export async function lastRevocation(control: ControlQueries, tenant: string): Promise<number> {
  const [row] = await control.query(
    sql`select coalesce(max(number), 0) as number from osl_control.revocation where tenant = $1`,
    [tenant],
  );
  return Number(row?.['number']);
}

/** Returns revocations after `number` that are in force at `now` (ms since the epoch). @throws ControlFault */
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

/** An approval request as stored for all gateways, with each part as JSON. */
export interface StoredApproval {
  readonly request: string;
  readonly decision: string | null;
  readonly revoked: string | null;
}

/** Returns the entries that have not expired at `now` (ms since the epoch). @throws ControlFault */
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
 * Adds an approval request and returns null, unless `refuses` returns a limit for the existing entries: then returns
 * that limit. Requests of all gateways are added one after another. Idempotent. Expired entries are removed.
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

/**
 * Stores the first decision about a request, and the new end of its entry. Returns false if the request is already
 * decided, has expired or does not exist. @throws ControlFault
 */
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

/** Revokes an approval. Returns false if it is already revoked, has expired or does not exist. @throws ControlFault */
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

/** Maximum age of a gateway's stored offset. A gateway with an older offset is considered stopped. */
const RECENT = sql`interval '30 seconds'`;

/** Returns the time of the database in ms since 1970. @throws ControlFault */
export async function databaseTime(control: ControlQueries): Promise<number> {
  const [row] = await control.query(
    sql`select (1000 * extract(epoch from clock_timestamp()))::float8 as now`,
  );
  return Number(row?.['now']);
}

/** Difference between the clock of a gateway and that of the control database. */
interface ClockOffset {
  readonly tenant: string;
  /** Name of the gateway, the same after a restart. */
  readonly gateway: string;
  /** Milliseconds by which the gateway's clock is ahead of the database's. */
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
