import { sql } from '../sql.js';
import type { ControlQueries } from './database.js';

/**
 * Whether all gateways of a tenant have this key: the first one that comes says which it is. @throws ControlFault
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
