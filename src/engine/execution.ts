import { queryError } from 'osl-compiler';
import { noMemory, rowTooLarge } from './answer-memory.js';
import type { ExecutionHost, ExecutionRules } from './execution-host.js';
import { SHARED_BYTES, SHARED_ROWS } from './lanes.js';
import {
  describedColumns,
  fittingRows,
  type RemainingCaps,
  remainingCaps,
  sameOids,
} from './protocol/backend-messages.js';
import type { FrontendEncoder } from './protocol/encoder.js';
import { type ChosenServer, standbySource } from './servers.js';
import { applySettings, type SentPreamble } from './settings.js';
import { SpoolingSink } from './spool/spooling-sink.js';
import { isReplayConflict, isShutdown, isStandbyOnly, type StandbyReads } from './standby-reads.js';
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

/** If a session is lost within this time in ms, it was probably dead before the statement was sent. */
const EARLY_LOSS_MS = 1_000;
const MAX_LOSSES = 2;

export class Execution implements SessionJob {
  readonly statement: UpstreamStatement;
  readonly subject: string | null;
  readonly standby: StandbyReads | null;
  /**
   * Set if the execution must be sent again: on the same session (`here`), on an unshared session (`alone`), on an
   * unshared session of the primary, or on the primary only if the standby is down.
   */
  rerun: 'here' | 'alone' | 'primary' | 'primary if down' | null = null;
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
  #spoolingSink: SpoolingSink | null = null;
  #prepared: PreparedUpstream | null = null;
  #reused = false;
  #preamble: SentPreamble | null = null;
  /** Number of statements in `#preamble` that the upstream has yet to complete. */
  #pendingPreamble = 0;
  #prepares = 0;
  #losses = 0;
  #heldRows: Uint8Array[] = [];
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
    this.rerun = null;
    this.lane = lane;
    this.startedAt = performance.now();
    this.rowCount = 0;
    this.byteCount = 0;
    this.#session = session;
    const { spool } = this.#rules;
    if (lane === 'alone' && spool !== null && this.#spoolingSink === null)
      this.#spoolingSink = new SpoolingSink(this.#sink, {
        room: spool,
        memory: this.#rules.memory,
        party: this.subject,
        copies: this.#options.copies ?? 0,
        fail: (error) => this.stop(error),
      });
    this.#heldRows = [];
    this.#discard = false;
    this.#truncated = false;
    this.#error = null;
    this.#mismatch = false;
    if (this.chosen !== null) this.#options.onSource?.(standbySource(this.chosen));
    session.submit(this, lane === 'shared' ? 'batched' : 'now');
  }

  /** Rejects with `error` immediately and cancels the statement. */
  stop(error: unknown): void {
    if (this.settled) return;
    this.#settle(null, error);
    this.#discard = true;
    this.#heldRows = [];
    // A shared session runs other callers' statements, so it is never cancelled; this answer is dropped instead.
    if (this.lane === 'alone') this.#session?.cancel();
  }

  send(out: FrontendEncoder, prepared: PreparedStatements): void {
    const { settings } = this.#options;
    if (settings !== undefined && settings.length > 0) {
      this.#preamble = applySettings(out, prepared, settings, this.#rules.settingForm);
      this.#pendingPreamble = this.#preamble.completions;
    }
    const { sql, parameterOids, columnOids } = this.statement;
    const cached = prepared.find(sql);
    const cachedOids = cached?.columnOids ?? columnOids;
    // A cached description may be out of date: only a new one proves that a plan is wrong.
    const usable = cached !== undefined && sameOids(cachedOids, columnOids);
    if (cached !== undefined && !usable) prepared.close(out, sql, cached);
    this.#reused = usable;
    this.#prepared = usable ? cached : prepared.prepare(out, sql, parameterOids);
    this.#sendExecute(out, this.#prepared.name);
    out.sync();
  }

  #sendExecute(out: FrontendEncoder, prepared: string): void {
    const { output, parameterOids } = this.statement;
    if (output === 'rows') {
      out.bind(prepared, this.#values, this.#options.resultFormats);
      out.execute(this.#rowLimit());
      return;
    }
    const nulls = parameterOids.length === 0 ? '' : `(${parameterOids.map(() => 'NULL').join(', ')})`;
    out.parse('', `EXPLAIN EXECUTE ${prepared}${nulls}`, []);
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

  onMemoryShortage(): void {
    this.stop(noMemory());
  }

  rows(bytes: Uint8Array, count: number): void | Promise<void> {
    if (this.#discard || this.#pendingPreamble > 0) return undefined;
    if (this.lane === 'shared') return this.#hold(bytes, count);
    const part = fittingRows(bytes, count, this.#remainingCaps());
    if (part.rows < count) this.#overflow();
    if (part.rows === 0) return undefined;
    this.rowCount += part.rows;
    this.byteCount += part.bytes;
    return this.#write(part.bytes === bytes.length ? bytes : bytes.subarray(0, part.bytes), part.rows);
  }

  message(type: number, message: MessageView): void {
    if (this.#pendingPreamble > 0 && type !== 0x45) {
      if (type === 0x43) this.#pendingPreamble -= 1; // CommandComplete
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
        if (this.lane === 'shared' && !this.#isBeyondCap()) this.rerun = 'alone';
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
    if (this.#pendingPreamble > 0 && this.#preamble?.prepared != null)
      session?.prepared.forget(this.#preamble.sql, this.#preamble.prepared);
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
      this.rerun = 'primary';
    } else if (cause === undefined && session !== null && this.#mayRunIfDown()) {
      this.rerun = 'primary if down';
    } else {
      this.failLost(cause);
    }
    if (session !== null) this.#host.onEnded(this, session);
  }

  /** Rejects after the loss: with `cause`, a standby's replay conflict (may be retried), or `databaseDown`. */
  failLost(cause?: unknown): void {
    const error = this.#error;
    if (!this.settled && error !== null) this.#reportUpstreamError(error);
    const isConflict = error !== null && this.#isOnStandby && isReplayConflict(error);
    const reported = isConflict
      ? executionError(error, this.#rules.errors, this.statement, this.#isParsed())
      : connectionLost();
    this.#settle(null, cause ?? reported);
  }

  #noteEnd(): void {
    this.#options.onTimeSpent?.(performance.now() - this.startedAt);
    if (this.chosen !== null) this.standby?.onEnded(this.chosen.server);
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
      this.rerun = 'here';
    } else if (this.lane === 'shared' && error.sqlstate === '57014') {
      this.rerun = 'alone';
    } else if (this.#mayRunOnPrimary(error)) {
      this.rerun = 'primary';
    } else {
      this.#reportUpstreamError(error);
      const isUnknownSetting = this.#pendingPreamble > 0 && error.sqlstate === '22023';
      const reported = isUnknownSetting
        ? unknownSetting()
        : executionError(error, this.#rules.errors, this.statement, this.#isParsed());
      this.#onceDelivered(() => this.#settle(null, reported));
    }
  }

  /** Calls `callback` once all spooled rows are delivered, or immediately if nothing is spooled. */
  #onceDelivered(callback: () => void): void {
    const delivered = this.#spoolingSink?.end() ?? null;
    if (delivered === null) callback();
    else delivered.then(callback);
  }

  #succeed(): void {
    if (this.rerun !== null) return;
    if (this.#heldRows.length > 0) this.#deliverHeld();
    if (this.settled) return;
    const finish = (): void => this.#settle({ rows: this.rowCount, truncated: this.#truncated }, null);
    if (this.#lastWrite === null) finish();
    else this.#lastWrite.then(() => this.#onceDelivered(finish));
  }

  #deliverHeld(): void {
    const rows = this.#heldRows;
    this.#heldRows = [];
    const bytes = rows.length === 1 && rows[0] !== undefined ? rows[0] : Buffer.concat(rows);
    const part = fittingRows(bytes, this.rowCount, remainingCaps(this.#options, 0, 0));
    this.#truncated = part.rows < this.rowCount;
    this.rowCount = part.rows;
    this.byteCount = part.bytes;
    if (part.rows > 0) this.#write(bytes.subarray(0, part.bytes), part.rows);
  }

  #hold(bytes: Uint8Array, count: number): undefined {
    this.rowCount += count;
    this.byteCount += bytes.length;
    if (this.byteCount > SHARED_BYTES) this.#runAgainAlone();
    else this.#heldRows.push(bytes);
    return undefined;
  }

  #runAgainAlone(): void {
    this.rerun = 'alone';
    this.#discard = true;
    this.#heldRows = [];
  }

  #write(bytes: Uint8Array, count: number): void | Promise<void> {
    try {
      const writing = (this.#spoolingSink ?? this.#sink).write(bytes, count);
      if (writing === undefined) return undefined;
      this.#lastWrite = writing.then(undefined, (error: unknown) => this.stop(error));
      return this.#lastWrite;
    } catch (error) {
      this.stop(error);
      return undefined;
    }
  }

  #remainingCaps(): RemainingCaps {
    return remainingCaps(this.#options, this.rowCount, this.byteCount);
  }

  #isBeyondCap(): boolean {
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
    this.#reportUpstreamError(changedColumn(this.statement.reads?.columns[at] ?? null));
  }

  /** True once the upstream has parsed the statement, which is when its description arrives. */
  #isParsed(): boolean {
    return this.#prepared !== null && this.#prepared.columnOids !== null;
  }

  #reportUpstreamError(error: UpstreamError): void {
    this.#rules.onUpstreamError(error, this.statement.reads?.tables ?? []);
  }

  /** True if `error` is due to the standby and the primary may run the statement instead. */
  #mayRunOnPrimary(error: UpstreamError): boolean {
    return this.#isOnStandby && isStandbyOnly(error) && this.#isUndelivered && this.#rules.mayRunAgain;
  }

  /** True if an administrator ended the session on a standby; if that is down, the primary may run the statement. */
  #mayRunIfDown(): boolean {
    if (this.settled || !this.#isUndelivered || this.#discard || !this.#rules.mayRunAgain) return false;
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
    if (this.settled || !this.#isUndelivered || this.#discard || !this.#rules.mayRunAgain) return false;
    return this.#losses < MAX_LOSSES && performance.now() - this.startedAt < EARLY_LOSS_MS;
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
    this.#spoolingSink?.drop();
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#onAbort !== null) this.#options.signal?.removeEventListener('abort', this.#onAbort);
    if (result === null) this.#reject(error);
    else this.#resolve(result);
  }
}
