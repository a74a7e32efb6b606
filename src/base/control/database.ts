import {
  CONNECT_ONE_MS,
  type LentClient,
  onFirstHost,
  openSessionOnFirst,
  type PostgresPool,
  type PostgresSession,
  postgresPool,
  type ResultRow,
  requireRole,
  upstreamOf,
} from '../postgres/index.js';
import { Sql, sql } from '../sql.js';
import { CONNECTION_FAULTS, messageOf } from '../thrown.js';
import { type ControlPlace, controlUrl } from './url.js';

export type { ResultRow };

export interface ControlQueries {
  /** Runs a statement and returns its rows. @throws ControlFault */
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
 * Returns a client that connects on first use. After a failed connection, a new pool is created with the URL valid at
 * that time, on the primary if the URL names several hosts. An attempt to connect ends after `CONNECT_MS`, or after
 * `CONNECT_ONE_MS` for each of several hosts.
 */
export function openControl(place: ControlPlace, options: ControlOptions = {}): ControlDatabase {
  const { connections = 2, statementMs = STATEMENT_MS } = options;
  let pool: PostgresPool | null = null;
  let opening: Promise<PostgresPool> | null = null;
  let closed = false;
  const poolNow = (): Promise<PostgresPool> => {
    if (closed) return Promise.reject(controlFault(new Error('it was closed')));
    if (pool !== null) return Promise.resolve(pool);
    opening ??= openPool(place, { connections, statementMs })
      .then((made) => {
        if (closed) made.end().catch(() => undefined);
        pool = made;
        return made;
      })
      .finally(() => {
        opening = null;
      });
    return opening;
  };
  const connect = async (): Promise<LentClient> => {
    const at = await poolNow();
    try {
      return await at.connect();
    } catch (error) {
      // The password in the file, or the primary, may have changed, so the next call creates a new pool. The check
      // ensures that this one is ended only once.
      if (pool === at) {
        pool = null;
        at.end().catch(() => undefined);
      }
      throw controlFault(error);
    }
  };
  const lent = async <T>(work: (client: LentClient) => Promise<T>): Promise<T> => {
    // The first attempt may have reached a server that is no longer the primary.
    const client = await connect().catch((error: unknown) => {
      if (closed || !(error instanceof ControlFault) || !hasSeveral(place)) throw error;
      return connect();
    });
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

function hasSeveral(place: ControlPlace): boolean {
  return upstreamOf(controlUrl(place)).urls.length > 1;
}

/**
 * Opens a pool. If the URL names several hosts, it is for their primary, and a connection has succeeded. @throws
 * StartProblem, ControlFault
 */
async function openPool(
  place: ControlPlace,
  { connections, statementMs }: Required<ControlOptions>,
): Promise<PostgresPool> {
  const url = controlUrl(place);
  const made = onFirstHost(url, async (host, role, several) => {
    const pool = postgresPool({
      ...connectionOptions('osl control', statementMs),
      ...(several && { connectionTimeoutMillis: CONNECT_ONE_MS }),
      ...(role !== null && {
        onConnect: (client) =>
          requireRole(role, async (text) => (await client.query<Record<string, unknown>>(text)).rows),
      }),
      connectionString: host,
      max: connections,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    });
    if (!several) return pool;
    try {
      (await pool.connect()).release();
      return pool;
    } catch (error) {
      pool.end().catch(() => undefined);
      throw error;
    }
  });
  return made.catch((error: unknown) => {
    throw controlFault(error);
  });
}

/** Connection options for the control database, except for its URL. */
function connectionOptions(applicationName: string, statementMs: number) {
  return {
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

/** Converts an error of a statement or connection to a ControlFault, for the operator's log. It never has a password. */
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

const CONTROL_CHANNEL = 'osl_control';

export interface SignalListener {
  /**
   * Called for each notification, and with an empty payload when listening starts or restarts, since notifications may
   * have been missed.
   */
  heard(about: string): void;
  /** Called once each time the connection is lost. */
  lost(fault: ControlFault): void;
}

/** A LISTEN connection that reconnects when it is lost. */
export interface SignalSubscription {
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** Interval in ms of the statement that detects dead connections. */
const PULSE_MS = 5_000;

/** Listens until it is closed. Notifications can get lost, so callers must also poll for changes. */
export function listenForChanges(place: ControlPlace, listener: SignalListener): SignalSubscription {
  let session: PostgresSession | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let pause = FIRST_PAUSE_MS;

  const later = (work: () => void, ms: number): void => {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(work, ms);
    timer.unref();
  };
  const lost = (error: unknown): void => {
    if (closed) return;
    listener.lost(controlFault(error));
    later(open, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  };
  /** Sends a statement every `PULSE_MS`. If a statement is not answered in time, the session ends. */
  const pulse = (of: PostgresSession): void => {
    later(() => void of.query('select 1').then(() => pulse(of), ignored), PULSE_MS);
  };
  const connected = async (): Promise<void> => {
    const made = await openSessionOnFirst(controlUrl(place), {
      ...connectionOptions('osl control signals', PULSE_MS),
      silenceMs: PULSE_MS,
    });
    session = made;
    made.onNotification((payload) => listener.heard(payload));
    try {
      await made.query(`listen ${CONTROL_CHANNEL}`);
    } catch (error) {
      made.cut();
      throw error;
    }
    if (closed) return made.end();
    pause = FIRST_PAUSE_MS;
    listener.heard('');
    pulse(made);
    void made.lost.then(lost);
  };
  const open = (): void => void connected().catch(lost);
  open();
  return Object.freeze({
    close: async () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await session?.end();
    },
  });
}

function ignored(): void {
  // The loss is reported by `lost`.
}
