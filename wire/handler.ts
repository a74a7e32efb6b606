import type { X509Certificate } from 'node:crypto';
import type { WireError } from './errors.js';

/** The value now, or a promise of it. Work that is done at once need not pay for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Implementation behind the protocol. The wire asks it everything and decides nothing itself. */
export interface Handler {
  /**
   * Asked first, where the client showed a certificate that an authority vouches for: true where that is enough for
   * `user`, who is asked for no password then. Throws `WireError` to refuse, as `authenticate` does.
   */
  certified?(user: string, certificate: X509Certificate): boolean;
  /**
   * Asked before the password is: a verifier makes the exchange SCRAM-SHA-256, null (or no such method) asks for a
   * cleartext password. Throws `WireError` to refuse, as `authenticate` does.
   */
  scram?(user: string): ScramVerifier | null;
  /**
   * A client answered SCRAM with a wrong password. Told at once, whether or not the client waits to hear so; the client
   * hears it once this has resolved.
   */
  noteWrongPassword?(user: string, remoteAddress: string): Awaitable<void>;
  /**
   * Called once per connection, after the password arrived. Throws `WireError` to refuse (sent as FATAL).
   * If the client has gone by the time this resolves, the session is closed without having been used.
   */
  authenticate(login: WireLogin, control: SessionControl): Promise<SessionHandler>;
  /** Something failed before there was a session; for the audit log. What `authenticate` threw is not repeated. */
  recordRefusal(event: RefusedEvent): void;
}

/** Verifier of a SCRAM-SHA-256 password (RFC 5802). Salt and keys are base64. */
export interface ScramVerifier {
  readonly iterations: number;
  readonly salt: string;
  readonly storedKey: string;
  readonly serverKey: string;
}

export interface WireLogin {
  /** Startup parameter `user`, never empty. */
  readonly user: string;
  /** Startup parameter `database`; the user's name if the client sent none, as in Postgres. */
  readonly database: string;
  /** Null where the client proved by SCRAM that it knows it, or its certificate was enough. */
  readonly password: string | null;
  /** The certificate that was enough; null where a password was asked for. */
  readonly certificate: X509Certificate | null;
  /** The other startup parameters, under their canonical names (`DateStyle`, `application_name`, …). */
  readonly parameters: ReadonlyMap<string, string>;
  readonly remoteAddress: string;
  /** True over TLS. A false one is from loopback: anything else was refused before the password was asked. */
  readonly encrypted: boolean;
}

export interface RefusedEvent {
  readonly kind: 'startup' | 'tls' | 'password' | 'timeout' | 'capacity' | 'cancel' | 'abandoned';
  /** The SQLSTATE that the client was sent, or null if it was told nothing. */
  readonly sqlstate: string | null;
  /** One lower-case sentence; holds no password and no key. */
  readonly reason: string;
  /** Claimed and unproved; null before the startup packet was read. */
  readonly user: string | null;
  readonly remoteAddress: string;
}

/** Operations of a session's handler on the protocol side. */
export interface SessionControl {
  /** As in BackendKeyData; 0 before that is sent. */
  readonly processId: number;
  /** DEALLOCATE: forgets a prepared statement of the extended protocol. False if there is none of that name. */
  deallocate(name: string): boolean;
  /** The prepared statement of this name, whether Parse or PREPARE made it; undefined where there is none. */
  statement(name: string): WireStatement | undefined;
  /** All that have names. */
  statements(): readonly PreparedStatement[];
  /** PREPARE: keeps a statement as Parse does, with the text that made it. Throws `WireError` 42P05, 53400. */
  keep(name: string, statement: WireStatement, text: string): void;
  /** DEALLOCATE ALL, DISCARD ALL. */
  deallocateAll(): void;
  /** Closes all portals: COMMIT and ROLLBACK end them even if the next transaction begins at once. */
  closePortals(): void;
  /** The portal of this name that Bind opened: FETCH, MOVE and CLOSE name it as they name a cursor. */
  portal(name: string): NamedPortal | undefined;
  /** Cancels what the session runs, as a CancelRequest does. */
  cancel(): void;
  /** Ends the session with a FATAL error: now if it is idle, else after the statement that runs. */
  end(error: WireError): void;
}

/** Time that a session may wait for its client, in ms, and the FATAL error that ends it then. */
export interface IdleLimit {
  readonly ms: number;
  readonly reason: WireError;
}

/** `I` idle, `T` in a transaction block, `E` in a failed transaction block. */
export type TransactionStatus = 'I' | 'T' | 'E';

/** State of a session between two series of messages. */
export interface SeriesEnd {
  /** Transaction status in ReadyForQuery. */
  readonly status: TransactionStatus;
  /** Changes reported by ParameterStatus before it. */
  readonly changes: readonly (readonly [name: string, value: string])[];
  /** Time that it may wait for its client now; null for the server's limit. */
  readonly idleLimit: IdleLimit | null;
}

/** One authenticated session. Calls never overlap, except `cancel`, `expiry` and `close`. */
export interface SessionHandler {
  /** ParameterStatus pairs to send after AuthenticationOk. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Asked when the session begins, and at the end of each series of messages. */
  endSeries(): Awaitable<SeriesEnd>;
  /** Splits the text of a simple query. None: EmptyQueryResponse. Throws `WireError`. */
  split(text: string): Awaitable<readonly SimpleStatement[]>;
  /**
   * One statement; null if the text holds none. `parameterTypes` are the OIDs that the client declared, 0 where
   * it left the choice to us. Throws `WireError`, also 42601 for a text with several statements.
   */
  prepare(text: string, parameterTypes: readonly number[]): Awaitable<WireStatement | null>;
  /** The SQL cursor of this name: clients describe, run and close one as a portal. */
  cursor?(name: string): NamedPortal | undefined;
  /**
   * `error` was reported to the client: a transaction block is now failed. The protocol's own errors come here too, and
   * what ends the session with FATAL, just before `close`.
   */
  noteFailure(error: WireError): void;
  /** A CancelRequest with the right key, or the client has gone, while a statement runs. */
  cancel(): void;
  /** Asked before every statement; non-null ends the session with that error as FATAL. */
  expiry(): WireError | null;
  /** Called exactly once, after every portal is closed. */
  close(): Awaitable<void>;
  /** Asked once, when the session begins: what answers series of messages at once. Absent: nothing does. */
  fastLane?(answer: FastAnswer): FastLane;
}

/**
 * Answers whole series of messages that need no look at anything but themselves. It takes one only between two series,
 * where nothing else is under way; what it does not take goes the way of all messages, so a refusal costs nothing.
 */
export interface FastLane {
  /** A Query whose text is bytes [start, end). The bytes are good for the call. */
  query(bytes: Buffer, start: number, end: number): boolean;
  /** Bind, Execute to the end, and Sync of a prepared statement. */
  execute(statement: WireStatement, bind: Bind): boolean;
  /**
   * Parse of the text that is bytes [start, end) with these OIDs, Bind, Execute to the end, and Sync. `bindTo` gives the
   * values to a statement so described, and throws `WireError` where they do not fit it.
   */
  parse(
    bytes: Buffer,
    start: number,
    end: number,
    parameterTypes: readonly number[],
    bindTo: (described: Pick<WireStatement, 'parameterTypes' | 'columns'>) => Bind,
  ): boolean;
  /** As `SessionHandler.cancel`, of the series that it took. */
  cancel(): void;
}

/** Takes the answer to a series: once, and never before the call that took the series has returned. */
export interface FastAnswer {
  /** `rows`: whole DataRow messages; `tag`: of CommandComplete. */
  answered(
    columns: readonly ColumnDescription[],
    rows: Uint8Array,
    tag: string,
    notices: readonly WireNotice[],
  ): void;
  streaming(columns: readonly ColumnDescription[]): FastStream;
  failed(columns: readonly ColumnDescription[], cause: unknown): void;
}

/** An answer whose rows come one after the other. Ended once, by `finished` or by `failed`. */
export interface FastStream extends RowWriter {
  finished(tag: string, notices: readonly WireNotice[]): void;
  failed(cause: unknown): void;
}

export interface SimpleStatement {
  readonly text: string;
  /** Offset of `text` in the whole query, in UTF-16 units; error positions are moved by it. */
  readonly start: number;
}

export interface WireStatement {
  /** OIDs. */
  readonly parameterTypes: readonly number[];
  /** Null for a statement that returns no rows. */
  readonly columns: readonly ColumnDescription[] | null;
  /** Set for COPY … TO STDOUT; `columns` is null then and the portal writes CopyData messages. */
  readonly copy?: CopyFormat | null;
  /** Throws `WireError`. */
  open(bind: Bind): Awaitable<Portal>;
}

/** Source of a prepared statement. */
export interface StatementSource {
  readonly text: string;
  /** ms since the epoch. */
  readonly preparedAt: number;
  /** PREPARE made it, not Parse. */
  readonly fromSql: boolean;
}

/** A prepared statement as `pg_prepared_statements` tells of it. */
export interface PreparedStatement extends StatementSource {
  readonly name: string;
  readonly statement: WireStatement;
}

/** The table's OID and attribute number are always sent as 0. */
export interface ColumnDescription {
  readonly name: string;
  readonly typeOid: number;
  /** Bytes, or −1 for a type of variable length. */
  readonly typeLength: number;
  /** −1 where there is none. */
  readonly typeModifier: number;
}

export interface CopyFormat {
  readonly columns: number;
  readonly format: FormatCode;
}

/** 0 text, 1 binary. */
export type FormatCode = 0 | 1;

export interface Bind {
  /** One per parameter, already expanded. */
  readonly parameterFormats: readonly FormatCode[];
  /**
   * One per parameter; null is NULL. Text values are valid UTF-8 without NUL. They are views of the receive
   * buffer, and stay valid, but keep it in memory: copy what has to live longer than the call.
   */
  readonly parameters: readonly (Uint8Array | null)[];
  /** One per result column, already expanded. */
  readonly resultFormats: readonly FormatCode[];
}

export interface Portal {
  /**
   * Writes DataRow messages (whole ones, header included) to `rows`, at most `maxRows` of them; 0 is all.
   * Not called again once it returned `suspended: false` or threw.
   */
  fetch(maxRows: number, rows: RowWriter): Awaitable<FetchResult>;
  /** Called exactly once. */
  close(): Awaitable<void>;
}

/** A portal, or a cursor of SQL, as the other side names it: both have their names from one set. */
export interface NamedPortal {
  /** Null for a statement without rows. */
  readonly columns: readonly ColumnDescription[] | null;
  /** Formats of its values, one per column; none: text. */
  readonly formats: readonly FormatCode[];
  /** Writes rows as a portal does, but after the last row it gives none again. Throws `WireError` 55000 while it runs already. */
  fetch(maxRows: number, rows: RowWriter): Promise<FetchResult>;
  close(): Awaitable<void>;
}

export interface FetchResult {
  /** True if `maxRows` was reached and more rows may remain. */
  readonly suspended: boolean;
  /** The tag of CommandComplete, for example `SELECT 5`; unused while suspended. */
  readonly tag: string;
  readonly notices?: readonly WireNotice[];
  /** Sent as ParameterStatus before CommandComplete. */
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
   * Any number of whole messages; they reach the client unmodified. The bytes belong to the wire from here on.
   * A promise means that the client reads too slowly: await it before writing more. Throws `WireError` 08006
   * once the client has gone.
   */
  write(messages: Uint8Array): Awaitable<void>;
  /** Copies of a large row that it makes until the row has left; absent: none. */
  readonly copies?: number;
}
