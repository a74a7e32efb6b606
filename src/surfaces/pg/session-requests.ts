import { randomUUID } from 'node:crypto';
import { charactersBefore, hintOn, QueryError, queryError } from 'osl-compiler';
import { type Identity, isExpired, REVOKED } from '../../../policy/index.js';
import { type Awaitable, fatal, type RowWriter, WireError } from '../../../wire/index.js';
import {
  type BreakGlassParts,
  breakGlass,
  currentRightsKey,
  currentSession,
  ForeignFault,
  type Origin,
  type RequestCall,
  type RequestParts,
  refusedCommand,
  renew,
  sessionCommand,
  type TokenlessSession,
} from '../../ask/index.js';

/** Purpose, task and reason for approval that the client has set with SET; null if not set. */
type ClientSettings = Readonly<Record<'purpose' | 'task' | 'approvalReason', string | null>>;

/**
 * Identity of a session: from a token, which can be renewed, or from a service account or certificate, whose identity
 * the policy can change.
 */
export class SessionCaller {
  readonly #service: BreakGlassParts;
  #identity: Identity;
  #tokenless: TokenlessSession | null;
  readonly #clientSettings: () => ClientSettings;
  #origin: Origin;

  /**
   * @param tokenless service account or certificate holder; null if a token was sent
   * @param address address of the client
   * @param clientSettings returns the current values of the session's settings
   */
  constructor(
    service: BreakGlassParts,
    identity: Identity,
    tokenless: TokenlessSession | null,
    address: string,
    clientSettings: () => ClientSettings,
  ) {
    this.#service = service;
    this.#clientSettings = clientSettings;
    this.#origin = Object.freeze({ address, ...clientSettings(), emergency: null });
    this.#identity = identity;
    this.#tokenless = tokenless;
  }

  get identity(): Identity {
    return this.#identity;
  }

  get user(): string {
    return this.#tokenless?.kind === 'account' ? this.#tokenless.account.login : this.#identity.subject;
  }

  get rights(): string {
    return currentRightsKey(this.#service, this.#identity, this.newCall());
  }

  newCall(): RequestCall {
    return {
      requestId: randomUUID(),
      surface: 'wire',
      credentials: { kind: 'session', identity: this.#identity },
      origin: this.origin,
    };
  }

  /**
   * Address, purpose, task, approval reason and break-glass state of the session's requests. A new object whenever one
   * of them changes.
   */
  get origin(): Origin {
    const current = this.#clientSettings();
    const { purpose, task, approvalReason } = this.#origin;
    if (purpose !== current.purpose || task !== current.task || approvalReason !== current.approvalReason)
      this.#origin = Object.freeze({ ...this.#origin, ...current });
    return this.#origin;
  }

  async breakGlass(call: RequestCall, reason: string): Promise<void> {
    const emergency = await breakGlass(this.#service, call, this.identity, reason);
    this.#origin = Object.freeze({ ...this.origin, emergency });
  }

  endBreakGlass(): void {
    this.#origin = Object.freeze({ ...this.origin, emergency: null });
  }

  /** Replaces the token with a newer one of the same caller. @throws QueryError */
  async renew(call: RequestCall, token: string): Promise<void> {
    this.#identity = await renew(this.#service, call, this.#identity, token);
  }

  /** Returns the error that ends the session if its identity has expired, been revoked or changed; otherwise null. */
  expiry(): WireError | null {
    if (this.#service.revoked.has(this.#identity)) return tokenRevoked();
    const changeError = this.#tokenless === null ? null : this.#refreshIdentity(this.#tokenless);
    if (changeError !== null || !isExpired(this.#identity, Date.now())) return changeError;
    return tokenExpired();
  }

  /** Refreshes the identity from the current policy; returns an error if the policy no longer contains it. */
  #refreshIdentity(session: TokenlessSession): WireError | null {
    const current = currentSession(this.#service, session);
    if (current === null) return fatal('28000', IDENTITY_CHANGED[session.kind]);
    if (current !== session) this.#identity = current.identity;
    this.#tokenless = current;
    return null;
  }
}

export function tokenRevoked(): WireError {
  const { sqlstate, code } = queryError('invalidToken', { reason: REVOKED });
  return fatal(sqlstate, 'the token of this session was revoked', { detail: code });
}

const IDENTITY_CHANGED: Readonly<Record<TokenlessSession['kind'], string>> = {
  account: 'the service account of this session has changed',
  certificate: "the certificate of this session is nobody's here any more",
};

export function tokenExpired(): WireError {
  return fatal('28000', 'the token of this session has expired', { hint: 'connect again with a new token' });
}

/**
 * Audit records of a session that `src/ask` does not write itself: session commands, statements that were prepared but
 * not executed, and protocol errors.
 */
export class SessionRecords {
  readonly pending = new PreparedRecordSlot();
  readonly #service: RequestParts;
  readonly #newCall: () => RequestCall;
  readonly #recorded = new WeakSet<WireError>();
  /** Errors created by `refusal` whose denial has not been recorded yet. */
  readonly #refusals = new WeakMap<WireError, { readonly call: RequestCall; readonly reason: QueryError }>();

  constructor(service: RequestParts, newCall: () => RequestCall) {
    this.#service = service;
    this.#newCall = newCall;
  }

  async translate<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (failure) {
      throw this.toWireError(failure, requestId, text);
    }
  }

  /**
   * Converts an error to the one sent to the client, and marks it as recorded, since its audit record has already been
   * written.
   */
  toWireError(failure: unknown, requestId: string, text: string): unknown {
    const converted =
      failure instanceof UnencodableRow
        ? failure.clientError
        : failure instanceof QueryError
          ? wireError(failure, requestId, text)
          : failure;
    if (converted instanceof WireError) this.#recorded.add(converted);
    return converted;
  }

  /** Creates an error for the client; `recordFailure` records it after it has been sent. */
  refusal(reason: QueryError): WireError {
    const call = this.#newCall();
    const refusal = wireError(reason, call.requestId, '');
    this.#refusals.set(refusal, { call, reason });
    return refusal;
  }

  /** Registers a prepared statement; `record` is called if it never runs. */
  holdPrepared({ requestId }: Pick<RequestCall, 'requestId'>, record: () => Promise<void>): PreparedRecord {
    const prepared = { record: () => this.translate(requestId, '', record) };
    this.pending.hold(prepared);
    return prepared;
  }

  /** Registers a command that was prepared. The returned function marks it as run. */
  holdCommand(): () => void {
    const call = this.#newCall();
    const prepared = this.holdPrepared(call, () => sessionCommand(this.#service, call, 'prepare'));
    return () => void this.pending.release(prepared);
  }

  async recordCommand(): Promise<void> {
    const call = this.#newCall();
    await this.translate(call.requestId, '', () => sessionCommand(this.#service, call));
  }

  /** Records a failure unless that has already been done. */
  recordFailure(failure: WireError): void {
    if (this.#recorded.has(failure)) return;
    const { call, reason } = this.#refusals.get(failure) ?? {
      call: this.#newCall(),
      reason: failure.sqlstate,
    };
    refusedCommand(this.#service, call, reason).catch((cause: unknown) => {
      this.#service.log.warn('a refusal was not recorded', {
        request_id: call.requestId,
        cause: String(cause),
      });
    });
  }
}

/** Detects changes of a session's rights while the rows of its query are suspended. */
export class SuspendedRowRights {
  readonly #caller: SessionCaller;
  readonly #records: SessionRecords;

  constructor(caller: SessionCaller, records: SessionRecords) {
    this.#caller = caller;
    this.#records = records;
  }

  get current(): string {
    return this.#caller.rights;
  }

  /**
   * Checks that the session still has the rights with which its suspended query began.
   *
   * @throws WireError 55000 if the rights have changed
   */
  requireSame(initialRights: string): void {
    if (initialRights !== this.current) throw this.#records.refusal(queryError('rightsChanged', {}));
  }
}

interface PreparedRecord {
  /** Records that the statement was prepared, and counts the request if preparing it has not done so. */
  record(): Promise<void>;
}

/**
 * Holds the last prepared statement until it runs. Drivers usually prepare a statement and run it right away, which
 * yields a single audit record, for the run. A statement that has not run by the end of its series of messages, or by
 * the time the next one is prepared, gets a record of its preparation.
 */
class PreparedRecordSlot {
  #prepared: PreparedRecord | null = null;

  get isHeld(): boolean {
    return this.#prepared !== null;
  }

  hold(prepared: PreparedRecord): void {
    this.#prepared = prepared;
  }

  release(prepared: PreparedRecord): boolean {
    if (this.#prepared !== prepared) return false;
    this.#prepared = null;
    return true;
  }

  record(): Promise<void> | undefined {
    const prepared = this.#prepared;
    this.#prepared = null;
    return prepared?.record();
  }
}

/** SQLSTATE untranslatable_character: the client's encoding lacks a character. */
const UNTRANSLATABLE = '22P05';

/**
 * Thrown if a row cannot be encoded for the client. The client receives `clientError`, and the query is recorded as failed.
 */
class UnencodableRow extends ForeignFault {
  override readonly name = 'UnencodableRow';
  readonly clientError: WireError;

  constructor(clientError: WireError) {
    super(clientError.message);
    this.clientError = clientError;
  }

  get code(): string {
    return this.clientError.sqlstate;
  }
}

/** SQLSTATE connection_failure: the client has gone. */
const CLIENT_GONE = '08006';

/**
 * Returns a sink whose write errors are errors of the request: if the client has disconnected, the query counts as
 * cancelled.
 */
export function rowSink(rows: RowWriter): { write(messages: Uint8Array): Awaitable<void> } {
  return {
    write: (messages) => {
      try {
        const pending = rows.write(messages);
        return pending instanceof Promise ? pending.catch(throwAsRequestError) : pending;
      } catch (cause) {
        return throwAsRequestError(cause);
      }
    },
  };
}

function throwAsRequestError(cause: unknown): never {
  if (!(cause instanceof WireError)) throw cause;
  if (cause.sqlstate === UNTRANSLATABLE) throw new UnencodableRow(cause);
  throw cause.sqlstate === CLIENT_GONE ? queryError('cancelled', {}) : cause;
}

/**
 * Name of the Postgres routine that raises this error. pgjdbc, Npgsql and asyncpg recognize it and prepare the
 * statement again.
 */
const PLAN_CHANGED = 'RevalidateCachedQuery';

export function planChanged(): WireError {
  const { message, hint, sqlstate } = queryError('planChanged', {});
  return new WireError('ERROR', sqlstate, message, { hint: hint ?? undefined, routine: PLAN_CHANGED });
}

/** Converts a login failure to an error that ends the connection. */
export function loginError(failure: unknown, requestId: string): unknown {
  if (failure instanceof WireError) return failure.withSeverity('FATAL');
  return failure instanceof QueryError ? wireError(failure, requestId, '', 'FATAL') : failure;
}

/**
 * Converts a query error to a protocol error. DETAIL contains the error code and the request id, but never details from
 * the upstream database.
 */
export function wireError(
  error: QueryError,
  requestId: string,
  text: string,
  severity: 'ERROR' | 'FATAL' = 'ERROR',
): WireError {
  const retryText = error.retryAfterSeconds === null ? '' : `, try again in ${error.retryAfterSeconds} s`;
  const offset = error.position?.offset;
  return new WireError(severity, error.sqlstate, error.message, {
    detail: `${error.code}, request ${requestId}${retryText}`,
    hint: hintOn('wire', error.hint) ?? undefined,
    routine: error.entry === 'planChanged' ? PLAN_CHANGED : undefined,
    position: offset === undefined ? undefined : charactersBefore(text, offset) + 1,
  });
}
