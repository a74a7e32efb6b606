import type { X509Certificate } from 'node:crypto';
import type { WireError } from './errors.js';

/** A value or a promise; avoids creating promises for synchronous results. */
export type Awaitable<T> = T | Promise<T>;

/** Implementation behind the protocol: authenticates clients and answers their statements. */
export interface Handler {
  /**
   * Called first if the client presented a certificate signed by a trusted authority; returns true if it authenticates
   * `user` without a password. Throws `WireError` to refuse.
   */
  authenticateByCertificate?(user: string, certificate: X509Certificate): boolean;
  /**
   * Called before the password is requested. A verifier selects SCRAM-SHA-256; null, or a handler without this method,
   * selects a cleartext password. Throws `WireError` to refuse.
   */
  scramVerifier?(user: string): ScramVerifier | null;
  /** Called for a wrong SCRAM password before the error is sent, and even if the client has disconnected. */
  noteWrongPassword?(user: string, remoteAddress: string): Awaitable<void>;
  /**
   * Called once per connection, after the password has arrived. Throws `WireError` to refuse (sent as FATAL). If the
   * client has disconnected by the time this resolves, the session is closed unused.
   */
  authenticate(login: WireLogin, control: SessionControl): Promise<SessionHandler>;
  /** Called when a connection fails before the session begins, for the audit log, unless `authenticate` threw. */
  recordRefusal(event: RefusedEvent): void;
}

/** The verifier of a SCRAM-SHA-256 password (RFC 5802). Salt and keys are base64. */
export interface ScramVerifier {
  readonly iterations: number;
  readonly salt: string;
  readonly storedKey: string;
  readonly serverKey: string;
}

export interface WireLogin {
  readonly user: string;
  /** The startup parameter `database`; default: the user's name, as in Postgres. */
  readonly database: string;
  /** The password; null after SCRAM or certificate authentication. */
  readonly password: string | null;
  /** The certificate that authenticated the client; null after password authentication. */
  readonly certificate: X509Certificate | null;
  /** Other startup parameters by canonical name (`DateStyle`, `application_name`, …). */
  readonly parameters: ReadonlyMap<string, string>;
  readonly remoteAddress: string;
  /** True if the connection uses TLS. False only for loopback connections. */
  readonly encrypted: boolean;
}

export interface RefusedEvent {
  readonly kind: 'startup' | 'tls' | 'password' | 'timeout' | 'capacity' | 'cancel' | 'abandoned';
  /** The SQLSTATE sent to the client; null if no error was sent. */
  readonly sqlstate: string | null;
  /** The reason, as one lower-case sentence without password or key. */
  readonly reason: string;
  /** The unverified user name; null before the startup packet. */
  readonly user: string | null;
  readonly remoteAddress: string;
}

/** Operations that the protocol side offers to a session's handler. */
export interface SessionControl {
  /** The process id in BackendKeyData; 0 before it is sent. */
  readonly processId: number;
  /** Implements DEALLOCATE. Returns false if there is no such statement. */
  deallocate(name: string): boolean;
  /** Returns the statement prepared by Parse or PREPARE; undefined if there is none. */
  statement(name: string): WireStatement | undefined;
  statements(): readonly PreparedStatement[];
  /** Implements PREPARE: stores a statement and its text as Parse does. Throws `WireError` 42P05, 53400. */
  storeStatement(name: string, statement: WireStatement, text: string): void;
  /** Implements DEALLOCATE ALL and DISCARD ALL. */
  deallocateAll(): void;
  /** Closes all portals, as COMMIT and ROLLBACK do even if another transaction begins immediately. */
  closePortals(): void;
  /** Returns a portal opened by Bind; undefined if there is none. FETCH, MOVE and CLOSE can name it like a cursor. */
  portal(name: string): NamedPortal | undefined;
  /** Cancels the running statement, as a CancelRequest does. */
  cancel(): void;
  /**
   * Sends a NotificationResponse: immediately if the session is idle and not in a transaction block, otherwise before
   * the next ReadyForQuery outside one. Duplicates of a pending notification are dropped.
   */
  notify(channel: string, payload: string): void;
  /** Ends the session with a FATAL error, after the running statement if there is one. */
  end(error: WireError): void;
}

/** Maximum idle time in ms, and the FATAL error that ends the session after it. */
export interface IdleLimit {
  readonly ms: number;
  readonly reason: WireError;
}

/** `I` idle, `T` in a transaction block, `E` in a failed transaction block. */
export type TransactionStatus = 'I' | 'T' | 'E';

/** The state of a session after a series of messages. */
export interface SeriesEnd {
  /** The transaction status in ReadyForQuery. */
  readonly status: TransactionStatus;
  /** Parameter changes to report before ReadyForQuery. */
  readonly changes: readonly (readonly [name: string, value: string])[];
  /** Idle limit from now on; null: only the server's limit applies. */
  readonly idleLimit: IdleLimit | null;
}

/** One authenticated session. Calls never overlap, except for `cancel`, `expiry` and `close`. */
export interface SessionHandler {
  /** ParameterStatus pairs to send after AuthenticationOk. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Called when the session begins and after each series of messages. */
  endSeries(): Awaitable<SeriesEnd>;
  /** Splits the text of a simple query; an empty list leads to EmptyQueryResponse. Throws `WireError`. */
  split(text: string): Awaitable<readonly SimpleStatement[]>;
  /**
   * Prepares one statement; null if the text contains none. `parameterTypes` are declared OIDs, 0 if unspecified.
   * Throws `WireError`, including 42601 for several statements.
   */
  prepare(text: string, parameterTypes: readonly number[]): Awaitable<WireStatement | null>;
  /**
   * Returns the SQL cursor with this name; undefined if there is none. Clients can describe, run and close it like a
   * portal.
   */
  cursor?(name: string): NamedPortal | undefined;
  /**
   * Called after an error was reported to the client, including protocol errors and a FATAL error just before `close`;
   * from then on, a transaction block counts as failed.
   */
  noteFailure(error: WireError): void;
  /** Called for a valid CancelRequest, or when the client disconnects, while a statement runs. */
  cancel(): void;
  /** Called before every statement; a non-null result ends the session with that error as FATAL. */
  expiry(): WireError | null;
  /** Called exactly once, after every portal is closed. */
  close(): Awaitable<void>;
  fastLane?(answer: FastAnswer): FastLane;
}

/**
 * Answers complete series of messages without the regular path. Takes a series only when nothing else is in progress. A
 * method returns true if it takes the series; otherwise the series takes the regular path.
 */
export interface FastLane {
  /** Handles a Query. Its text is in bytes [start, end), which are valid during the call. */
  query(bytes: Buffer, start: number, end: number): boolean;
  /** Handles Bind, Execute without a row limit, and Sync, for a prepared statement. */
  execute(statement: WireStatement, bind: Bind): boolean;
  /**
   * Handles a Parse, Bind, Execute and Sync sequence. The text is in bytes [start, end), and Execute has no row limit.
   * `bindTo` matches the values to the described statement and throws `WireError` if they do not fit.
   */
  parse(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    bindTo: (statement: Pick<WireStatement, 'parameterTypes' | 'columns'>) => Bind,
  ): boolean;
  cancel(): void;
}

/** Receives the answer to a series: exactly once, and after the call that accepted the series has returned. */
export interface FastAnswer {
  /** `rows`: complete DataRow messages; `tag`: the tag for CommandComplete. */
  answered(
    columns: readonly ColumnDescription[],
    rows: Uint8Array,
    tag: string,
    notices: readonly WireNotice[],
  ): void;
  streaming(columns: readonly ColumnDescription[]): FastStream;
  failed(columns: readonly ColumnDescription[], cause: unknown): void;
}

/** A streamed answer, ended by one call of `finished` or `failed`. */
export interface FastStream extends RowWriter {
  finished(tag: string, notices: readonly WireNotice[]): void;
  failed(cause: unknown): void;
}

export interface SimpleStatement {
  readonly text: string;
  /** The offset of `text` in the whole query, in UTF-16 code units; error positions are shifted by it. */
  readonly start: number;
}

export interface WireStatement {
  /** The parameter type OIDs. */
  readonly parameterTypes: readonly number[];
  /** The result columns; null if the statement returns no rows. */
  readonly columns: readonly ColumnDescription[] | null;
  /** Format of COPY … TO STDOUT; if set, `columns` is null and the portal writes CopyData messages. */
  readonly copy?: CopyFormat | null;
  /** Opens a portal with these parameters. Throws `WireError`. */
  open(bind: Bind): Awaitable<Portal>;
}

export interface StatementSource {
  readonly text: string;
  /** The time of preparation, ms since the epoch. */
  readonly preparedAt: number;
  /** True for PREPARE, false for Parse. */
  readonly fromSql: boolean;
}

/** A row of `pg_prepared_statements`. */
export interface PreparedStatement extends StatementSource {
  readonly name: string;
  readonly statement: WireStatement;
}

/** A result column. Table OID and attribute number are always sent as 0. */
export interface ColumnDescription {
  readonly name: string;
  readonly typeOid: number;
  /** Length in bytes; −1 for variable length. */
  readonly typeLength: number;
  /** The type modifier; −1 if there is none. */
  readonly typeModifier: number;
}

export interface CopyFormat {
  readonly columns: number;
  readonly format: FormatCode;
}

/** The format code: 0 for text, 1 for binary. */
export type FormatCode = 0 | 1;

export interface Bind {
  /** One format per parameter, even if the message has a single format for all parameters or no formats. */
  readonly parameterFormats: readonly FormatCode[];
  /**
   * One value per parameter; null stands for NULL. Text values are valid UTF-8 without NUL. Values are views of the
   * receive buffer: they stay valid but keep the buffer in memory, so values that are kept for long should be copied.
   */
  readonly parameters: readonly (Uint8Array | null)[];
  /** One format per result column, even if the message has a single format for all columns or no formats. */
  readonly resultFormats: readonly FormatCode[];
}

export interface Portal {
  /**
   * Writes at most `maxRows` complete DataRow messages; 0 means all. Not called again after it has returned
   * `suspended: false` or thrown.
   */
  fetch(maxRows: number, rows: RowWriter): Awaitable<FetchResult>;
  /** Releases the portal; called exactly once. */
  close(): Awaitable<void>;
}

/** A portal or SQL cursor; both share one namespace. */
export interface NamedPortal {
  /** The columns; null for a statement without rows. */
  readonly columns: readonly ColumnDescription[] | null;
  /** One format per column; an empty list means that all are text. */
  readonly formats: readonly FormatCode[];
  /**
   * Like `Portal.fetch`, but may be called again after the last row. Throws `WireError` 55000 if the portal is already
   * running.
   */
  fetch(maxRows: number, rows: RowWriter): Promise<FetchResult>;
  close(): Awaitable<void>;
}

export interface FetchResult {
  /** True if `maxRows` was reached and more rows may follow. */
  readonly suspended: boolean;
  /** The tag for CommandComplete, such as `SELECT 5`; unused while suspended. */
  readonly tag: string;
  readonly notices?: readonly WireNotice[];
  /** Parameter changes, sent as ParameterStatus before CommandComplete. */
  readonly parameterChanges?: readonly (readonly [name: string, value: string])[];
}

export interface WireNotice {
  readonly severity: 'NOTICE' | 'WARNING' | 'INFO' | 'LOG' | 'DEBUG';
  readonly sqlstate: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
}

export interface RowWriter {
  /**
   * Sends complete messages unmodified; takes ownership of the bytes. A promise means backpressure: await it before
   * writing more. Throws `WireError` 08006 once the client has disconnected.
   */
  write(messages: Uint8Array): Awaitable<void>;
  /** Number of copies made of a large row while it is sent; default: none. */
  readonly copies?: number;
}
