/** Connections to a Postgres. The only place that imports `pg`, so that no client without an error listener can be made. */
import { types } from 'pg';

export type { Pool as PostgresPool, PoolClient as LentClient } from 'pg';
export { PostgresClient, postgresPool } from './client.js';
export { openSession, type PostgresSession, type ResultRow } from './session.js';

/** Reads the text of a value of a type, by its OID, as `pg` does. */
export function textParser(oid: number): (text: string) => unknown {
  return types.getTypeParser(oid, 'text');
}
