import { InternalError } from 'osl-compiler';
import { type Lanes, SHARED_BYTES, SHARED_ROWS } from './lanes.js';
import type { OutOfService } from './out-of-service.js';
import { sameOids } from './protocol/backend-messages.js';
import type { FrontendEncoder } from './protocol/encoder.js';
import { type ChosenServer, type QueryServer, type QueryServers, standbySource } from './servers.js';
import type { StandbyReads, StandbySource } from './standby-reads.js';
import type { SentValue, UpstreamStatement } from './statement.js';
import { executionError, parseErrorResponse, StatementFault } from './upstream-error.js';
import type { ErrorSource, ReportUpstreamError, UpstreamError } from './upstream-report.js';
import type { MessageView, PreparedUpstream, SessionJob, UpstreamSession } from './upstream-session.js';

/** Receives the outcome of one run of a short statement, in exactly one call after `begin` has returned. */
export interface ShortAnswer {
  /** All rows as whole DataRow messages; the view stays valid. */
  answered(rows: Uint8Array, count: number): void;
  /** The statement was not short or could not be run on a shared session, and must be run in the usual way. */
  unanswered(): void;
  /** The run failed with `error`, which is one that `GovernedEngine.execute` throws. */
  failed(error: unknown): void;
}

/**
 * Runs the statement of a governed plan while it is known to be short. Runs of many callers are pipelined on shared
 * sessions, without a promise, timer or signal for each run. A shared session cannot be cancelled; it has a small
 * statement timeout, after which the outcome is `unanswered`.
 */
export interface ShortStatement {
  /**
   * Finds a session for a run that begins in the same turn of the event loop. Returns false if the statement is not
   * known to be short or the session has not prepared it.
   *
   * @param reads permits a standby to answer; null if only the primary may
   */
  isReady(reads: StandbyReads | null): boolean;
  /** True if `isReady` may return true: a shared session with one of the servers has prepared the statement. */
  isReadySomewhere(): boolean;
  /**
   * Sends a run after `isReady` has returned true. `values` holds the plan's slot values, in the order of `emit`.
   * Returns the standby that will answer; null for the primary.
   */
  begin(run: ShortRun, values: readonly SentValue[], resultFormats: readonly (0 | 1)[]): StandbySource | null;
}

export interface ShortHost {
  readonly servers: QueryServers;
  readonly outOfService: OutOfService;
  readonly errors: ErrorSource;
  readonly onUpstreamError: ReportUpstreamError;
}

export function shortStatement(host: ShortHost, statement: UpstreamStatement): ShortStatement {
  const { sql, columnOids } = statement;
  let chosen: ChosenServer = host.servers.ofPrimary();
  let standby: StandbyReads | null = null;
  let session: UpstreamSession | null = null;
  let prepared: PreparedUpstream | undefined;
  const isReadyOn = ({ lanes }: QueryServer): boolean => {
    session = host.outOfService.relations.size > 0 ? null : (lanes?.pick(statement) ?? null);
    prepared = session?.prepared.find(sql);
    return prepared?.columnOids != null && sameOids(prepared.columnOids, columnOids);
  };
  return {
    isReady(reads) {
      chosen = host.servers.choose(reads);
      standby = reads;
      return isReadyOn(chosen.server);
    },
    isReadySomewhere: () => host.servers.all().some(isReadyOn),
    begin(run, values, resultFormats) {
      const { server } = chosen;
      const { lanes } = server;
      if (session === null || prepared === undefined || lanes === null)
        throw new InternalError('no session was found for a run');
      run.submit({ host, server, standby, lanes, statement, session, prepared, values, resultFormats });
      return standbySource(chosen);
    },
  };
}

interface SharedExecution {
  readonly host: ShortHost;
  readonly server: QueryServer;
  readonly standby: StandbyReads | null;
  readonly lanes: Lanes;
  readonly statement: UpstreamStatement;
  readonly session: UpstreamSession;
  readonly prepared: PreparedUpstream;
  readonly values: readonly SentValue[];
  readonly resultFormats: readonly (0 | 1)[];
}

const NO_ROWS = Buffer.alloc(0);

/** Runs the short statements of one caller, one after another. */
export class ShortRun implements SessionJob {
  /** No subject is charged for memory, since no large row is kept. */
  readonly subject = null;
  #answer: ShortAnswer | null;
  #sending: SharedExecution | null = null;
  #rows: Uint8Array = NO_ROWS;
  #more: Uint8Array[] = [];
  #count = 0;
  #bytes = 0;
  #long = false;
  #error: UpstreamError | null = null;

  constructor(answer: ShortAnswer) {
    this.#answer = answer;
  }

  /** Abandons the run. The upstream still sends the answer, and this object cannot be reused until then. */
  abandon(): void {
    this.#answer = null;
  }

  submit(sending: SharedExecution): void {
    this.#sending = sending;
    this.#rows = NO_ROWS;
    this.#more = [];
    this.#count = 0;
    this.#bytes = 0;
    this.#long = false;
    this.#error = null;
    sending.session.submit(this, 'batched');
  }

  send(out: FrontendEncoder): void {
    const sending = this.#sending;
    if (sending === null) return;
    out.bind(sending.prepared.name, sending.values, sending.resultFormats);
    out.executeAndSync(SHARED_ROWS + 1);
  }

  largeRow(): 'pass' {
    this.#long = true;
    return 'pass';
  }

  starved(): void {
    this.#long = true;
  }

  rows(bytes: Uint8Array, count: number): undefined {
    this.#count += count;
    this.#bytes += bytes.length;
    if (this.#bytes > SHARED_BYTES) this.#long = true;
    else if (this.#rows === NO_ROWS) this.#rows = bytes;
    else this.#more.push(bytes);
  }

  message(type: number, message: MessageView): void {
    if (type === 0x45)
      this.#error = parseErrorResponse(message.body()); // ErrorResponse
    else if (type === 0x73)
      this.#long = true; // PortalSuspended
    else if (type === 0x53 && this.#sending !== null) this.#sending.session.tainted = true; // ParameterStatus
  }

  ready(status: number): void {
    const sending = this.#sending;
    this.#sending = null;
    if (sending === null) return;
    sending.standby?.ended(sending.server);
    if (status !== 0x49) sending.session.tainted = true;
    const answer = this.#answer;
    const error = this.#error;
    if (error === null && !this.#long) answer?.answered(this.#allRows(), this.#count);
    else if (error === null || RUN_AGAIN.has(error.sqlstate)) this.#giveUp(sending, error);
    else this.#fail(sending, error);
  }

  /** Handles an error. If the statement itself is at fault, the slow path runs it again to find the cause. */
  #fail(sending: SharedExecution, error: UpstreamError): void {
    const { host, statement } = sending;
    const told = executionError(error, host.errors, statement);
    if (told instanceof StatementFault) {
      this.#giveUp(sending, error);
      return;
    }
    host.onUpstreamError(error, statement.reads?.tables ?? []);
    this.#answer?.failed(told);
  }

  /** Handles a lost session. Nothing was delivered, so the slow path takes over, unless the run caused the loss. */
  lost(cause?: unknown): void {
    const sending = this.#sending;
    this.#sending = null;
    if (cause === undefined) {
      this.#answer?.unanswered();
      return;
    }
    if (this.#error !== null)
      sending?.host.onUpstreamError(this.#error, sending.statement.reads?.tables ?? []);
    this.#answer?.failed(cause);
  }

  #allRows(): Uint8Array {
    return this.#more.length === 0 ? this.#rows : Buffer.concat([this.#rows, ...this.#more]);
  }

  /** Hands the run to the slow path. Only a run that took too long or was too large lowers the statement's score. */
  #giveUp({ lanes, statement }: SharedExecution, error: UpstreamError | null): void {
    if (error === null || error.sqlstate === '57014')
      lanes.observe({
        statement,
        again: 'alone',
        lane: 'shared',
        rowCount: this.#count,
        byteCount: this.#bytes,
        startedAt: performance.now(),
      });
    this.#answer?.unanswered();
  }
}

/**
 * SQLSTATEs after which the slow path runs the statement again: statement timeout, missing prepared statement, changed
 * result type, conflict with replay on a standby.
 */
const RUN_AGAIN: ReadonlySet<string> = new Set(['57014', '26000', '0A000', '40001']);
