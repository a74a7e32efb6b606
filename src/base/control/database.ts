import { type LentClient, type PostgresPool, postgresPool, type ResultRow } from '../postgres/index.js';
import { Sql, sql } from '../sql.js';
import { CONNECTION_FAULTS, messageOf } from '../thrown.js';
import { type ControlPlace, controlUrl } from './url.js';

export type { ResultRow };

export interface ControlQueries {
  /** @throws ControlFault */
  query(statement: Sql, values?: readonly unknown[]): Promise<readonly ResultRow[]>;
}

/** The database of `OSL_CONTROL_URL`, whose schema `osl_control` holds the state shared by gateways. */
export interface ControlDatabase extends ControlQueries {
  /**
   * Runs `work` in a transaction. Transactions with the same name run one after another, across all gateways.
   *
   * @throws ControlFault
   */
  transaction<T>(name: string, work: (tx: ControlQueries) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface ControlOptions {
  /** Maximum number of connections; default 2. */
  readonly connections?: number;
  /** Timeout of each statement in ms; default 5000. */
  readonly statementMs?: number;
}

const CONNECT_MS = 5_000;
const STATEMENT_MS = 5_000;
const IDLE_MS = 60_000;

/**
 * Connects lazily. After a failed connection, a new pool is created with the URL valid at that time. If the server
 * does not answer, the attempt ends after the timeout of one statement.
 */
export function openControl(place: ControlPlace, options: ControlOptions = {}): ControlDatabase {
  const { connections = 2, statementMs = STATEMENT_MS } = options;
  let pool: PostgresPool | null = null;
  let closed = false;
  const poolNow = (): PostgresPool => {
    if (closed) throw controlFault(new Error('it was closed'));
    if (pool !== null) return pool;
    const made = postgresPool({
      ...connectionOf(place, 'osl control', statementMs),
      max: connections,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    });
    pool = made;
    return made;
  };
  const connect = async (): Promise<LentClient> => {
    const at = poolNow();
    try {
      return await at.connect();
    } catch (error) {
      // The password in the file may have changed, so the next call creates a new pool. This one is ended only once.
      if (pool === at) {
        pool = null;
        at.end().catch(() => undefined);
      }
      throw controlFault(error);
    }
  };
  const lent = async <T>(work: (client: LentClient) => Promise<T>): Promise<T> => {
    const client = await connect();
    let broken = true;
    try {
      const given = await work(client);
      broken = false;
      return given;
    } finally {
      client.release(broken);
    }
  };
  return Object.freeze({
    query: (statement: Sql, values: readonly unknown[] = []) =>
      lent((client) => run(client, statement, values)),
    transaction: <T>(name: string, work: (tx: ControlQueries) => Promise<T>): Promise<T> =>
      lent(async (client) => {
        await run(client, sql`begin`, []);
        await run(client, sql`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [
          `osl_control ${name}`,
        ]);
        const given = await work({ query: (statement, values = []) => run(client, statement, values) });
        await run(client, sql`commit`, []);
        return given;
      }),
    close: async () => {
      if (closed) return;
      closed = true;
      await pool?.end();
    },
  });
}

async function run(
  client: LentClient,
  statement: Sql,
  values: readonly unknown[],
): Promise<readonly ResultRow[]> {
  try {
    return (await client.query<Record<string, unknown>>(Sql.textOf(statement), [...values])).rows;
  } catch (error) {
    throw controlFault(error);
  }
}

/** Connection options for the control database. @throws StartProblem */
export function connectionOf(place: ControlPlace, applicationName: string, statementMs: number) {
  return {
    connectionString: controlUrl(place),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: statementMs,
    lock_timeout: statementMs,
    idle_in_transaction_session_timeout: 2 * statementMs,
    query_timeout: statementMs + 1_000,
    keepAlive: true,
    // INVARIANT: functions in other schemas cannot shadow those of Postgres.
    options: '-c search_path=pg_catalog',
  };
}

/** A failure of the control database, described for the operator; `cause` is the error from `pg` or the system. */
export class ControlFault extends Error {
  override readonly name = 'ControlFault';
  /** The SQLSTATE or the system's error code; null if there is neither. */
  readonly code: string | null;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.code = codeIn(cause);
  }

  /** True if a concurrent transaction wrote the same rows. */
  get isConflict(): boolean {
    return this.code === '23505' || this.code === '40001';
  }
}

/** Converts a statement or connection error to a ControlFault whose message contains no value and no password. */
export function controlFault(error: unknown): ControlFault {
  if (error instanceof ControlFault) return error;
  const code = codeIn(error);
  const words = (code === null ? undefined : WORDS.get(code)) ?? messageOf(error);
  return new ControlFault(`the control database: ${words.replace(/\s*\n\s*/g, ' ')}`, error);
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ...CONNECTION_FAULTS,
  ['3F000', 'there is no schema osl_control: `osl control migrate` makes it'],
  ['42P01', 'a table of osl_control is missing: `osl control migrate` makes it'],
  ['42501', 'the role may not do this: `osl control migrate` grants each role what it needs'],
  ['57014', 'no answer in time'],
  ['55P03', 'no answer in time: somebody holds a lock'],
]);

function codeIn(error: unknown): string | null {
  if (error instanceof AggregateError) return codeIn(error.errors[0]);
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}
