import { openSession, type PostgresSession, type ResultRow } from '../../src/base/postgres/index.js';

export type { ResultRow };

/** One connection to the database of the log. */
export type TableSession = Pick<PostgresSession, 'query' | 'open' | 'cut' | 'end'>;

/** Connection URL, read again for each connection because the password may change. */
export type TableUrl = () => string;

const CONNECT_MS = 5_000;
/** Beyond the time of a statement, after which the server itself says that it took too long, ms. */
const GRACE_MS = 1_000;

/** @throws as `pg` does where the database does not answer, or lets nobody in */
export async function connectTable(url: TableUrl, statementMs: number): Promise<TableSession> {
  return openSession({
    connectionString: url(),
    application_name: 'osl audit',
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    silenceMs: statementMs + GRACE_MS,
    // Nobody's function stands in for one of Postgres; a commit is on disk when it is answered.
    options: '-c search_path=pg_catalog -c synchronous_commit=on -c client_encoding=UTF8',
  });
}
