import { sql } from '../../base/sql.js';
import { type SystemEngine, UpstreamFailure } from '../../engine/index.js';

/** Which rollups are built, of what and when; written in the transaction that builds one. */
export const STATE = sql`osl_rollups.state`;

export const STATE_DDL = sql`CREATE TABLE IF NOT EXISTS ${STATE} (
  rollup text PRIMARY KEY, fingerprint text NOT NULL, table_name text NOT NULL, built_at timestamptz NOT NULL, rows int8 NOT NULL)`;

/** One that is built. */
export interface RollupState {
  readonly rollup: string;
  readonly fingerprint: string;
  /** `Date.now()`. */
  readonly builtAt: number;
  readonly rows: number;
}

const UNDEFINED_TABLE = '42P01';
const UNDEFINED_SCHEMA = '3F000';

/** Those of one database; none where nothing was ever built there. @throws UpstreamFailure, NoSystemCredentials */
export async function readStates(system: SystemEngine): Promise<readonly RollupState[]> {
  try {
    const rows = await system.query(
      sql`SELECT s.rollup, s.fingerprint, (extract(epoch FROM s.built_at) * 1000)::float8 AS built, s.rows
       FROM ${STATE} AS s WHERE to_regclass('osl_rollups.' || quote_ident(s.table_name)) IS NOT NULL`,
    );
    return rows.map((r) => ({
      rollup: String(r['rollup']),
      fingerprint: String(r['fingerprint']),
      // Downwards: it is never told as newer than it is.
      builtAt: Math.floor(Number(r['built'])),
      rows: Number(r['rows']),
    }));
  } catch (error) {
    const isMissing =
      error instanceof UpstreamFailure && [UNDEFINED_TABLE, UNDEFINED_SCHEMA].includes(error.sqlstate);
    if (isMissing) return [];
    throw error;
  }
}
