/** The only module that imports `pg`, so that every client has an error listener. */
import { types } from 'pg';

export type { Pool as PostgresPool, PoolClient as LentClient } from 'pg';
export {
  openSession,
  openSessionOnFirst,
  PostgresClient,
  type PostgresSession,
  postgresPool,
  type ResultRow,
} from './client.js';

export {
  CONNECT_ONE_MS,
  OtherRole,
  onFirstHost,
  requireRole,
  upstreamOf,
  withoutLogin,
  withoutPassword,
} from './hosts.js';

/** Returns the parser that `pg` uses for a type, given by its OID, in text format. */
export function textParser(oid: number): (text: string) => unknown {
  return types.getTypeParser(oid, 'text');
}
