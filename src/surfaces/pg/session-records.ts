import { charactersBefore, hintOn, QueryError, queryError } from 'osl-compiler';
import { type Awaitable, type RowWriter, WireError } from '../../../wire/index.js';
import {
  ForeignFault,
  type RequestCall,
  type RequestParts,
  refusedCommand,
  sessionCommand,
} from '../../ask/index.js';
import type { SessionCaller } from './session-caller.js';

/** What of a session is counted and put on record, beyond what the spine records of its questions. */
export class SessionRecords {
  readonly unrun = new Unrun();
  readonly #service: RequestParts;
  readonly #newCall: () => RequestCall;
  /** Errors whose refusal the spine has recorded. */
  readonly #recorded = new WeakSet<WireError>();
  /** Refusals of the surface in words of the catalogue, which are not on record yet. */
  readonly #refusals = new WeakMap<WireError, { readonly call: RequestCall; readonly reason: QueryError }>();

  /** @param newCall gives a request of the session's caller, under an id of its own */
  constructor(service: RequestParts, newCall: () => RequestCall) {
    this.#service = service;
    this.#newCall = newCall;
  }

  /** Runs what the spine does, and says its errors as the protocol does; they are on record then. */
  async translate<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (failure) {
      throw this.say(failure, requestId, text);
    }
  }

  /** An error that the spine has recorded, as the protocol says it. */
  say(failure: unknown, requestId: string, text: string): unknown {
    const said =
      failure instanceof UnwritableRow
        ? failure.said
        : failure instanceof QueryError
          ? wireError(failure, requestId, text)
          : failure;
    if (said instanceof WireError) this.#recorded.add(said);
    return said;
  }

  /** An error that the surface refuses with; `recordFailure` puts it on record once its client was told. */
  refusal(reason: QueryError): WireError {
    const call = this.#newCall();
    const said = wireError(reason, call.requestId, '');
    this.#refusals.set(said, { call, reason });
    return said;
  }

  /** Until it runs, a statement that was prepared is one that `record` has still to put on record. */
  hold({ requestId }: Pick<RequestCall, 'requestId'>, record: () => Promise<void>): PreparedRecord {
    const prepared = { record: () => this.translate(requestId, '', record) };
    this.unrun.hold(prepared);
    return prepared;
  }

  /** Counts and records a statement that the gateway answers itself. @throws WireError */
  async admit(): Promise<void> {
    const call = this.#newCall();
    await this.translate(call.requestId, '', () => sessionCommand(this.#service, call));
  }

  /** What the spine did not refuse, the surface or the protocol did: it is recorded here. */
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

/** Rights of one session, under which rows that wait for their client were decided. */
export class WaitingRowRights {
  readonly #caller: SessionCaller;
  readonly #records: SessionRecords;

  constructor(caller: SessionCaller, records: SessionRecords) {
    this.#caller = caller;
    this.#records = records;
  }

  /** What the session may see now, as text. */
  get now(): string {
    return this.#caller.rights;
  }

  /** A later portion of rows is given under the rights of the first only. @throws WireError 55000 */
  requireSame(begun: string): void {
    if (begun !== this.now) throw this.#records.refusal(queryError('rightsChanged', {}));
  }
}

/** A statement that was prepared and has not run yet. */
interface PreparedRecord {
  /** Records that it was prepared, and counts it where preparing did not. */
  record(): Promise<void>;
}

/**
 * What was prepared last, while nothing is on record of it. Drivers prepare and run in one go, and that is one
 * question with one record: of its run. A statement that has not run by the end of its series of messages, or when the
 * next one is prepared, gets a record of its own.
 */
class Unrun {
  #last: PreparedRecord | null = null;

  get isHeld(): boolean {
    return this.#last !== null;
  }

  hold(prepared: PreparedRecord): void {
    this.#last = prepared;
  }

  /** Lets go of what runs now: its run is what is recorded. False where it is on record already. */
  release(prepared: PreparedRecord): boolean {
    if (this.#last !== prepared) return false;
    this.#last = null;
    return true;
  }

  /** Records what is held; undefined where there is nothing. */
  record(): Promise<void> | undefined {
    const last = this.#last;
    this.#last = null;
    return last?.record();
  }
}

/** SQLSTATE of a character that the client's encoding does not have. */
const UNTRANSLATABLE = '22P05';

/** A row cannot be said in the client's encoding: it hears so, and the question ends as one that failed. */
class UnwritableRow extends ForeignFault {
  override readonly name = 'UnwritableRow';
  readonly said: WireError;

  constructor(said: WireError) {
    super(said.message);
    this.said = said;
  }

  get code(): string {
    return this.said.sqlstate;
  }
}

/** Where the spine writes rows to. @throws UnwritableRow, and what `rows` throws beside that */
export function rowSink(rows: RowWriter): { write(messages: Uint8Array): Awaitable<void> } {
  return {
    write: (messages) => {
      const written = rows.write(messages);
      return written instanceof Promise ? written.catch(rethrown) : written;
    },
  };
}

function rethrown(cause: unknown): never {
  throw cause instanceof WireError && cause.sqlstate === UNTRANSLATABLE ? new UnwritableRow(cause) : cause;
}

/** By this name of Postgres' own, pgjdbc, Npgsql and asyncpg know that they may prepare the statement again. */
const PLAN_CHANGED = 'RevalidateCachedQuery';

/** What a client is told that runs a statement which is another than it was told of. */
export function planChanged(): WireError {
  const { message, hint, sqlstate } = queryError('planChanged', {});
  return new WireError('ERROR', sqlstate, message, { hint: hint ?? undefined, routine: PLAN_CHANGED });
}

/** The error as the protocol says it. DETAIL carries our code and the request id; nothing of the upstream's. */
export function wireError(
  error: QueryError,
  requestId: string,
  text: string,
  severity: 'ERROR' | 'FATAL' = 'ERROR',
): WireError {
  const wait = error.retryAfterSeconds === null ? '' : `, try again in ${error.retryAfterSeconds} s`;
  const offset = error.position?.offset;
  return new WireError(severity, error.sqlstate, error.message, {
    detail: `${error.code}, request ${requestId}${wait}`,
    hint: hintOn('wire', error.hint) ?? undefined,
    routine: error.entry === 'planChanged' ? PLAN_CHANGED : undefined,
    position: offset === undefined ? undefined : charactersBefore(text, offset) + 1,
  });
}
