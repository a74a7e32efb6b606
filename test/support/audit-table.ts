import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { gatewayGrants, maintenanceGrants, readerGrants, SCHEMA } from '../../audit/table/index.js';
import { type NativePostgres, startNativePostgres, urlAs } from './native-postgres.js';

/** A database with the tables of an audit log, and a login for each part in it. */
export interface AuditTable {
  readonly postgres: NativePostgres;
  readonly gatewayUrl: string;
  readonly readerUrl: string;
  readonly maintenanceUrl: string;
  /** Runs statements as the owner of the tables. */
  owner(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** The same as somebody else. */
  as(url: string, sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
}

/** Null where there is no native server. */
export async function startAuditTable(): Promise<AuditTable | null> {
  const postgres = await startNativePostgres();
  if (postgres === null) return null;
  const id = randomBytes(5).toString('hex');
  const roles = { gateway: `osl_gw_${id}`, reader: `osl_rd_${id}`, maintenance: `osl_mt_${id}` };
  const owner = (sql: string, values: readonly unknown[] = []) => run(postgres.url, sql, values);
  for (const role of Object.values(roles)) await owner(`CREATE ROLE ${role} LOGIN PASSWORD '${id}'`);
  await owner(
    `${SCHEMA}${gatewayGrants(roles.gateway)}${readerGrants(roles.reader)}${maintenanceGrants(roles.maintenance)}`,
  );
  const as = (role: string): string => urlAs(postgres.url, role, id);
  return {
    postgres,
    gatewayUrl: as(roles.gateway),
    readerUrl: as(roles.reader),
    maintenanceUrl: as(roles.maintenance),
    owner,
    as: run,
    async stop() {
      for (const role of Object.values(roles)) await owner(`DROP OWNED BY ${role}`);
      // The roles are the server's; its database goes with what they may do there.
      for (const role of Object.values(roles)) await owner(`DROP ROLE ${role}`);
      await postgres.stop();
    },
  };
}

async function run(
  url: string,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const result = await client.query(sql, values.length === 0 ? undefined : [...values]);
    return Array.isArray(result) ? [] : result.rows;
  } finally {
    await client.end();
  }
}
