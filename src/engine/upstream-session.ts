import { InternalError } from 'osl-compiler';
import { type AnswerMemory, LARGE_ROW_BYTES } from './answer-memory.js';
import { rowScheduler, SLICE_BYTES, type Stream } from './fair-scheduler.js';
import type { FairShareParty } from './fair-share.js';
import { FrontendEncoder } from './protocol/encoder.js';
import { BackendSplitter } from './protocol/splitter.js';

/** The byte stream of an upstream session after authentication. */
export interface Transport {
  /** Time in ms that a statement may take to end by itself before it is cancelled; 0 to cancel immediately. */
  readonly graceMs: number;
  /** Starts receiving. `closed` is called once, after all other calls. */
  attach(receive: (chunk: Uint8Array) => void, closed: () => void): void;
  /** Sends `bytes`. Returns true if the caller may overwrite them immediately. */
  write(bytes: Uint8Array): boolean;
  pause(): void;
  resume(): void;
  /** Asks the upstream to stop the running statement. Settles when the request can no longer hit a later statement. */
  cancel(): Promise<void>;
  destroy(): void;
}

export interface MessageView {
  /** The bytes after type and length. */
  body(): Buffer;
}

/** Work of a session between two ReadyForQuery messages. */
export interface SessionJob {
  /** Appends frontend messages that end in exactly one Sync or Query. */
  send(out: FrontendEncoder, prepared: PreparedStatements): void;
  /** The subject charged for large rows. */
  readonly subject: FairShareParty;
  /**
   * Called when a row of more than `LARGE_ROW_BYTES` begins. Returns the memory needed until `rows` has settled, or
   * `pass` to read and drop the row, or `abandon` to close the session if that costs less than reading the row.
   */
  largeRow(bytes: number): number | 'pass' | 'abandon';
  /** Called if the row announced by `largeRow` is skipped for lack of memory. */
  onMemoryShortage(): void;
  /** Receives a run of DataRow messages. Reading pauses until the promise, which must not reject, settles. */
  rows(bytes: Uint8Array, count: number): void | Promise<void>;
  /** Receives any other message except ReadyForQuery; its body is valid during the call. */
  message(type: number, message: MessageView): void;
  /** Called on ReadyForQuery, with its status byte `I`, `T` or `E`. */
  ready(status: number): void;
  /** Called if the session died before ReadyForQuery. `cause` is set if this job caused it. */
  lost(cause?: unknown): void;
}

const READY_FOR_QUERY = 0x5a;
const DATA_ROW = 0x44;
const PREPARED_LIMIT = 500;
/** Time in ms that a cancelled statement may take to end before its session is closed. */
const DRAIN_MS = 10_000;
const CANCEL_AGAIN_MS = 250;
/**
 * Size of a row, in bytes, above which reading it takes longer than opening a new session. A server does not notice a
 * cancel while it sends a row.
 */
const ABANDON_BYTES = 67_108_864;

interface RowMemory {
  readonly subject: FairShareParty;
  readonly bytes: number;
}

/** Number of bytes of each answer that are delivered immediately; the rest takes turns with other streams. */
const AT_ONCE_BYTES = 2 * SLICE_BYTES;

/** An upstream session, which answers jobs in order. */
export class UpstreamSession implements Stream {
  readonly prepared = new PreparedStatements(PREPARED_LIMIT);
  /** True if state may have outlived its statement; the session is then not used again. */
  tainted = false;
  closed = false;
  onClosed: (() => void) | null = null;

  readonly #transport: Transport;
  readonly #memory: AnswerMemory;
  readonly #out = new FrontendEncoder();
  readonly #in = new BackendSplitter(LARGE_ROW_BYTES);
  /** Memory reserved for the large row being received. */
  #lease: RowMemory | null = null;
  /** Identifies the large row that is waiting for memory; null if no row is waiting. */
  #waitingRow: object | null = null;
  #jobs: SessionJob[] = [];
  #chunks: Uint8Array[] = [];
  #status = 0x49;
  #pauses = 0;
  /** True while the reader pauses the session. */
  #paused = false;
  /** True while the session is queued in the scheduler. */
  #queued = false;
  /** True while the transport is paused. */
  #isTransportPaused = false;
  /** Number of bytes left in the current turn. */
  #allowance = AT_ONCE_BYTES;
  #flushing = false;
  #pumping = false;
  #cancelling: Promise<void> | null = null;
  /** Called when the statement being cancelled has ended. */
  #wakeCanceller: () => void = () => undefined;
  #grace: NodeJS.Timeout | null = null;
  /** Time at which bytes were last received, or at which the first unanswered job was submitted, if that is later. */
  #silentSince = 0;

  constructor(transport: Transport, memory: AnswerMemory) {
    this.#transport = transport;
    this.#memory = memory;
    transport.attach(
      (chunk) => this.#receive(chunk),
      () => this.#lose(),
    );
  }

  /** True if the upstream was outside a transaction when it last answered. */
  get idle(): boolean {
    return this.#status === 0x49;
  }

  /** The number of unanswered jobs. */
  get load(): number {
    return this.#jobs.length;
  }

  /** Time in ms since the upstream last sent something, while an answer is outstanding; otherwise 0. */
  get silentMs(): number {
    return this.#jobs.length === 0 ? 0 : performance.now() - this.#silentSince;
  }

  /** Sends `job` now, or together with others of the same turn of the event loop. */
  submit(job: SessionJob, flush: 'now' | 'batched' = 'now'): void {
    if (this.closed) {
      job.lost();
      return;
    }
    const before = this.#out.length;
    try {
      job.send(this.#out, this.prepared);
    } catch (cause) {
      // INVARIANT: a job that was not written completely is not sent; which statements it prepared is unknown.
      this.#out.truncate(before);
      this.destroy();
      job.lost(cause);
      return;
    }
    if (this.#jobs.push(job) === 1) this.#silentSince = performance.now();
    if (flush === 'now') {
      this.#flush();
    } else if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => this.#flush());
    }
  }

  /** Cancels the running statement and stops waiting for the reader. Only for a session with a single job. */
  cancel(): void {
    if (this.closed || this.#cancelling !== null || this.#grace !== null) return;
    if (this.#transport.graceMs > 0) {
      this.#grace = setTimeout(() => this.#cancelNow(), this.#transport.graceMs);
    } else {
      this.#cancelNow();
    }
    this.#unpause(this.#pauses);
  }

  #cancelNow(): void {
    this.#grace = null;
    if (this.closed || this.#jobs.length === 0) return;
    this.#cancelling = this.#cancelUntilAnswered();
  }

  /**
   * Repeats the cancel request, because it may get lost, and Postgres ignores it while reading the next message.
   * Settles when the statement has ended and no request is in flight.
   */
  async #cancelUntilAnswered(): Promise<void> {
    const timer = setTimeout(() => this.destroy(), DRAIN_MS);
    const job = this.#jobs[0];
    while (!this.closed && this.#jobs[0] === job) {
      await this.#transport.cancel().catch(() => undefined); // retried or abandoned below
      if (this.closed || this.#jobs[0] !== job) break;
      await new Promise<void>((resolve) => {
        const retryTimer = setTimeout(resolve, CANCEL_AGAIN_MS);
        this.#wakeCanceller = () => {
          clearTimeout(retryTimer);
          resolve();
        };
      });
    }
    clearTimeout(timer);
  }

  /** Returns null if the session can take another job; otherwise a promise that settles once no cancel is in flight. */
  whenFree(): Promise<void> | null {
    const cancelling = this.#cancelling;
    if (cancelling === null) return null;
    return cancelling
      .then(() => run(this, fence))
      .then(() => {
        this.#cancelling = null;
      });
  }

  destroy(): void {
    this.#transport.destroy();
    this.#lose();
  }

  #flush(): void {
    this.#flushing = false;
    if (this.closed || this.#out.length === 0) return;
    if (this.#transport.write(this.#out.view())) this.#out.reset();
    else this.#out.detach();
  }

  /** Delivers about `bytes` bytes of the received data. Returns true if more is waiting for its turn. */
  slice(bytes: number): boolean {
    this.#allowance = bytes;
    this.#queued = this.#pump();
    if (!this.#queued && !this.#paused) this.#resumeTransport();
    return this.#queued;
  }

  #receive(chunk: Uint8Array): void {
    this.#silentSince = performance.now();
    this.#chunks.push(chunk);
    if (this.#paused || this.#queued) this.#pauseTransport();
    else this.#advance();
  }

  /** Delivers as much as the allowance permits; the rest waits for its turn, with the upstream paused. */
  #advance(): void {
    if (this.#pumping) return; // the active call continues
    if (this.#pump()) {
      this.#queued = true;
      this.#pauseTransport();
      rowScheduler.join(this);
    } else if (!this.#paused) {
      this.#resumeTransport();
    }
  }

  #pauseTransport(): void {
    if (this.#isTransportPaused) return;
    this.#isTransportPaused = true;
    this.#transport.pause();
  }

  #resumeTransport(): void {
    if (!this.#isTransportPaused || this.closed) return;
    this.#isTransportPaused = false;
    this.#transport.resume();
  }

  /** Delivers data within the allowance. Returns true if more is waiting for its turn. */
  #pump(): boolean {
    this.#pumping = true;
    try {
      while (!this.#paused && !this.closed) {
        if (this.#allowance <= 0 && this.#hasMore()) return true;
        if (this.#in.next(this.#allowance)) {
          this.#dispatch();
        } else if (this.#in.announced > 0) {
          this.#onLargeRow(this.#in.announced);
        } else {
          const chunk = this.#chunks.shift();
          if (chunk === undefined) break;
          this.#in.push(chunk);
        }
      }
    } catch {
      // INVARIANT: after a protocol error the stream is not read further; pending jobs end as a lost connection.
      this.destroy();
    } finally {
      this.#pumping = false;
    }
    return false;
  }

  #hasMore(): boolean {
    return !this.#in.drained || this.#chunks.length > 0;
  }

  /** Keeps the announced large row, skips it, or waits for memory. */
  #onLargeRow(bytes: number): void {
    const job = this.#jobs[0];
    const needed = job?.largeRow(bytes) ?? 'pass';
    this.#waitingRow = null;
    if (needed === 'abandon' && bytes > ABANDON_BYTES && this.#transport.graceMs === 0) this.destroy();
    else if (job === undefined || typeof needed === 'string' || this.#cancelling !== null) this.#in.skip();
    else if (this.#memory.take(job.subject, needed)) this.#keepRow(job.subject, needed);
    else this.#waitForMemory(job, needed);
  }

  #keepRow(subject: FairShareParty, bytes: number): void {
    this.#lease = { subject, bytes };
    this.#in.keep();
  }

  #waitForMemory(job: SessionJob, bytes: number): void {
    const waitingRow = {};
    this.#waitingRow = waitingRow;
    const decision = this.#memory.wait(job.subject, bytes).then((granted) => {
      const isCurrent = this.#waitingRow === waitingRow && !this.closed;
      if (isCurrent) this.#waitingRow = null;
      if (isCurrent && granted) this.#keepRow(job.subject, bytes);
      else if (granted) this.#memory.giveBack(job.subject, bytes);
      if (!isCurrent || granted) return;
      this.#in.skip();
      job.onMemoryShortage();
    });
    this.#pauseFor(decision);
  }

  #giveBack({ subject, bytes }: RowMemory): void {
    this.#memory.giveBack(subject, bytes);
  }

  #dispatch(): void {
    const splitter = this.#in;
    const job = this.#jobs[0];
    this.#allowance -= splitter.end - splitter.start;
    if (job === undefined) {
      if (splitter.type === 0x45) this.destroy(); // an unsolicited error means that the server is closing
      return;
    }
    if (splitter.type === DATA_ROW) {
      const wait = job.rows(splitter.buffer.subarray(splitter.start, splitter.end), splitter.rows);
      const lease = this.#lease;
      this.#lease = null;
      if (lease !== null && wait === undefined) this.#giveBack(lease);
      else if (lease !== null) void wait?.then(() => this.#giveBack(lease));
      if (wait !== undefined) this.#pauseFor(wait);
    } else if (splitter.type === READY_FOR_QUERY) {
      this.#status = splitter.firstByte();
      this.#jobs.shift();
      this.#allowance = AT_ONCE_BYTES;
      this.#wakeCanceller();
      this.#endGrace();
      job.ready(this.#status);
    } else {
      job.message(splitter.type, splitter);
    }
  }

  #endGrace(): void {
    if (this.#grace !== null) clearTimeout(this.#grace);
    this.#grace = null;
  }

  #pauseFor(wait: Promise<void>): void {
    if (this.#cancelling !== null) return;
    this.#paused = true;
    this.#pauseTransport();
    const pause = ++this.#pauses;
    wait.then(() => this.#unpause(pause));
  }

  #unpause(pause: number): void {
    if (!this.#paused || pause !== this.#pauses) return;
    this.#paused = false;
    if (!this.#queued) this.#advance();
  }

  #lose(): void {
    if (this.closed) return;
    this.closed = true;
    rowScheduler.leave(this);
    if (this.#lease !== null) this.#giveBack(this.#lease);
    this.#lease = null;
    this.#endGrace();
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#chunks = [];
    this.#wakeCanceller();
    for (const job of jobs) job.lost();
    this.onClosed?.();
  }
}

/** Appends an empty statement, which absorbs a late cancel request. */
function fence(out: FrontendEncoder): void {
  out.query('');
}

/**
 * Sends the messages of `send`, ignores their answers and resolves to the status byte `I`, `T` or `E`. Rejects if the
 * session is lost.
 */
export function run(session: UpstreamSession, send: (out: FrontendEncoder) => void): Promise<number> {
  return new Promise((resolve, reject) => {
    session.submit({
      send,
      subject: null,
      largeRow: () => 'pass',
      onMemoryShortage: () => undefined,
      rows: () => undefined,
      message: () => undefined,
      ready: resolve,
      lost: () => reject(new InternalError('the upstream session was lost')),
    });
  });
}

export interface PreparedUpstream {
  readonly name: string;
  /** Column type OIDs from the upstream's description; null until it arrives. */
  columnOids: readonly number[] | null;
}

/** LRU cache of a session's named prepared statements, by SQL text. */
export class PreparedStatements {
  readonly #limit: number;
  readonly #bySql = new Map<string, PreparedUpstream>();
  #counter = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Finds the statement for `sql` and marks it as most recently used. */
  find(sql: string): PreparedUpstream | undefined {
    const statement = this.#bySql.get(sql);
    if (statement !== undefined && this.#bySql.size > this.#limit / 2) {
      this.#bySql.delete(sql);
      this.#bySql.set(sql, statement);
    }
    return statement;
  }

  /** Appends Parse and Describe for `sql`, preceded by Close if a statement is evicted. */
  prepare(out: FrontendEncoder, sql: string, parameterOids: readonly number[]): PreparedUpstream {
    this.#makeRoom(out);
    const statement: PreparedUpstream = { name: `osl${++this.#counter}`, columnOids: null };
    out.parse(statement.name, sql, parameterOids);
    out.describeStatement(statement.name);
    this.#bySql.set(sql, statement);
    return statement;
  }

  /** Removes `statement` from the cache; in the upstream, it remains until the session ends. */
  forget(sql: string, statement: PreparedUpstream): void {
    if (this.#bySql.get(sql) === statement) this.#bySql.delete(sql);
  }

  /** Removes `statement` from the cache and closes it in the upstream. */
  close(out: FrontendEncoder, sql: string, statement: PreparedUpstream): void {
    this.forget(sql, statement);
    out.closeStatement(statement.name);
  }

  #makeRoom(out: FrontendEncoder): void {
    if (this.#bySql.size < this.#limit) return;
    for (const [sql, oldest] of this.#bySql) {
      this.#bySql.delete(sql);
      out.closeStatement(oldest.name);
      return;
    }
  }
}
