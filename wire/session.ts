import { setImmediate as nextTurn } from 'node:timers/promises';
import { error, fatal, internalError, WireError } from './errors.js';
import { FastSeries } from './fast-series.js';
import type {
  Awaitable,
  IdleLimit,
  NamedPortal,
  PreparedStatement,
  SeriesEnd,
  SessionControl,
  SessionHandler,
  TransactionStatus,
  WireStatement,
} from './handler.js';
import type { MessageFrame, SocketReader } from './input.js';
import { messageTurns } from './loop-turns.js';
import { decodeEmpty } from './messages/extended.js';
import { errorResponse, notificationResponse, readyForQuery } from './messages/results.js';
import { parameterStatus } from './messages/startup.js';
import { Frontend, sessionLimits } from './messages/types.js';
import type { WireSettings } from './options.js';
import type { SocketWriter } from './output.js';
import { NamedStatements, Portals } from './prepared.js';
import { ExtendedQuery, simpleQuery } from './query-protocols.js';
import { recodeMessage } from './recode.js';
import { textEncoding } from './text-encoding.js';

/**
 * - `Idle`: ReadyForQuery was sent; nothing received since.
 * - `Simple`: a Query is being answered.
 * - `Extended`: inside a series of extended messages, before its Sync.
 * - `AwaitingSync`: an extended message failed; messages up to Sync are discarded.
 * - `Ended`: nothing more is sent.
 */
type ProtocolState = 'Idle' | 'Simple' | 'Extended' | 'AwaitingSync' | 'Ended';

/** Handles the messages of an authenticated connection, one at a time. */
export class WireSession implements Omit<SessionControl, 'processId' | 'notify'> {
  readonly #input: SocketReader;
  readonly #output: SocketWriter;
  readonly #settings: WireSettings;
  readonly #statements: NamedStatements;
  readonly #portals: Portals;
  readonly #handler: SessionHandler;
  readonly #extended: ExtendedQuery;
  readonly #fast: FastSeries | null;
  #state: ProtocolState = 'Idle';
  #serving = false;
  /** If set, the session ends with this error after the running statement. */
  #ending: WireError | null = null;
  /** If set, the session ends at the next ReadyForQuery. */
  #draining: WireError | null = null;
  /** Notifications not sent yet, by channel and payload; each function writes one notification. */
  readonly #notifications = new Map<string, () => void>();
  #status: TransactionStatus = 'I';
  #idleTimer: NodeJS.Timeout | null = null;
  #idleLimit: IdleLimit | null = null;
  /** Time at which the client became idle (`performance.now`). */
  #restingSince = 0;

  constructor(input: SocketReader, output: SocketWriter, handler: SessionHandler, settings: WireSettings) {
    this.#input = input;
    this.#output = output;
    this.#handler = handler;
    this.#settings = settings;
    this.#statements = new NamedStatements(settings.maxStatements, settings.maxStatementBytes);
    this.#portals = new Portals(settings.maxPortals, settings.maxPortalBytes);
    this.#extended = new ExtendedQuery(handler, output, this.#statements, this.#portals);
    this.#fast = this.#fastSeries();
  }

  #fastSeries(): FastSeries | null {
    const handler = this.#handler;
    const { fastLane } = handler;
    if (fastLane === undefined) return null;
    const host = {
      decoder: this.#input.decoder,
      output: this.#output,
      statements: this.#statements,
      prepare: (text: string, parameterTypes: readonly number[]) => handler.prepare(text, parameterTypes),
      onAnswered: (failure: { readonly cause: unknown } | null) => this.#endFastSeries(failure),
    };
    return new FastSeries(host, (answer) => fastLane.call(handler, answer));
  }

  /** Handles messages until the session ends. Never throws. */
  async run(): Promise<void> {
    const limit = sessionLimits(this.#settings.maxMessageBytes);
    const fast = this.#fast;
    if (fast !== null) this.#input.setFastLane(() => this.#takeFast(fast));
    this.#speak(this.#handler.parameters.get(ENCODING));
    try {
      await this.#endSeries();
      let turnEnd = performance.now() + TURN_MS;
      while (this.#state !== 'Ended' && !this.#input.ended) {
        const frame = this.#input.decoder.next(limit);
        if (frame === null) await this.#wait();
        else await this.#serve(frame);
        if (this.#input.decoder.buffered === 0 || performance.now() < turnEnd) continue;
        await nextTurn();
        turnEnd = performance.now() + TURN_MS;
      }
    } catch (cause) {
      this.#failForGood(this.#presentable(cause, 'FATAL'));
    } finally {
      await this.#close();
    }
  }

  /** Called for a CancelRequest or a disconnect; has no effect unless a statement runs. */
  cancel(): void {
    if (!this.#serving) return;
    try {
      if (this.#fast?.busy === true) this.#fast.cancel();
      else this.#handler.cancel();
    } catch (cause) {
      this.#settings.onInternalError(cause);
    }
  }

  /** Ends the session with `reason` after the running series of messages. */
  drain(reason: WireError): void {
    this.#draining = reason;
    const resting = this.#state === 'Idle' || this.#state === 'AwaitingSync';
    if (resting && !this.#serving) this.#finish(reason);
  }

  end(reason: WireError): void {
    this.#ending = reason;
    if (!this.#serving) this.#finish(reason);
  }

  kill(reason: WireError): void {
    this.cancel();
    this.#finish(reason);
  }

  deallocate(name: string): boolean {
    return name !== '' && this.#statements.delete(name);
  }

  statement(name: string): WireStatement | undefined {
    return this.#statements.find(name) ?? undefined;
  }

  statements(): readonly PreparedStatement[] {
    return this.#statements.list();
  }

  keep(name: string, statement: WireStatement, text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#statements.reserve(name, bytes);
    const source = { text, preparedAt: Date.now(), fromSql: true };
    this.#statements.add(name, { statement, bytes, source });
  }

  deallocateAll(): void {
    this.#statements.clear();
  }

  closePortals(): void {
    this.#portals.dropAll();
  }

  portal(name: string): NamedPortal | undefined {
    return this.#portals.named(name);
  }

  notify(processId: number, channel: string, payload: string): void {
    const out = this.#output.messages;
    const write = (): void => notificationResponse(out, processId, channel, payload);
    this.#notifications.set(JSON.stringify([channel, payload]), write);
    if (this.#serving || this.#state !== 'Idle') return;
    this.#sendNotifications();
    this.#output.flush();
  }

  #sendNotifications(): void {
    if (this.#status !== 'I') return;
    for (const write of this.#notifications.values()) write();
    this.#notifications.clear();
  }

  /** True if the fast lane accepts the received data, or is still answering earlier data. */
  #takeFast(fast: FastSeries): boolean {
    // Received data is only offered while the session loop waits. `#serving` therefore means that a fast series is
    // running, or that the error which ended it is being reported.
    if (this.#serving) return true;
    const free = this.#state === 'Idle' && this.#ending === null && this.#draining === null;
    // The fast lane only writes UTF-8.
    if (!free || this.#output.stalled || this.#output.messages.encoding !== null) return false;
    try {
      if (!fast.take()) return false;
    } catch (cause) {
      this.#failForGood(this.#presentable(cause, 'FATAL'));
      return true;
    }
    this.#serving = true;
    return true;
  }

  #endFastSeries(failure: { readonly cause: unknown } | null): void {
    if (failure === null) {
      this.#sendReady({ status: 'I', changes: NO_CHANGES, idleLimit: this.#idleLimit });
      this.#restFast();
      return;
    }
    this.#fail(failure.cause, Frontend.query)
      .catch((cause: unknown) => this.#failForGood(this.#presentable(cause, 'FATAL')))
      .then(() => this.#restFast());
  }

  #restFast(): void {
    this.#serving = false;
    this.#restingSince = performance.now();
    if (this.#ending !== null) this.#finish(this.#ending);
    this.#input.retryFastLane();
  }

  async #wait(): Promise<void> {
    const resting = this.#shorterLimit();
    this.#restingSince = performance.now();
    if (resting !== null) this.#watchIdle(resting, resting.ms);
    await this.#input.more();
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const turn = messageTurns.take();
    if (turn !== null) await turn;
  }

  /**
   * Ends the session once it has been idle for `resting.ms`; `ms` is the time until the next check. Series answered by
   * the fast lane only update `#restingSince`.
   */
  #watchIdle(resting: IdleLimit, ms: number): void {
    this.#idleTimer = setTimeout(() => {
      const left = this.#serving ? resting.ms : this.#restingSince + resting.ms - performance.now();
      if (left > 0) this.#watchIdle(resting, left);
      else this.#finish(resting.reason);
    }, ms);
  }

  /**
   * Returns the shorter of the limits set by server and handler; null if neither sets one. The handler's limit applies
   * only between series.
   */
  #shorterLimit(): IdleLimit | null {
    const { idleTimeoutMs: ms } = this.#settings;
    const own = this.#state === 'Idle' ? this.#idleLimit : null;
    if (ms === 0 || (own !== null && own.ms < ms)) return own;
    return { ms, reason: fatal('57P05', 'terminating connection due to idle-session timeout') };
  }

  async #serve(frame: MessageFrame): Promise<void> {
    if (this.#state === 'AwaitingSync' && !endsAwaitingSync(frame.type)) return;
    this.#serving = true;
    try {
      const work = this.#dispatch(frame);
      if (work !== undefined) await work;
    } catch (cause) {
      await this.#fail(cause, frame.type);
    } finally {
      if (this.#portals.dirty) await this.#portals.sweep(this.#settings.onInternalError);
      this.#serving = false;
    }
    if (this.#ending !== null) this.#finish(this.#ending);
    const relief = this.#output.relieve();
    if (relief !== undefined) await relief;
  }

  #dispatch({ type, body }: MessageFrame): Awaitable<void> {
    if (isExtended(type)) this.#state = 'Extended';
    if (needsIdentity(type)) this.#requireAlive();
    const { encoding } = this.#output.messages;
    if (encoding === null) return this.#answer(type, body);
    const typesOf = async (name: string): Promise<readonly number[]> =>
      (await this.#statements.prepared(name)).statement?.parameterTypes ?? [];
    return recodeMessage(type, body, encoding, typesOf).then((utf8) => this.#answer(type, utf8));
  }

  #answer(type: number, body: Buffer): Awaitable<void> {
    switch (type) {
      case Frontend.query:
        this.#state = 'Simple';
        return this.#query(body);
      case Frontend.parse:
        return this.#extended.parse(body);
      case Frontend.bind:
        return this.#extended.bind(body);
      case Frontend.describe:
        return this.#extended.describe(body);
      case Frontend.execute:
        return this.#extended.execute(body);
      case Frontend.close:
        return this.#extended.close(body);
      case Frontend.flush:
        decodeEmpty(body);
        return this.#output.flush();
      case Frontend.sync:
        decodeEmpty(body);
        return this.#endSeries();
      case Frontend.terminate:
        return this.#finish(null);
      case Frontend.functionCall:
        throw error('0A000', 'function calls of the protocol are not supported');
      case Frontend.copyData:
      case Frontend.copyDone:
      case Frontend.copyFail:
        // As in Postgres, ignored outside COPY, since a client may send them before it sees that COPY failed.
        return;
      default:
        throw fatal('08P01', `invalid frontend message type ${type}`);
    }
  }

  async #query(body: Buffer): Promise<void> {
    this.#statements.delete('');
    this.#portals.drop('');
    await simpleQuery(body, this.#handler, this.#output, () => this.#requireAlive());
    const ending = this.#endSeries();
    if (ending !== undefined) await ending;
  }

  #endSeries(): Awaitable<void> {
    const end = this.#handler.endSeries();
    return end instanceof Promise ? end.then((e) => this.#sendReady(e)) : this.#sendReady(end);
  }

  #sendReady({ status, changes, idleLimit }: SeriesEnd): void {
    this.#idleLimit = idleLimit;
    if (status === 'I') this.#portals.dropAll();
    for (const [name, value] of changes) {
      parameterStatus(this.#output.messages, name, value);
      if (name === ENCODING) this.#speak(value);
    }
    this.#status = status;
    if (this.#notifications.size > 0) this.#sendNotifications();
    readyForQuery(this.#output.messages, status);
    this.#state = 'Idle';
    if (this.#draining !== null) this.#finish(this.#draining);
    // If more messages are buffered, their answers can share one write.
    else if (this.#input.decoder.buffered > 0) this.#output.flushSoon();
    else this.#output.flush();
  }

  #speak(encoding = 'UTF8'): void {
    this.#output.messages.encoding = textEncoding(encoding);
  }

  #requireAlive(): void {
    const expired = this.#ending ?? this.#handler.expiry();
    if (expired !== null) throw expired.as('FATAL');
  }

  async #fail(cause: unknown, type: number): Promise<void> {
    // Errors caused by the disconnect itself are not reported.
    if (this.#output.closed && cause instanceof WireError) return;
    const shown = this.#presentable(cause, 'ERROR');
    if (shown.severity === 'FATAL') {
      this.#failForGood(shown);
      return;
    }
    errorResponse(this.#output.messages, shown);
    this.#handler.noteFailure(shown.origin);
    if (isExtended(type)) {
      this.#state = 'AwaitingSync';
      this.#output.flushSoon();
    } else {
      await this.#endSeries();
    }
  }

  /** Ends the session with a FATAL error and, if the client was still connected, notifies the handler. */
  #failForGood(reason: WireError): void {
    const heard = !this.#output.closed;
    this.#finish(reason);
    if (!heard) return;
    try {
      this.#handler.noteFailure(reason.origin);
    } catch (cause) {
      this.#settings.onInternalError(cause);
    }
  }

  #presentable(cause: unknown, severity: 'ERROR' | 'FATAL'): WireError {
    if (cause instanceof WireError) return severity === 'FATAL' ? cause.as('FATAL') : cause;
    this.#settings.onInternalError(cause);
    return internalError(severity);
  }

  #finish(reason: WireError | null): void {
    if (this.#state === 'Ended') return;
    this.#state = 'Ended';
    this.#output.end(reason);
    this.#input.discard();
  }

  async #close(): Promise<void> {
    this.#finish(null);
    await this.#fast?.ended();
    this.#portals.dropAll();
    await this.#portals.sweep(this.#settings.onInternalError);
    try {
      await this.#handler.close();
    } catch (cause) {
      this.#settings.onInternalError(cause);
    }
  }
}

/**
 * Time in ms for which a session answers buffered messages before it yields. Refusals never await, so a session that
 * gets only refusals would otherwise block all others.
 */
const TURN_MS = 5;

/** Name of the session parameter with the client's text encoding. */
const ENCODING = 'client_encoding';

const NO_CHANGES: SeriesEnd['changes'] = Object.freeze([]);

function endsAwaitingSync(type: number): boolean {
  return type === Frontend.sync || type === Frontend.terminate;
}

function isExtended(type: number): boolean {
  switch (type) {
    case Frontend.parse:
    case Frontend.bind:
    case Frontend.describe:
    case Frontend.execute:
    case Frontend.close:
    case Frontend.flush:
      return true;
    default:
      return false;
  }
}

/** True for messages that are handled only while the caller's identity is valid. */
function needsIdentity(type: number): boolean {
  return type === Frontend.query || (isExtended(type) && type !== Frontend.flush);
}
