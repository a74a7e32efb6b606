import { InternalError } from 'osl-compiler';
import { type AnswerMemory, LARGE_ROW_BYTES } from './answer-memory.js';
import type { FairShareParty } from './fair-share.js';
import { PreparedStatements } from './prepared.js';
import { FrontendEncoder } from './protocol/encoder.js';
import { BackendSplitter } from './protocol/splitter.js';
import { SLICE_BYTES, type Stream, turns } from './turns.js';

/** The bytes of one upstream session, after authentication. */
export interface Transport {
  /** Time in ms that a statement to be cancelled may go on, unread, if that is cheaper than a cancel. */
  readonly graceMs: number;
  /** `closed` is called once, after which nothing else is. */
  attach(receive: (chunk: Uint8Array) => void, closed: () => void): void;
  /** Sends `bytes`; true when the caller may overwrite them at once. */
  write(bytes: Uint8Array): boolean;
  pause(): void;
  resume(): void;
  /** Asks the upstream to stop what runs; settles when the request can hit no later statement. */
  cancel(): Promise<void>;
  destroy(): void;
}

/** A message as it was received. */
export interface MessageView {
  /** Its bytes after type and length. */
  body(): Buffer;
}

/** Something a session does between two ReadyForQuery messages. */
export interface SessionJob {
  /** Appends frontend messages that end in exactly one Sync or Query. */
  send(out: FrontendEncoder, prepared: PreparedStatements): void;
  /** Subject that large rows are charged to. */
  readonly subject: FairShareParty;
  /**
   * A row of `bytes` bytes, more than `LARGE_ROW_BYTES`, begins. Gives how much memory it needs until `rows` has settled.
   * `pass`: it is read and dropped. `abandon`: so is the session, where to begin another costs less than to read the row.
   */
  largeRow(bytes: number): number | 'pass' | 'abandon';
  /** There was no memory for the row that `largeRow` was told of: it is passed over. */
  starved(): void;
  /** A run of DataRow messages. A promise, which must not reject, stops the reading until it settles. */
  rows(bytes: Uint8Array, count: number): void | Promise<void>;
  /** Any other message except ReadyForQuery; its body while the call lasts. */
  message(type: number, message: MessageView): void;
  /** ReadyForQuery; `status` is the byte `I`, `T` or `E`. */
  ready(status: number): void;
  /** The session died before ReadyForQuery. `cause`: why, where this job is to blame. */
  lost(cause?: unknown): void;
}

const READY_FOR_QUERY = 0x5a;
const DATA_ROW = 0x44;
const PREPARED_LIMIT = 500;
/** Time that a cancelled statement may take to end before the session is given up. */
const DRAIN_MS = 10_000;
const CANCEL_AGAIN_MS = 250;
/** A server notices no cancel while it sends a row. One that is larger takes longer to read than a new session to begin. */
const ABANDON_BYTES = 67_108_864;

/** Memory taken for one large row. */
interface RowMemory {
  readonly subject: FairShareParty;
  readonly bytes: number;
}

/** Bytes that every answer may pass on at once; the rest goes in turns with other streams. */
const AT_ONCE_BYTES = 2 * SLICE_BYTES;

/** One upstream session: jobs in, answers out, in order. */
export class UpstreamSession implements Stream {
  readonly prepared = new PreparedStatements(PREPARED_LIMIT);
  /** Set when something may have outlived its statement; the session must not be used again. */
  tainted = false;
  closed = false;
  onClosed: (() => void) | null = null;

  readonly #transport: Transport;
  readonly #memory: AnswerMemory;
  readonly #out = new FrontendEncoder();
  readonly #in = new BackendSplitter(LARGE_ROW_BYTES);
  /** The memory of the large row that is being received. */
  #lease: RowMemory | null = null;
  /** The large row that waits for memory, told from others. */
  #asking: object | null = null;
  #jobs: SessionJob[] = [];
  #chunks: Uint8Array[] = [];
  #status = 0x49;
  #pauses = 0;
  /** The reader wants no rows for now. */
  #paused = false;
  /** It has a turn to come. */
  #queued = false;
  /** The transport is not read. */
  #held = false;
  /** Bytes that may be passed on before it is another stream's turn. */
  #allowance = AT_ONCE_BYTES;
  #flushing = false;
  #pumping = false;
  #cancelling: Promise<void> | null = null;
  /** Called when the statement that is being cancelled has ended. */
  #wakeCanceller: () => void = () => undefined;
  #grace: NodeJS.Timeout | null = null;
  /** Since when the upstream owes an answer. */
  #owedSince = 0;

  constructor(transport: Transport, memory: AnswerMemory) {
    this.#transport = transport;
    this.#memory = memory;
    transport.attach(
      (chunk) => this.#receive(chunk),
      () => this.#lose(),
    );
  }

  /** True if the upstream, when it last answered, was outside any transaction. */
  get idle(): boolean {
    return this.#status === 0x49;
  }

  /** Jobs sent and not yet answered. */
  get load(): number {
    return this.#jobs.length;
  }

  /** Time in ms since the upstream last sent something to the next job. */
  get silentMs(): number {
    return this.#jobs.length === 0 ? 0 : performance.now() - this.#owedSince;
  }

  /** Sends `job` now, or with others of the same turn of the event loop. */
  submit(job: SessionJob, flush: 'now' | 'batched' = 'now'): void {
    if (this.closed) {
      job.lost();
      return;
    }
    const before = this.#out.length;
    try {
      job.send(this.#out, this.prepared);
    } catch (cause) {
      // INVARIANT: nothing of a job that could not be written whole is sent; what it prepared is not known now.
      this.#out.cutTo(before);
      this.destroy();
      job.lost(cause);
      return;
    }
    if (this.#jobs.push(job) === 1) this.#owedSince = performance.now();
    if (flush === 'now') {
      this.#flush();
    } else if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => this.#flush());
    }
  }

  /** Cancels what runs, and no longer waits for the reader. Only for a session with a single job. */
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
   * Asks more than once: a request may get lost, and Postgres passes over one that comes while it reads the next message
   * of a statement. Settles when the statement has ended and no request is on its way.
   */
  async #cancelUntilAnswered(): Promise<void> {
    const late = setTimeout(() => this.destroy(), DRAIN_MS);
    const job = this.#jobs[0];
    while (!this.closed && this.#jobs[0] === job) {
      await this.#transport.cancel().catch(() => undefined); // asked again, or given up, below
      if (this.closed || this.#jobs[0] !== job) break;
      await new Promise<void>((resolve) => {
        const again = setTimeout(resolve, CANCEL_AGAIN_MS);
        this.#wakeCanceller = () => {
          clearTimeout(again);
          resolve();
        };
      });
    }
    clearTimeout(late);
  }

  /** Null when the session can take the next job; otherwise settles when no cancel request is on its way. */
  quiet(): Promise<void> | null {
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

  /** Its turn to pass on about `bytes` of what has arrived. */
  slice(bytes: number): boolean {
    this.#allowance = bytes;
    this.#queued = this.#pump();
    if (!this.#queued && !this.#paused) this.#readOn();
    return this.#queued;
  }

  #receive(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    if (this.#paused || this.#queued) this.#hold();
    else this.#advance();
  }

  /** Passes on at once what may be; the rest waits for its turn, and the upstream with it. */
  #advance(): void {
    if (this.#pumping) return; // whoever pumps goes on
    if (this.#pump()) {
      this.#queued = true;
      this.#hold();
      turns.join(this);
    } else if (!this.#paused) {
      this.#readOn();
    }
  }

  #hold(): void {
    if (this.#held) return;
    this.#held = true;
    this.#transport.pause();
  }

  #readOn(): void {
    if (!this.#held || this.closed) return;
    this.#held = false;
    this.#transport.resume();
  }

  /** Passes on what has arrived, as far as the allowance goes; true where more waits for its turn. */
  #pump(): boolean {
    this.#pumping = true;
    try {
      while (!this.#paused && !this.closed) {
        if (this.#allowance <= 0 && this.#waits()) return true;
        if (this.#in.next(this.#allowance)) {
          this.#dispatch();
        } else if (this.#in.announced > 0) {
          this.#admit(this.#in.announced);
        } else {
          const chunk = this.#chunks.shift();
          if (chunk === undefined) break;
          this.#in.push(chunk);
        }
      }
    } catch {
      // INVARIANT: a stream we cannot follow is never read on; what is in flight ends as a lost connection.
      this.destroy();
    } finally {
      this.#pumping = false;
    }
    return false;
  }

  #waits(): boolean {
    return !this.#in.drained || this.#chunks.length > 0;
  }

  /** Decides about the large row that is announced: it is kept, passed over, or waits for memory. */
  #admit(bytes: number): void {
    const job = this.#jobs[0];
    const needed = job?.largeRow(bytes) ?? 'pass';
    this.#asking = null;
    if (needed === 'abandon' && bytes > ABANDON_BYTES && this.#transport.graceMs === 0) this.destroy();
    else if (job === undefined || typeof needed === 'string' || this.#cancelling !== null) this.#in.pass();
    else if (this.#memory.take(job.subject, needed)) this.#keep(job.subject, needed);
    else this.#waitForMemory(job, needed);
  }

  #keep(subject: FairShareParty, bytes: number): void {
    this.#lease = { subject, bytes };
    this.#in.keep();
  }

  #waitForMemory(job: SessionJob, bytes: number): void {
    const asking = {};
    this.#asking = asking;
    const decided = this.#memory.wait(job.subject, bytes).then((granted) => {
      const isWanted = this.#asking === asking && !this.closed;
      if (isWanted) this.#asking = null;
      if (isWanted && granted) this.#keep(job.subject, bytes);
      else if (granted) this.#memory.giveBack(job.subject, bytes);
      if (!isWanted || granted) return;
      this.#in.pass();
      job.starved();
    });
    this.#pauseFor(decided);
  }

  #giveBack({ subject, bytes }: RowMemory): void {
    this.#memory.giveBack(subject, bytes);
  }

  #dispatch(): void {
    const splitter = this.#in;
    const job = this.#jobs[0];
    this.#allowance -= splitter.end - splitter.start;
    if (job === undefined) {
      if (splitter.type === 0x45) this.destroy(); // an unasked error is the server's farewell
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
      if (this.#jobs.length > 0) this.#owedSince = performance.now();
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
    this.#hold();
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
    turns.leave(this);
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

/** An empty statement: whatever a late cancel request hits, it hits this. */
function fence(out: FrontendEncoder): void {
  out.query('');
}

/**
 * Runs the messages of `send` and ignores what they answer, but for the status that they leave: `I`, `T` or `E`, as in
 * `ready`. Rejects when the session is lost.
 */
export function run(session: UpstreamSession, send: (out: FrontendEncoder) => void): Promise<number> {
  return new Promise((resolve, reject) => {
    session.submit({
      send,
      subject: null,
      largeRow: () => 'pass',
      starved: () => undefined,
      rows: () => undefined,
      message: () => undefined,
      ready: resolve,
      lost: () => reject(new InternalError('the upstream session was lost')),
    });
  });
}
