/** The only module that imports `pg`, so that every client has an error listener. */
import { types } from 'pg';

export type { Pool as PostgresPool, PoolClient as LentClient } from 'pg';
export { PostgresClient, postgresPool } from './client.js';
export { openSession, type PostgresSession, type ResultRow } from './session.js';

/** Parser of `pg` for values of a type, by OID, in text format. */
export function textParser(oid: number): (text: string) => unknown {
  return types.getTypeParser(oid, 'text');
}
