import { quoteIdentifier } from 'osl-compiler';
import { textValuesOf } from '../../engine/protocol/backend-messages.js';
import { FrontendEncoder } from '../../engine/protocol/encoder.js';
import {
  type CatalogCaller,
  type CatalogEngine,
  type CatalogQuery,
  type CatalogRun,
  DescriptionCache,
  type StatementDescription,
} from './catalog-requests.js';
import { escapeLiteral, FIRST_CALLER, OWNER_ROLE, roleNameOf } from './engine-contract.js';
import { EngineEnded, type EngineThread, type StartedEngine } from './engine-thread.js';
import {
  type BackendReply,
  CatalogFault,
  cancelled,
  fault,
  type ReplyReport,
  readReply,
  requireNotCancelled,
} from './reply.js';
import type { SharedImage } from './worker/image-files.js';

export interface InstanceLimits {
  readonly statementMs: number;
  readonly waitMs: number;
  readonly maxBytes: number;
}

const MIB = 1_048_576;
/** Memory size at which an engine is replaced, since WebAssembly memory never shrinks. */
const RECYCLE_BYTES = 192 * MIB;
/** Number of caller changes after which an engine is replaced: each leaves a dead row, and nothing is vacuumed. */
const RECYCLE_SWITCHES = 5_000;
const MAX_DESCRIPTIONS = 500;
const MAX_WAITING = 200;

/** Starts an engine from its predecessor's image; if `image` is null, fills a new one. */
export type StartEngine = (image: SharedImage | null) => Promise<StartedEngine>;

/**
 * Engine of one access signature, running one statement at a time. A running statement can only be stopped by
 * terminating the thread, so the first engine's image is kept: a replacement boots from it in about 250 ms.
 */
export class CatalogInstance implements CatalogEngine {
  readonly #start: StartEngine;
  #starting: Promise<EngineThread> | null = null;
  #image: SharedImage | null = null;
  #closed = false;
  readonly #limits: InstanceLimits;
  readonly #queue = new StatementQueue(1, MAX_WAITING);
  readonly #running: StatementQueue;
  readonly #descriptions = new DescriptionCache(MAX_DESCRIPTIONS);
  #thread: EngineThread | null = null;
  #role = FIRST_CALLER;
  #sessionJson = '';
  #switches = 0;
  #memory = 0;
  #users = 0;
  #lastUsed = Date.now();

  constructor(start: StartEngine, running: StatementQueue, limits: InstanceLimits) {
    this.#start = start;
    this.#running = running;
    this.#limits = limits;
  }

  /** True if the engine is not in use, so that it may be shut down. */
  get idle(): boolean {
    return this.#users === 0;
  }

  /** Time when the engine was last released, in ms since the epoch. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  acquire(): this {
    this.#users += 1;
    return this;
  }

  release(): void {
    this.#users -= 1;
    this.#lastUsed = Date.now();
  }

  get memory(): number {
    return this.#memory + (this.#image?.bytes ?? 0);
  }

  get filled(): boolean {
    return this.#image !== null;
  }

  /** Resolves once the engine has started. The start continues even if `signal` aborts. Rejects if the start fails. */
  async ready(signal: AbortSignal | null): Promise<void> {
    await orCancelled(this.#engine(), signal);
  }

  cachedDescription(statement: CatalogQuery): StatementDescription | null {
    return this.#descriptions.find(statement);
  }

  async describe(
    caller: CatalogCaller,
    statement: CatalogQuery,
    signal: AbortSignal | null,
  ): Promise<StatementDescription> {
    const cached = this.cachedDescription(statement);
    if (cached !== null) return cached;
    const encoder = new FrontendEncoder();
    encoder.parse('', statement.text, statement.parameterTypes);
    encoder.describeStatement('');
    encoder.sync();
    const reply = await this.#run(caller, encoder.view(), signal);
    const description: StatementDescription = {
      parameterTypes: reply.parameterTypes,
      columns: reply.columns,
    };
    this.#descriptions.add(statement, description);
    return description;
  }

  async query(
    caller: CatalogCaller,
    { text, parameterTypes }: CatalogQuery,
    { values, formats, maxRows }: CatalogRun,
    signal: AbortSignal | null,
  ): Promise<BackendReply> {
    const encoder = new FrontendEncoder();
    encoder.parse('', text, parameterTypes);
    encoder.bind('', values, formats);
    encoder.execute(maxRows);
    encoder.sync();
    return this.#run(caller, encoder.view(), signal);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const leaveQueue = await this.#queue.enter(this.#waitLimit(null)).catch(() => null); // timed out: shut down anyway
    this.#endThread();
    leaveQueue?.();
  }

  async #run(caller: CatalogCaller, messages: Uint8Array, signal: AbortSignal | null): Promise<BackendReply> {
    const waitLimit = this.#waitLimit(signal);
    const leaveQueue = await this.#queue.enter(waitLimit);
    try {
      const releaseSlot = await this.#running.enter(waitLimit);
      try {
        return await this.#executeAs(caller, messages, signal);
      } finally {
        releaseSlot();
      }
    } finally {
      leaveQueue();
    }
  }

  #waitLimit(signal: AbortSignal | null): WaitLimit {
    return { until: Date.now() + this.#limits.waitMs, signal };
  }

  async #executeAs(
    caller: CatalogCaller,
    messages: Uint8Array,
    signal: AbortSignal | null,
  ): Promise<BackendReply> {
    requireNotCancelled(signal);
    const thread = await this.#engine();
    requireNotCancelled(signal); // the engine may have been restarted in the meantime
    try {
      await this.#switchTo(thread, caller);
      const result = await thread.exec(messages, {
        deadlineMs: this.#limits.statementMs,
        maxBytes: this.#limits.maxBytes,
        signal,
      });
      this.#memory = result.memory;
      const reply = readReply(result.bytes);
      if (!reply.idle) throw new EngineEnded('broken', 'a statement left a transaction open');
      if (result.memory > RECYCLE_BYTES || this.#switches > RECYCLE_SWITCHES) this.#endThread();
      if (reply.error !== null) throw new CatalogFault(withHint(reply.error));
      return reply;
    } catch (error) {
      if (error instanceof CatalogFault) throw error;
      this.#endThread();
      throw error instanceof EngineEnded ? this.#faultOf(error, signal) : error;
    }
  }

  async #engine(): Promise<EngineThread> {
    if (this.#thread?.alive === true) return this.#thread;
    this.#starting ??= this.#startThread().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #startThread(): Promise<EngineThread> {
    this.#endThread();
    const { thread, image } = await this.#start(this.#image);
    this.#image = image;
    this.#thread = thread;
    if (this.#closed) this.#endThread();
    return thread;
  }

  /**
   * Makes the engine run as `caller`: renames its role and applies the session's settings.
   *
   * INVARIANT: a statement runs only after the engine has confirmed that it runs as this subject, unprivileged and
   * read-only; otherwise the engine is shut down.
   */
  async #switchTo(thread: EngineThread, caller: CatalogCaller): Promise<void> {
    const role = roleNameOf(caller.user);
    const { json, inForce } = caller.session;
    if (role === this.#role && json === this.#sessionJson) return;
    const encoder = new FrontendEncoder();
    const rename = `ALTER ROLE ${quoteIdentifier(this.#role)} RENAME TO ${quoteIdentifier(role)}`;
    encoder.query(`SET SESSION AUTHORIZATION ${OWNER_ROLE}`);
    if (role !== this.#role) encoder.query(`BEGIN READ WRITE; ${rename}; COMMIT`);
    encoder.query(`SET osl.session = ${escapeLiteral(json)}`);
    for (const [name, value] of inForce)
      encoder.query(`SET ${quoteIdentifier(name)} = ${escapeLiteral(value)}`);
    encoder.query(`SET SESSION AUTHORIZATION ${quoteIdentifier(role)}`);
    for (const query of IDENTITY_QUERIES) encoder.query(query);
    const { bytes } = await thread.exec(encoder.view(), {
      deadlineMs: SWITCH_MS,
      maxBytes: MIB,
      signal: null,
    });
    const reply = readReply(bytes);
    if (!reply.idle || !confirmsCaller(reply, role)) {
      throw new EngineEnded(
        'broken',
        `it did not become its caller: ${reply.error?.message ?? 'another role'}`,
      );
    }
    this.#switches += role === this.#role ? 0 : 1;
    this.#role = role;
    this.#sessionJson = reply.error === null ? json : '';
    // SQLSTATE 22023: the database that holds the data knows this time zone, but the catalog engine does not.
    if (reply.error?.sqlstate === '22023') throw new CatalogFault(reply.error);
    if (reply.error !== null) throw new EngineEnded('broken', reply.error.message);
  }

  #endThread(): void {
    this.#thread?.end('cancelled');
    this.#thread = null;
    this.#role = FIRST_CALLER;
    this.#sessionJson = '';
    this.#switches = 0;
    this.#memory = 0;
  }

  #faultOf({ reason, message }: EngineEnded, signal: AbortSignal | null): Error {
    switch (reason) {
      case 'deadline':
        return fault(
          '57014',
          'canceling statement due to statement timeout',
          `A statement about the catalog may run ${this.#limits.statementMs / 1_000} s (OSL_CATALOG_TIMEOUT_MS).`,
        );
      case 'cancelled':
        return cancelled(signal);
      case 'overflow':
        return fault('54000', `the answer exceeds the limit of ${this.#limits.maxBytes} bytes`);
      case 'broken':
        return new Error(message);
      default: {
        const unknown: never = reason;
        return new Error(String(unknown));
      }
    }
  }
}

const SWITCH_MS = 10_000;
/** Queries that confirm the caller's role. SHOW is not a function and cannot be replaced, so it returns real values. */
const IDENTITY_QUERIES = [
  `SELECT session_user, current_user, pg_catalog.pg_has_role('${OWNER_ROLE}', 'USAGE')`,
  'SHOW is_superuser',
  'SHOW transaction_read_only',
];

function confirmsCaller(reply: BackendReply, role: string): boolean {
  const rows = reply.rows.map(textValuesOf);
  return JSON.stringify(rows) === JSON.stringify([[role, role, 'f'], ['off'], ['on']]);
}

/** Adds a hint to the engine's out-of-memory error, which reads as if the whole server were out of memory. */
function withHint(report: ReplyReport): ReplyReport {
  const hint =
    'what reads no table is answered by an engine of the gateway that has little memory: ask for a smaller value';
  return report.sqlstate === '53200' ? { ...report, hint } : report;
}

async function orCancelled<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return work;
  requireNotCancelled(signal);
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(cancelled(signal));
    signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

export interface WaitLimit {
  /** Deadline in ms since the epoch. */
  readonly until: number;
  readonly signal: AbortSignal | null;
}

export type Release = () => void;

/** FIFO semaphore for statements. */
export class StatementQueue {
  readonly #slots: number;
  readonly #maxWaiting: number;
  readonly #waiting = new Set<() => void>();
  #active = 0;

  /** `maxWaiting` limits the queue: when it is full, further statements fail with 53300. */
  constructor(slots: number, maxWaiting: number) {
    this.#slots = slots;
    this.#maxWaiting = maxWaiting;
  }

  get unused(): boolean {
    return this.#active === 0;
  }

  /** @throws CatalogFault 53300, 57014 */
  async enter(waitLimit: WaitLimit): Promise<Release> {
    if (this.#active < this.#slots) {
      this.#active += 1;
    } else {
      if (this.#waiting.size >= this.#maxWaiting)
        throw fault('53300', 'too many statements wait for this catalog');
      await this.#waitForSlot(waitLimit);
    }
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#next();
    };
  }

  #waitForSlot({ until, signal }: WaitLimit): Promise<void> {
    return new Promise((resolve, reject) => {
      const cleanUp = (): void => {
        clearTimeout(timeout);
        signal?.removeEventListener('abort', abort);
        this.#waiting.delete(proceed);
      };
      const proceed = (): void => {
        cleanUp();
        resolve();
      };
      const giveUp = (reason: Error): void => {
        cleanUp();
        reject(reason);
      };
      const abort = (): void => giveUp(cancelled(signal));
      const timeout = setTimeout(
        () => giveUp(fault('53300', 'the catalog is busy', 'try again')),
        Math.max(0, until - Date.now()),
      );
      this.#waiting.add(proceed);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** Hands a free place directly to the first in line, so that newcomers cannot overtake it. */
  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#active -= 1;
    else next();
  }
}
