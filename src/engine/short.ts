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
  onAnswer(rows: Uint8Array, count: number): void;
  /** The statement was not short or could not be run on a shared session, and must be run in the usual way. */
  onUnanswered(): void;
  /** The run failed with `error`, which is one that `GovernedEngine.execute` throws. */
  onFailure(error: unknown): void;
}

/**
 * Runs the statement of a governed plan while it is known to be short. Runs of many callers are pipelined on shared
 * sessions, without a promise, timer or signal for each run. A shared session cannot be cancelled; it has a small
 * statement timeout, after which `onUnanswered` is called.
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
  #execution: SharedExecution | null = null;
  #rows: Uint8Array = NO_ROWS;
  #moreRows: Uint8Array[] = [];
  #count = 0;
  #bytes = 0;
  #isLong = false;
  #error: UpstreamError | null = null;

  constructor(answer: ShortAnswer) {
    this.#answer = answer;
  }

  /** Abandons the run. The upstream still sends the answer, and this object cannot be reused until then. */
  abandon(): void {
    this.#answer = null;
  }

  submit(execution: SharedExecution): void {
    this.#execution = execution;
    this.#rows = NO_ROWS;
    this.#moreRows = [];
    this.#count = 0;
    this.#bytes = 0;
    this.#isLong = false;
    this.#error = null;
    execution.session.submit(this, 'batched');
  }

  send(out: FrontendEncoder): void {
    const execution = this.#execution;
    if (execution === null) return;
    out.bind(execution.prepared.name, execution.values, execution.resultFormats);
    out.executeAndSync(SHARED_ROWS + 1);
  }

  largeRow(): 'pass' {
    this.#isLong = true;
    return 'pass';
  }

  onMemoryShortage(): void {
    this.#isLong = true;
  }

  rows(bytes: Uint8Array, count: number): undefined {
    this.#count += count;
    this.#bytes += bytes.length;
    if (this.#bytes > SHARED_BYTES) this.#isLong = true;
    else if (this.#rows === NO_ROWS) this.#rows = bytes;
    else this.#moreRows.push(bytes);
  }

  message(type: number, message: MessageView): void {
    if (type === 0x45)
      this.#error = parseErrorResponse(message.body()); // ErrorResponse
    else if (type === 0x73)
      this.#isLong = true; // PortalSuspended
    else if (type === 0x53 && this.#execution !== null) this.#execution.session.tainted = true; // ParameterStatus
  }

  ready(status: number): void {
    const execution = this.#execution;
    this.#execution = null;
    if (execution === null) return;
    execution.standby?.onEnded(execution.server);
    if (status !== 0x49) execution.session.tainted = true;
    const answer = this.#answer;
    const error = this.#error;
    if (error === null && !this.#isLong) answer?.onAnswer(this.#allRows(), this.#count);
    else if (error === null || RETRY_SQLSTATES.has(error.sqlstate)) this.#handOver(execution, error);
    else this.#fail(execution, error);
  }

  /** Handles an error. If the statement itself is at fault, the slow path runs it again to find the cause. */
  #fail(execution: SharedExecution, error: UpstreamError): void {
    const { host, statement } = execution;
    const reported = executionError(error, host.errors, statement);
    if (reported instanceof StatementFault) {
      this.#handOver(execution, error);
      return;
    }
    host.onUpstreamError(error, statement.reads?.tables ?? []);
    this.#answer?.onFailure(reported);
  }

  /** Handles a lost session. Nothing was delivered, so the slow path takes over, unless the run caused the loss. */
  lost(cause?: unknown): void {
    const execution = this.#execution;
    this.#execution = null;
    if (cause === undefined) {
      this.#answer?.onUnanswered();
      return;
    }
    if (this.#error !== null)
      execution?.host.onUpstreamError(this.#error, execution.statement.reads?.tables ?? []);
    this.#answer?.onFailure(cause);
  }

  #allRows(): Uint8Array {
    return this.#moreRows.length === 0 ? this.#rows : Buffer.concat([this.#rows, ...this.#moreRows]);
  }

  /** Hands the run to the slow path. Only a run that took too long or was too large lowers the statement's score. */
  #handOver({ lanes, statement }: SharedExecution, error: UpstreamError | null): void {
    if (error === null || error.sqlstate === '57014')
      lanes.observe({
        statement,
        rerun: 'alone',
        lane: 'shared',
        rowCount: this.#count,
        byteCount: this.#bytes,
        startedAt: performance.now(),
      });
    this.#answer?.onUnanswered();
  }
}

/**
 * SQLSTATEs after which the slow path runs the statement again: statement timeout, missing prepared statement, changed
 * result type, conflict with replay on a standby.
 */
const RETRY_SQLSTATES: ReadonlySet<string> = new Set(['57014', '26000', '0A000', '40001']);
