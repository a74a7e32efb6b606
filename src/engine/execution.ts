import { queryError } from 'osl-compiler';
import { noMemory, rowTooLarge } from './answer-memory.js';
import type { ExecutionHost, ExecutionRules } from './execution-host.js';
import { SHARED_BYTES, SHARED_ROWS } from './lanes.js';
import {
  describedColumns,
  fitting,
  type RemainingCaps,
  roomIn,
  sameOids,
} from './protocol/backend-messages.js';
import type { FrontendEncoder } from './protocol/encoder.js';
import { type ChosenServer, standbySource } from './servers.js';
import { applySettings, type SentPreamble } from './settings.js';
import { SpoolingSink } from './spool/spooling-sink.js';
import { isOfStandby, isReplayConflict, isShutdown, type StandbyReads } from './standby-reads.js';
import type { BoundValue, ExecuteOptions, ExecuteResult, RowSink, UpstreamStatement } from './statement.js';
import {
  changedColumn,
  connectionLost,
  executionError,
  objectsText,
  parseErrorResponse,
  StatementFault,
  stopError,
  unknownSetting,
} from './upstream-error.js';
import type { UpstreamError } from './upstream-report.js';
import type {
  MessageView,
  PreparedStatements,
  PreparedUpstream,
  SessionJob,
  UpstreamSession,
} from './upstream-session.js';

/**
 * `alone`: the session runs only this statement, and rows stream to the sink. `shared`: other callers' statements
 * queue behind it, so the answer must be small.
 */
export type Lane = 'alone' | 'shared';

/** A session that is lost within this time in ms was probably dead before the statement was sent. */
const QUICK_MS = 1_000;
const MOST_LOSSES = 2;

export class Execution implements SessionJob {
  readonly statement: UpstreamStatement;
  readonly subject: string | null;
  readonly standby: StandbyReads | null;
  /**
   * Set if the execution must be sent again: on the same session (`here`), on an unshared session (`alone`), on an
   * unshared session of the primary, or on the primary only if the standby is down.
   */
  again: 'here' | 'alone' | 'primary' | 'primary if down' | null = null;
  lane: Lane = 'alone';
  startedAt = 0;
  rowCount = 0;
  byteCount = 0;
  settled = false;
  /** The server to which the statement is sent; null until one is chosen. */
  chosen: ChosenServer | null = null;

  readonly #values: readonly BoundValue[];
  readonly #options: ExecuteOptions;
  readonly #sink: RowSink;
  readonly #host: ExecutionHost<Execution>;
  readonly #rules: ExecutionRules;
  readonly #resolve: (result: ExecuteResult) => void;
  readonly #reject: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout | null;
  readonly #onAbort: (() => void) | null;
  #session: UpstreamSession | null = null;
  #relieved: SpoolingSink | null = null;
  #prepared: PreparedUpstream | null = null;
  #reused = false;
  #applied: SentPreamble | null = null;
  /** Number of statements in `#applied` that the upstream has yet to complete. */
  #applying = 0;
  #prepares = 0;
  #losses = 0;
  #held: Uint8Array[] = [];
  #lastWrite: Promise<void> | null = null;
  #discard = false;
  #truncated = false;
  #error: UpstreamError | null = null;
  #mismatch = false;

  constructor(
    request: {
      readonly statement: UpstreamStatement;
      readonly values: readonly BoundValue[];
      readonly options: ExecuteOptions;
      readonly sink: RowSink;
    },
    host: ExecutionHost<Execution>,
    resolve: (result: ExecuteResult) => void,
    reject: (error: unknown) => void,
  ) {
    this.statement = request.statement;
    this.subject = request.options.subject;
    this.standby = request.options.standby ?? null;
    this.#values = request.values;
    this.#options = request.options;
    this.#sink = request.sink;
    this.#host = host;
    this.#rules = host.rules;
    this.#resolve = resolve;
    this.#reject = reject;
    const { timeoutMs, signal } = request.options;
    this.#timer =
      timeoutMs > 0
        ? setTimeout(() => this.stop(queryError('timedOut', { seconds: timeoutMs / 1000 })), timeoutMs)
        : null;
    this.#onAbort = signal === null ? null : () => this.stop(stopError(signal));
    if (signal !== null && this.#onAbort !== null) {
      if (signal.aborted) this.stop(stopError(signal));
      else signal.addEventListener('abort', this.#onAbort, { once: true });
    }
  }

  /** Sends the statement to `session`, for the first time or again. */
  start(session: UpstreamSession, lane: Lane): void {
    this.again = null;
    this.lane = lane;
    this.startedAt = performance.now();
    this.rowCount = 0;
    this.byteCount = 0;
    this.#session = session;
    const { spool } = this.#rules;
    if (lane === 'alone' && spool !== null && this.#relieved === null)
      this.#relieved = new SpoolingSink(this.#sink, {
        room: spool,
        memory: this.#rules.memory,
        party: this.subject,
        copies: this.#options.copies ?? 0,
        fail: (error) => this.stop(error),
      });
    this.#held = [];
    this.#discard = false;
    this.#truncated = false;
    this.#error = null;
    this.#mismatch = false;
    if (this.chosen !== null) this.#options.readFrom?.(standbySource(this.chosen));
    session.submit(this, lane === 'shared' ? 'batched' : 'now');
  }

  /** Rejects with `error` immediately and cancels the statement. */
  stop(error: unknown): void {
    if (this.settled) return;
    this.#settle(null, error);
    this.#discard = true;
    this.#held = [];
    // A shared session runs other callers' statements, so it is never cancelled; this answer is dropped instead.
    if (this.lane === 'alone') this.#session?.cancel();
  }

  send(out: FrontendEncoder, prepared: PreparedStatements): void {
    const { settings } = this.#options;
    if (settings !== undefined && settings.length > 0) {
      this.#applied = applySettings(out, prepared, settings, this.#rules.settingForm);
      this.#applying = this.#applied.completions;
    }
    const { sql, parameterOids, columnOids } = this.statement;
    const found = prepared.find(sql);
    const known = found?.columnOids ?? columnOids;
    // A cached description may be out of date: only a new one proves that a plan is wrong.
    const usable = found !== undefined && sameOids(known, columnOids);
    if (found !== undefined && !usable) prepared.close(out, sql, found);
    this.#reused = usable;
    this.#prepared = usable ? found : prepared.prepare(out, sql, parameterOids);
    this.#ask(out, this.#prepared.name);
    out.sync();
  }

  #ask(out: FrontendEncoder, prepared: string): void {
    const { asks, parameterOids } = this.statement;
    if (asks === 'rows') {
      out.bind(prepared, this.#values, this.#options.resultFormats);
      out.execute(this.#rowLimit());
      return;
    }
    const none = parameterOids.length === 0 ? '' : `(${parameterOids.map(() => 'NULL').join(', ')})`;
    out.parse('', `EXPLAIN EXECUTE ${prepared}${none}`, []);
    out.bind('', [], []);
    out.execute(this.#rowLimit());
  }

  largeRow(bytes: number): number | 'pass' | 'abandon' {
    const { bounds } = this.#rules.memory;
    if (this.lane === 'shared') {
      this.#runAgainAlone();
      return 'pass';
    }
    if (!this.#discard && bytes <= bounds.rowBytes) return bytes * (1 + (this.#options.copies ?? 0));
    if (!this.#discard) this.stop(rowTooLarge(bounds));
    return this.settled && !this.#host.inTransaction ? 'abandon' : 'pass';
  }

  starved(): void {
    this.stop(noMemory());
  }

  rows(bytes: Uint8Array, count: number): void | Promise<void> {
    if (this.#discard || this.#applying > 0) return undefined;
    if (this.lane === 'shared') return this.#hold(bytes, count);
    const fits = fitting(bytes, count, this.#room());
    if (fits.rows < count) this.#overflow();
    if (fits.rows === 0) return undefined;
    this.rowCount += fits.rows;
    this.byteCount += fits.bytes;
    return this.#write(fits.bytes === bytes.length ? bytes : bytes.subarray(0, fits.bytes), fits.rows);
  }

  message(type: number, message: MessageView): void {
    if (this.#applying > 0 && type !== 0x45) {
      if (type === 0x43) this.#applying -= 1; // CommandComplete
      return;
    }
    switch (type) {
      case 0x54: // RowDescription
        this.#checkColumns(describedColumns(message.body()).map((column) => column.typeOid));
        break;
      case 0x6e: // NoData
        this.#checkColumns([]);
        break;
      case 0x45: // ErrorResponse
        this.#error = parseErrorResponse(message.body());
        break;
      case 0x73: // PortalSuspended
        if (this.lane === 'shared' && !this.#beyondCap()) this.again = 'alone';
        break;
      case 0x53: // ParameterStatus: the statement changed the session
        if (!this.#host.inTransaction) this.#taint();
        break;
      default: // ParseComplete, BindComplete, CloseComplete, CommandComplete, notices
        break;
    }
  }

  ready(status: number): void {
    this.#noteEnd();
    if (status !== 0x49 && !this.#host.inTransaction) this.#taint();
    const session = this.#session;
    this.#session = null;
    // It is unknown whether the upstream has prepared the statement that applies the settings.
    if (this.#applying > 0 && this.#applied?.prepared != null)
      session?.prepared.forget(this.#applied.sql, this.#applied.prepared);
    if (!this.settled) this.#conclude(session);
    if (session !== null) this.#host.onEnded(this, session);
  }

  /** Handles the loss of the session. If allowed, the statement runs again without the caller noticing. */
  lost(cause?: unknown): void {
    this.#noteEnd();
    const session = this.#session;
    this.#session = null;
    if (cause === undefined && session !== null && this.#mayRunAgain()) {
      this.#losses += 1;
      this.again = 'primary';
    } else if (cause === undefined && session !== null && this.#mayRunIfDown()) {
      this.again = 'primary if down';
    } else {
      this.failLost(cause);
    }
    if (session !== null) this.#host.onEnded(this, session);
  }

  /** Rejects after the loss: with `cause`, a standby's replay conflict (may be retried), or `databaseDown`. */
  failLost(cause?: unknown): void {
    const error = this.#error;
    if (!this.settled && error !== null) this.#tell(error);
    const isConflict = error !== null && this.#isOnStandby && isReplayConflict(error);
    const told = isConflict
      ? executionError(error, this.#rules.errors, this.statement, this.#isParsed())
      : connectionLost();
    this.#settle(null, cause ?? told);
  }

  #noteEnd(): void {
    this.#options.spent?.(performance.now() - this.startedAt);
    if (this.chosen !== null) this.standby?.ended(this.chosen.server);
  }

  #conclude(session: UpstreamSession | null): void {
    const error = this.#error;
    if (error !== null && this.#prepared?.columnOids === null && session !== null) {
      session.prepared.forget(this.statement.sql, this.#prepared);
    }
    if (this.#mismatch) {
      if (this.#prepared !== null) session?.prepared.forget(this.statement.sql, this.#prepared);
      const changed = queryError('sourceChanged', {
        objects: objectsText(this.statement.reads?.objects ?? []),
      });
      this.#settle(null, new StatementFault(changed, 'columns of other types than the plan has'));
    } else if (this.#truncated || error === null) {
      this.#succeed();
    } else if (this.#mayPrepareAgain(error) && this.#prepared !== null) {
      session?.prepared.forget(this.statement.sql, this.#prepared);
      this.again = 'here';
    } else if (this.lane === 'shared' && error.sqlstate === '57014') {
      this.again = 'alone';
    } else if (this.#mayAskPrimary(error)) {
      this.again = 'primary';
    } else {
      this.#tell(error);
      const unknown = this.#applying > 0 && error.sqlstate === '22023';
      const told = unknown
        ? unknownSetting()
        : executionError(error, this.#rules.errors, this.statement, this.#isParsed());
      this.#onceDelivered(() => this.#settle(null, told));
    }
  }

  /** Calls `then` once all spooled rows are delivered, or immediately if nothing is spooled. */
  #onceDelivered(then: () => void): void {
    const delivered = this.#relieved?.end() ?? null;
    if (delivered === null) then();
    else delivered.then(then);
  }

  #succeed(): void {
    if (this.again !== null) return;
    if (this.#held.length > 0) this.#deliverHeld();
    if (this.settled) return;
    const done = (): void => this.#settle({ rows: this.rowCount, truncated: this.#truncated }, null);
    if (this.#lastWrite === null) done();
    else this.#lastWrite.then(() => this.#onceDelivered(done));
  }

  #deliverHeld(): void {
    const held = this.#held;
    this.#held = [];
    const bytes = held.length === 1 && held[0] !== undefined ? held[0] : Buffer.concat(held);
    const fits = fitting(bytes, this.rowCount, roomIn(this.#options, 0, 0));
    this.#truncated = fits.rows < this.rowCount;
    this.rowCount = fits.rows;
    this.byteCount = fits.bytes;
    if (fits.rows > 0) this.#write(bytes.subarray(0, fits.bytes), fits.rows);
  }

  #hold(bytes: Uint8Array, count: number): undefined {
    this.rowCount += count;
    this.byteCount += bytes.length;
    if (this.byteCount > SHARED_BYTES) this.#runAgainAlone();
    else this.#held.push(bytes);
    return undefined;
  }

  #runAgainAlone(): void {
    this.again = 'alone';
    this.#discard = true;
    this.#held = [];
  }

  #write(bytes: Uint8Array, count: number): void | Promise<void> {
    try {
      const writing = (this.#relieved ?? this.#sink).write(bytes, count);
      if (writing === undefined) return undefined;
      this.#lastWrite = writing.then(undefined, (error: unknown) => this.stop(error));
      return this.#lastWrite;
    } catch (error) {
      this.stop(error);
      return undefined;
    }
  }

  #room(): RemainingCaps {
    return roomIn(this.#options, this.rowCount, this.byteCount);
  }

  #beyondCap(): boolean {
    return this.#options.maxRows > 0 && this.rowCount > this.#options.maxRows;
  }

  #overflow(): void {
    this.#truncated = true;
    this.#discard = true;
    if (!this.#rules.limitRows) this.#session?.cancel();
  }

  #rowLimit(): number {
    const { maxRows } = this.#options;
    if (this.lane === 'shared') return maxRows > 0 && maxRows < SHARED_ROWS ? maxRows + 1 : SHARED_ROWS + 1;
    return this.#rules.limitRows && maxRows > 0 ? maxRows + 1 : 0;
  }

  #checkColumns(oids: readonly number[]): void {
    if (this.#prepared !== null) this.#prepared.columnOids = oids;
    if (sameOids(oids, this.statement.columnOids)) return;
    this.#mismatch = true;
    this.#discard = true;
    const at = this.statement.columnOids.findIndex((oid, i) => oid !== oids[i]);
    this.#tell(changedColumn(this.statement.reads?.columns[at] ?? null));
  }

  /** True once the upstream has parsed the statement, which is when its description arrives. */
  #isParsed(): boolean {
    return this.#prepared !== null && this.#prepared.columnOids !== null;
  }

  #tell(error: UpstreamError): void {
    this.#rules.onUpstreamError(error, this.statement.reads?.tables ?? []);
  }

  /** True if `error` is due to the standby and the primary may run the statement instead. */
  #mayAskPrimary(error: UpstreamError): boolean {
    return this.#isOnStandby && isOfStandby(error) && this.#isUndelivered && this.#rules.runsAgain;
  }

  /** True if an administrator ended the session on a standby; if that is down, the primary may run the statement. */
  #mayRunIfDown(): boolean {
    if (this.settled || !this.#isUndelivered || this.#discard || !this.#rules.runsAgain) return false;
    return this.#isOnStandby && isShutdown(this.#error);
  }

  get #isOnStandby(): boolean {
    return this.chosen !== null && this.chosen.asOf !== null;
  }

  get #isUndelivered(): boolean {
    return this.lane === 'shared' || this.rowCount === 0;
  }

  /** False if the statement has run for a while: it may have crashed the server, or an operator may have ended it. */
  #mayRunAgain(): boolean {
    if (this.settled || !this.#isUndelivered || this.#discard || !this.#rules.runsAgain) return false;
    return this.#losses < MOST_LOSSES && performance.now() - this.startedAt < QUICK_MS;
  }

  #mayPrepareAgain(error: UpstreamError): boolean {
    if (!this.#reused || this.rowCount > 0 || this.#prepares > 1) return false;
    if (error.sqlstate !== '0A000' && error.sqlstate !== '26000') return false;
    this.#prepares += 1;
    return true;
  }

  #taint(): void {
    if (this.#session !== null) this.#session.tainted = true;
  }

  #settle(result: ExecuteResult | null, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    this.#relieved?.drop();
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#onAbort !== null) this.#options.signal?.removeEventListener('abort', this.#onAbort);
    if (result === null) this.#reject(error);
    else this.#resolve(result);
  }
}
