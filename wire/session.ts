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
  #busy = false;
  /** If set, the session ends with this error after the running statement. */
  #endReason: WireError | null = null;
  /** If set, the session ends at the next ReadyForQuery. */
  #drainReason: WireError | null = null;
  /** Notifications not sent yet, by channel and payload; each function writes one notification. */
  readonly #notifications = new Map<string, () => void>();
  #status: TransactionStatus = 'I';
  #idleTimer: NodeJS.Timeout | null = null;
  #idleLimit: IdleLimit | null = null;
  /** Time at which the client became idle (`performance.now`). */
  #idleSince = 0;

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
    this.#setEncoding(this.#handler.parameters.get(ENCODING));
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
      this.#failFatally(this.#toWireError(cause, 'FATAL'));
    } finally {
      await this.#close();
    }
  }

  /** Called for a CancelRequest or a disconnect; has no effect unless a statement runs. */
  cancel(): void {
    if (!this.#busy) return;
    try {
      if (this.#fast?.busy === true) this.#fast.cancel();
      else this.#handler.cancel();
    } catch (cause) {
      this.#settings.onInternalError(cause);
    }
  }

  /** Ends the session with `reason` once the messages up to the next Sync have been handled. */
  drain(reason: WireError): void {
    this.#drainReason = reason;
    const isIdle = this.#state === 'Idle' || this.#state === 'AwaitingSync';
    if (isIdle && !this.#busy) this.#finish(reason);
  }

  end(reason: WireError): void {
    this.#endReason = reason;
    if (!this.#busy) this.#finish(reason);
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

  storeStatement(name: string, statement: WireStatement, text: string): void {
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
    if (this.#busy || this.#state !== 'Idle') return;
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
    // Received data is only offered while the session loop waits. `#busy` therefore means that a fast series is
    // running, or that the error which ended it is being reported.
    if (this.#busy) return true;
    const isIdle = this.#state === 'Idle' && this.#endReason === null && this.#drainReason === null;
    // The fast lane only writes UTF-8.
    if (!isIdle || this.#output.stalled || this.#output.messages.encoding !== null) return false;
    try {
      if (!fast.take()) return false;
    } catch (cause) {
      this.#failFatally(this.#toWireError(cause, 'FATAL'));
      return true;
    }
    this.#busy = true;
    return true;
  }

  #endFastSeries(failure: { readonly cause: unknown } | null): void {
    if (failure === null) {
      this.#sendReady({ status: 'I', changes: NO_CHANGES, idleLimit: this.#idleLimit });
      this.#becomeIdle();
      return;
    }
    this.#fail(failure.cause, Frontend.query)
      .catch((cause: unknown) => this.#failFatally(this.#toWireError(cause, 'FATAL')))
      .then(() => this.#becomeIdle());
  }

  #becomeIdle(): void {
    this.#busy = false;
    this.#idleSince = performance.now();
    if (this.#endReason !== null) this.#finish(this.#endReason);
    this.#input.retryFastLane();
  }

  async #wait(): Promise<void> {
    const limit = this.#shorterLimit();
    this.#idleSince = performance.now();
    if (limit !== null) this.#watchIdle(limit, limit.ms);
    await this.#input.waitForMore();
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    const turn = messageTurns.take();
    if (turn !== null) await turn;
  }

  /**
   * Ends the session once it has been idle for `limit.ms`; `ms` is the time until the next check. Series answered by
   * the fast lane only update `#idleSince`.
   */
  #watchIdle(limit: IdleLimit, ms: number): void {
    this.#idleTimer = setTimeout(() => {
      const remainingMs = this.#busy ? limit.ms : this.#idleSince + limit.ms - performance.now();
      if (remainingMs > 0) this.#watchIdle(limit, remainingMs);
      else this.#finish(limit.reason);
    }, ms);
  }

  /**
   * Returns the shorter of the limits set by server and handler; null if neither sets one. The handler's limit applies
   * only between series.
   */
  #shorterLimit(): IdleLimit | null {
    const { idleTimeoutMs: ms } = this.#settings;
    const handlerLimit = this.#state === 'Idle' ? this.#idleLimit : null;
    if (ms === 0 || (handlerLimit !== null && handlerLimit.ms < ms)) return handlerLimit;
    return { ms, reason: fatal('57P05', 'terminating connection due to idle-session timeout') };
  }

  async #serve(frame: MessageFrame): Promise<void> {
    if (this.#state === 'AwaitingSync' && !endsAwaitingSync(frame.type)) return;
    this.#busy = true;
    try {
      const work = this.#dispatch(frame);
      if (work !== undefined) await work;
    } catch (cause) {
      await this.#fail(cause, frame.type);
    } finally {
      if (this.#portals.needsSweep) await this.#portals.sweep(this.#settings.onInternalError);
      this.#busy = false;
    }
    if (this.#endReason !== null) this.#finish(this.#endReason);
    const drained = this.#output.flushIfFull();
    if (drained !== undefined) await drained;
  }

  #dispatch({ type, body }: MessageFrame): Awaitable<void> {
    if (isExtended(type)) this.#state = 'Extended';
    if (needsIdentity(type)) this.#requireNotEnded();
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
    await simpleQuery(body, this.#handler, this.#output, () => this.#requireNotEnded());
    const sent = this.#endSeries();
    if (sent !== undefined) await sent;
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
      if (name === ENCODING) this.#setEncoding(value);
    }
    this.#status = status;
    if (this.#notifications.size > 0) this.#sendNotifications();
    readyForQuery(this.#output.messages, status);
    this.#state = 'Idle';
    if (this.#drainReason !== null) this.#finish(this.#drainReason);
    // If more messages are buffered, their answers can share one write.
    else if (this.#input.decoder.buffered > 0) this.#output.flushSoon();
    else this.#output.flush();
  }

  #setEncoding(encoding = 'UTF8'): void {
    this.#output.messages.encoding = textEncoding(encoding);
  }

  #requireNotEnded(): void {
    const expired = this.#endReason ?? this.#handler.expiry();
    if (expired !== null) throw expired.withSeverity('FATAL');
  }

  async #fail(cause: unknown, type: number): Promise<void> {
    // Errors caused by the disconnect itself are not reported.
    if (this.#output.closed && cause instanceof WireError) return;
    const wireError = this.#toWireError(cause, 'ERROR');
    if (wireError.severity === 'FATAL') {
      this.#failFatally(wireError);
      return;
    }
    errorResponse(this.#output.messages, wireError);
    this.#handler.noteFailure(wireError.origin);
    if (isExtended(type)) {
      this.#state = 'AwaitingSync';
      this.#output.flushSoon();
    } else {
      await this.#endSeries();
    }
  }

  /** Ends the session with a FATAL error and, if the client was still connected, notifies the handler. */
  #failFatally(reason: WireError): void {
    const wasConnected = !this.#output.closed;
    this.#finish(reason);
    if (!wasConnected) return;
    try {
      this.#handler.noteFailure(reason.origin);
    } catch (cause) {
      this.#settings.onInternalError(cause);
    }
  }

  #toWireError(cause: unknown, severity: 'ERROR' | 'FATAL'): WireError {
    if (cause instanceof WireError) return severity === 'FATAL' ? cause.withSeverity('FATAL') : cause;
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
