import { InternalError } from 'osl-compiler';
import { textParser } from '../base/postgres/index.js';
import { Sql, sql, sqlJoin, sqlName, sqlTable } from '../base/sql.js';
import type { Pool } from './pool.js';
import { DataRowReader, describedColumns } from './protocol/backend-messages.js';
import type { FrontendEncoder } from './protocol/encoder.js';
import type { BoundValue } from './statement.js';
import { localError, parseErrorResponse } from './upstream-error.js';
import { type UpstreamError, UpstreamFailure } from './upstream-report.js';
import type { SessionJob, UpstreamSession } from './upstream-session.js';

/** Runs `work` with a session that may run the gateway's own statements, and then always returns it to the pool. */
export type WithSession = <T>(work: (session: UpstreamSession) => Promise<T>) => Promise<T>;

/**
 * Lends sessions of `pool`, each after `prepare`. A session that could not be prepared, or was left in a transaction,
 * is discarded; one that does not answer for `silenceMs` is closed.
 *
 * @internal
 */
export function withSessionFrom(
  pool: Pool,
  prepare: (session: UpstreamSession) => Promise<void> | null = () => null,
  silenceMs: number | null = null,
): WithSession {
  return async (work) => {
    const session = pool.take(null) ?? (await pool.acquire(null));
    const unwatch = silenceMs === null ? () => undefined : closeIfSilent(silenceMs, session);
    let isPrepared = false;
    try {
      await prepare(session);
      isPrepared = true;
      return await work(session);
    } finally {
      unwatch();
      if (!isPrepared || !session.idle) session.tainted = true;
      pool.release(session);
    }
  };
}

/**
 * Closes a session that has not answered for `silenceMs`, which rejects pending work. Returns a function that stops
 * watching.
 */
export function closeIfSilent(silenceMs: number, session: UpstreamSession): () => void {
  const check = (): void => {
    if (session.silentMs >= silenceMs) session.destroy();
  };
  const timer = setInterval(check, silenceMs / 4).unref();
  return () => clearInterval(timer);
}

/** Runs the gateway's own statements, on a `SystemEngine` or in one of its transactions. */
export interface SystemQueries {
  /**
   * Runs a statement with `params` for `$n`. Values are decoded as `pg` does: int8 and numeric as strings, timestamps
   * as Date, json parsed, bytea as Buffer. Throws UpstreamFailure.
   */
  query(statement: Sql, params?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** Runs any number of statements without parameters. */
  script(ddl: Sql): Promise<void>;
  /** Loads rows of values in text format with COPY, either all or none. Returns the number of rows. */
  copyIn(target: CopyIntoTable, rows: CopySource): Promise<number>;
}

interface CopyIntoTable {
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly string[];
}

/**
 * A database accessed with the gateway's own credentials. Runs static statements, generated DDL and COPY, but never a
 * caller's text.
 */
export class SystemEngine implements SystemQueries {
  readonly #withSession: WithSession;
  readonly #reader: () => string;

  constructor(withSession: WithSession, reader: () => string) {
    this.#withSession = withSession;
    this.#reader = reader;
    Object.freeze(this);
  }

  /** The role that governed statements run as. */
  get reader(): string {
    return this.#reader();
  }

  query(statement: Sql, params?: readonly unknown[]): Promise<Record<string, unknown>[]> {
    return this.#withSession((session) => query(session, statement, params));
  }

  script(ddl: Sql): Promise<void> {
    return this.#withSession((session) => script(session, ddl));
  }

  copyIn(target: CopyIntoTable, rows: CopySource): Promise<number> {
    return this.transaction((tx) => tx.copyIn(target, rows));
  }

  /** Runs `work` in a transaction, which is rolled back if it throws. */
  transaction<T>(work: (tx: SystemQueries) => Promise<T>): Promise<T> {
    return this.#withSession((session) => inTransaction(session, () => work(queriesOn(session))));
  }

  /** Grants the governed role SELECT on every existing table of `schema`. */
  grantRead(schema: string): Promise<void> {
    const [s, r] = [sqlName(schema), sqlName(this.reader)];
    return this.script(
      sql`GRANT USAGE ON SCHEMA ${s} TO ${r}; GRANT SELECT ON ALL TABLES IN SCHEMA ${s} TO ${r}`,
    );
  }
}

/** Runs the gateway's own statements on `session`. @internal */
export function queriesOn(session: UpstreamSession): SystemQueries {
  return {
    query: (statement, params) => query(session, statement, params),
    script: (ddl) => script(session, ddl),
    copyIn: (target, rows) => copyIn(session, target, rows),
  };
}

async function inTransaction<T>(session: UpstreamSession, work: () => Promise<T>): Promise<T> {
  await script(session, sql`BEGIN`);
  try {
    const result = await work();
    await script(session, sql`COMMIT`);
    return result;
  } catch (error) {
    await script(session, sql`ROLLBACK`).catch(() => session.destroy());
    throw error;
  }
}

async function query(
  session: UpstreamSession,
  statement: Sql,
  params: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  let columns: readonly ResultColumn[] = [];
  await submit(session, {
    send(out) {
      out.parse('', Sql.textOf(statement), []);
      out.describeStatement('');
      out.bind('', params.map(textValue), []);
      out.execute(0);
      out.sync();
    },
    columns: (body) => {
      columns = describedColumns(body).map(({ name, typeOid }) => ({
        name,
        parse: textParser(typeOid),
      }));
    },
    rows: (bytes) => decodeRows(bytes, columns, rows),
  });
  return rows;
}

function script(session: UpstreamSession, ddl: Sql): Promise<void> {
  return submit(session, { send: (out) => out.query(Sql.textOf(ddl)) });
}

async function copyIn(session: UpstreamSession, target: CopyIntoTable, rows: CopySource): Promise<number> {
  const columns = sqlJoin(target.columns.map(sqlName));
  const copy = sql`COPY ${sqlTable(target)} (${columns}) FROM STDIN`;
  let count = 0;
  for await (const batch of copyBatches(rows, target.columns.length)) {
    // The server ignores CopyData after a failed COPY, so the whole batch is sent without waiting.
    await submit(session, {
      send(out) {
        out.query(Sql.textOf(copy));
        out.copyData(batch.bytes);
        out.copyDone();
      },
    });
    count += batch.rows;
  }
  return count;
}

interface SystemJob {
  send(out: FrontendEncoder): void;
  columns?(body: Buffer): void;
  rows?(bytes: Uint8Array): void;
}

/** Runs `job`. Rejects with UpstreamFailure or a decoding error. */
function submit(session: UpstreamSession, job: SystemJob): Promise<void> {
  return new Promise((resolve, reject) => {
    let failure: UpstreamError | null = null;
    const sessionJob: SessionJob = {
      subject: null,
      send: (out) => job.send(out),
      // Rows of the gateway's own statements are not limited in size, since indexing reads whole documents.
      largeRow: (bytes) => bytes,
      // Not expected, since the gateway's own statements are always admitted; without an error a row would be missing.
      onMemoryShortage() {
        failure ??= localError('53200', 'no memory for a row of a statement of the gateway');
      },
      rows: (bytes) => job.rows?.(bytes),
      message(type, message) {
        if (type === 0x54) job.columns?.(message.body());
        else if (type === 0x45) failure ??= parseErrorResponse(message.body());
      },
      ready: () => (failure === null ? resolve() : reject(new UpstreamFailure(failure))),
      lost: () => reject(new UpstreamFailure(failure ?? LOST)),
    };
    session.submit(sessionJob);
  });
}

const LOST: UpstreamError = localError('08006', 'the session was lost');

interface ResultColumn {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

function decodeRows(
  bytes: Uint8Array,
  columns: readonly ResultColumn[],
  decoded: Record<string, unknown>[],
): void {
  const rows = new DataRowReader(bytes);
  while (rows.next()) {
    const row: Record<string, unknown> = Object.create(null);
    for (const { name, parse } of columns) {
      const text = rows.text();
      row[name] = text === null ? null : parse(text);
    }
    decoded.push(row);
  }
}

type CopySource = Iterable<readonly (string | null)[]> | AsyncIterable<readonly (string | null)[]>;

/** Target size of a batch of COPY text in bytes. */
const BATCH_BYTES = 2_097_152;

/** Converts a JavaScript value to a parameter in text format: arrays to Postgres arrays, plain objects to JSON. */
function textValue(value: unknown): BoundValue {
  const text = textOf(value);
  return { format: 0, bytes: text === null ? null : Buffer.from(text, 'utf8') };
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return `{${value.map(arrayElement).join(',')}}`;
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

function arrayElement(value: unknown): string {
  if (Array.isArray(value)) return textOf(value) ?? 'NULL';
  const text = textOf(value);
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

interface CopyBatch {
  readonly bytes: Uint8Array;
  readonly rows: number;
}

/** Encodes rows in COPY's text format, a few megabytes at a time. Throws InternalError if a row has the wrong width. */
async function* copyBatches(rows: CopySource, width: number): AsyncGenerator<CopyBatch> {
  let lines: string[] = [];
  let size = 0;
  for await (const row of rows) {
    if (row.length !== width) throw new InternalError(`a row of ${row.length} values for ${width} columns`);
    const line = row.map(copyValue).join('\t');
    lines.push(line);
    size += line.length + 1;
    if (size >= BATCH_BYTES) {
      yield batchOf(lines);
      lines = [];
      size = 0;
    }
  }
  if (lines.length > 0) yield batchOf(lines);
}

function batchOf(lines: readonly string[]): CopyBatch {
  return { bytes: Buffer.from(`${lines.join('\n')}\n`, 'utf8'), rows: lines.length };
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function copyValue(value: string | null): string {
  if (value === null) return '\\N';
  return /[\\\n\r\t]/.test(value) ? value.replace(/[\\\n\r\t]/g, (c) => ESCAPES.get(c) ?? c) : value;
}
