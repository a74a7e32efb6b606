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

/** True if all gateways of the tenant have this key; the first caller registers its key. @throws ControlFault */
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
