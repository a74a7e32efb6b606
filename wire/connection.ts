import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CancelKeys } from './cancel-keys.js';
import { fatal, internalError, WireError, wrongPassword } from './errors.js';
import type { Handler, RefusedEvent, SessionControl, SessionHandler, WireLogin } from './handler.js';
import { type HandshakeConnection, handshake, type TlsHandshake } from './handshake.js';
import { SocketReader } from './input.js';
import { loginTurns } from './loop-turns.js';
import {
  authenticationOk,
  backendKeyData,
  parameterStatus,
  readIdentity,
  type StartupIdentity,
  type StartupMessage,
} from './messages/startup.js';
import { Frontend, passwordOnly } from './messages/types.js';
import type { WireSettings } from './options.js';
import { SocketWriter } from './output.js';
import { exchangePassword, exchangeScram, type ScramSteps } from './password-exchange.js';
import {
  checkScramFinal,
  decodePassword,
  encodePassword,
  offerScram,
  readScramFirst,
  type ScramChoice,
  serverEndPoint,
} from './scram.js';
import { WireSession } from './session.js';

export interface ConnectionHost {
  readonly settings: WireSettings;
  readonly handler: Handler;
  readonly cancelKeys: CancelKeys;
  readonly tls: TlsHandshake | null;
}

/** One connection, from handshake and authentication to the session. */
export class WireConnection implements HandshakeConnection {
  readonly input = new SocketReader(() => this.#session?.cancel());
  readonly output: SocketWriter;
  readonly remoteAddress: string;
  readonly #host: ConnectionHost;
  #socket: Socket;
  #encrypted = false;
  /** The client certificate, verified by a certificate authority. */
  #certificate: X509Certificate | null = null;
  #session: WireSession | null = null;
  #processId = 0;
  #user: string | null = null;
  /** Kind of refusal to record if the connection fails now. */
  #phase: RefusedEvent['kind'] = 'startup';
  /** True while a handshake packet is incomplete; as in Postgres, the client then gets no error message. */
  #awaitsPacket = true;
  /** Error with which the handler called `end` before the session existed; otherwise null. */
  #endReason: WireError | null = null;

  constructor(socket: Socket, host: ConnectionHost) {
    this.#socket = socket;
    this.#host = host;
    this.remoteAddress = socket.remoteAddress ?? '';
    this.output = new SocketWriter(socket, host.settings.writeStallTimeoutMs);
    // Every error is followed by 'close', which ends the session.
    socket.on('error', () => {});
  }

  get socket(): Socket {
    return this.#socket;
  }

  get encrypted(): boolean {
    return this.#encrypted;
  }

  get tls(): TlsHandshake | null {
    return this.#host.tls;
  }

  get cancelKeys(): CancelKeys {
    return this.#host.cancelKeys;
  }

  /** Serves the connection until it ends. `onAuthenticated` is called when the session begins. Never throws. */
  async run(onAuthenticated: () => void): Promise<void> {
    this.input.attach(this.#socket);
    const timer = setTimeout(() => this.#refuseOverdue(), this.#host.settings.authenticationTimeoutMs);
    try {
      await this.#serve(() => {
        clearTimeout(timer);
        onAuthenticated();
      });
      if (this.#session === null) this.#recordAbandoned();
    } catch (cause) {
      if (!(cause instanceof WireError)) this.#host.settings.onInternalError(cause);
      this.refuse(this.#phase, cause instanceof WireError ? cause : internalError('FATAL'));
    } finally {
      clearTimeout(timer);
      this.output.end(null);
      this.input.discard();
    }
  }

  /** Ends a connection that has no session yet, and records the reason. Only the first call has an effect. */
  refuse(kind: RefusedEvent['kind'], reason: WireError): void {
    if (this.output.closed) return;
    const isExplained = !this.#awaitsPacket && kind !== 'tls';
    this.output.end(isExplained ? reason : null);
    this.input.discard();
    if (kind === 'tls') this.#socket.destroy();
    this.#record(kind, isExplained ? reason.sqlstate : null, reason.message);
  }

  awaitPacket(isWaiting: boolean): void {
    this.#awaitsPacket = isWaiting;
  }

  drain(reason: WireError): void {
    if (this.#session !== null) this.#session.drain(reason);
    else this.refuse(this.#phase, reason);
  }

  kill(reason: WireError): void {
    if (this.#session !== null) this.#session.kill(reason);
    else this.refuse(this.#phase, reason);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  useTls(socket: TLSSocket): void {
    this.#phase = 'tls';
    this.#socket = socket;
    socket.on('error', () => {});
    socket.once('secure', () => {
      this.#encrypted = true;
      this.#phase = 'startup';
    });
    this.input.attach(socket);
    this.output.attach(socket);
  }

  useCertificate(certificate: X509Certificate): void {
    this.#certificate = certificate;
  }

  /** Called when the certificate authorities change: ends the connection if its client presented a certificate. */
  distrust(): void {
    if (this.#certificate !== null)
      this.drain(fatal('57P01', 'terminating connection: client certificates are of other authorities now'));
  }

  recordWrongCancelKey(): void {
    this.#record('cancel', null, 'cancel request with a wrong key');
  }

  async #serve(onAuthenticated: () => void): Promise<void> {
    const startup = await handshake(this);
    if (startup === null) return;
    await loginTurns.take();
    const identity = readIdentity(startup, this.#host.settings.startupParameters);
    this.#user = identity.user;
    this.#phase = 'password';
    if (!this.#encrypted && !isLoopback(this.remoteAddress)) {
      throw fatal('28000', 'passwords are not accepted over an unencrypted connection', {
        hint: 'Connect with sslmode=require.',
      });
    }
    if (!this.#encrypted && this.#host.tls?.clients === 'demanded')
      throw fatal('28000', 'connection requires a valid client certificate', {
        hint: 'Connect with sslmode=require and a certificate, from this machine too.',
      });
    const handler = await this.#authenticate(identity);
    if (handler === null) return;
    await loginTurns.take();
    if (this.output.closed || this.input.ended) return handler.close();
    onAuthenticated();
    await this.#runSession(handler, startup);
  }

  /** Authenticates the client; null if it has disconnected or the handler refused it. */
  async #authenticate(identity: StartupIdentity): Promise<SessionHandler | null> {
    let handler: SessionHandler | null = null;
    let refusal: WireError | null = null;
    const { user } = identity;
    const certificate = this.#certificate;
    const isCertified =
      certificate !== null && this.#host.handler.authenticateByCertificate?.(user, certificate) === true;
    const verify = async (password: string | null): Promise<boolean> => {
      try {
        await loginTurns.take();
        const login = { ...this.#login(identity), password, certificate: isCertified ? certificate : null };
        handler = await this.#host.handler.authenticate(login, this.#control());
      } catch (cause) {
        refusal = this.#refusalFor(cause);
      }
      return handler !== null;
    };
    const sendToClient = (request: Uint8Array): void => {
      this.output.messages.append(request);
      this.output.flush();
    };
    if (isCertified) {
      if (!(await verify(null))) {
        if (refusal !== null) this.output.end(refusal);
        return null;
      }
      authenticationOk(this.output.messages);
      return handler;
    }
    const verifier = this.#host.handler.scramVerifier?.(user) ?? null;
    let isWrongPassword = false;
    const rejectProof = (): Promise<void> => {
      isWrongPassword = true;
      return this.#noteWrongPassword(user);
    };
    const okMessage =
      verifier === null
        ? await exchangePassword(user, { sendToClient, verify, readPassword: () => this.#passwordMessage() })
        : await exchangeScram(user, verifier, {
            acceptProof: () => verify(null),
            rejectProof,
            ...this.#scram(sendToClient),
          });
    if (refusal !== null) this.output.end(refusal);
    if (okMessage === null) {
      if (isWrongPassword || (verifier !== null && refusal === null && !this.input.ended))
        throw wrongPassword(user);
      return null;
    }
    this.output.messages.append(okMessage);
    return handler;
  }

  async #noteWrongPassword(user: string): Promise<void> {
    try {
      await this.#host.handler.noteWrongPassword?.(user, this.remoteAddress);
    } catch (cause) {
      this.#host.settings.onInternalError(cause);
    }
    // `refuse` records nothing for a client that has disconnected, so the wrong password is recorded here.
    if (this.output.closed) this.#record('password', null, 'wrong password of a client that has gone');
  }

  /**
   * Adds channel binding to `exchangeScram`, which does not support it. The returned functions throw FATAL 08P01 and
   * 28000.
   */
  #scram(sendToClient: ScramSteps['sendToClient']): Pick<ScramSteps, 'sendToClient' | 'readPassword'> {
    const channelBinding = this.#channelBinding();
    let isOffered = false;
    let choice: ScramChoice | null = null;
    return {
      sendToClient: (request) => {
        if (isOffered) return sendToClient(request);
        isOffered = true;
        offerScram(this.output.messages, channelBinding);
        this.output.flush();
      },
      readPassword: async () => {
        const body = await this.#passwordBody();
        if (body === null) return null;
        if (choice !== null) {
          checkScramFinal(body, choice);
          return encodePassword(Frontend.password, body);
        }
        choice = readScramFirst(body, channelBinding);
        return encodePassword(Frontend.password, choice.plain);
      },
    };
  }

  /**
   * Returns the channel binding data of the server certificate in use; null if the connection or the certificate does
   * not support channel binding.
   */
  #channelBinding(): Buffer | null {
    const certificate = this.#socket instanceof TLSSocket ? this.#socket.getX509Certificate() : undefined;
    return certificate === undefined ? null : serverEndPoint(certificate);
  }

  /** Reads the next password message; null if the client has disconnected. Throws FATAL 08P01, 22021 and 28P01. */
  async #passwordMessage(): Promise<Uint8Array<ArrayBuffer> | null> {
    const body = await this.#passwordBody();
    if (body === null) return null;
    if (decodePassword(body) === '') throw fatal('28P01', 'empty password returned by client');
    return encodePassword(Frontend.password, body);
  }

  /**
   * Reads the body of the next message, which must be a PasswordMessage; null if the client has disconnected. Throws
   * FATAL 08P01.
   */
  async #passwordBody(): Promise<Buffer | null> {
    for (;;) {
      if (this.input.ended) return null;
      const frame = this.input.decoder.next(passwordOnly);
      if (frame !== null) return frame.body;
      await this.input.waitForMore();
    }
  }

  #login(identity: StartupIdentity): Omit<WireLogin, 'password' | 'certificate'> {
    return { ...identity, remoteAddress: this.remoteAddress, encrypted: this.#encrypted };
  }

  #refusalFor(cause: unknown): WireError {
    if (cause instanceof WireError) return cause.withSeverity('FATAL');
    this.#host.settings.onInternalError(cause);
    return internalError('FATAL');
  }

  #control(): SessionControl {
    const processId = (): number => this.#processId;
    return {
      get processId() {
        return processId();
      },
      deallocate: (name) => this.#session?.deallocate(name) ?? false,
      statement: (name) => this.#session?.statement(name),
      statements: () => this.#session?.statements() ?? [],
      storeStatement: (name, statement, text) => this.#session?.storeStatement(name, statement, text),
      deallocateAll: () => this.#session?.deallocateAll(),
      closePortals: () => this.#session?.closePortals(),
      portal: (name) => this.#session?.portal(name),
      cancel: () => this.#session?.cancel(),
      notify: (channel, payload) => this.#session?.notify(this.#processId, channel, payload),
      end: (reason) => {
        if (this.#session === null) this.#endReason = reason;
        else this.#session.end(reason);
      },
    };
  }

  async #runSession(handler: SessionHandler, startup: StartupMessage): Promise<void> {
    const { settings, cancelKeys } = this.#host;
    const session = new WireSession(this.input, this.output, handler, settings);
    const { processId, key } = cancelKeys.issue(startup.minor >= 2 ? 32 : 4, () => session.cancel());
    const out = this.output.messages;
    for (const [name, value] of handler.parameters) parameterStatus(out, name, value);
    backendKeyData(out, processId, key);
    this.#processId = processId;
    this.#session = session;
    if (this.#endReason !== null) session.end(this.#endReason);
    try {
      await session.run();
    } finally {
      cancelKeys.revoke(processId);
    }
  }

  #refuseOverdue(): void {
    this.refuse(
      this.#phase === 'tls' ? 'tls' : 'timeout',
      fatal('57014', 'canceling authentication due to timeout'),
    );
  }

  /** Records a client that left before authentication, unless it sent nothing (a port probe). */
  #recordAbandoned(): void {
    if (this.output.closed || !this.input.ended || this.input.received === 0) return;
    this.#record('abandoned', null, 'connection closed by the client before it was authenticated');
  }

  #record(kind: RefusedEvent['kind'], sqlstate: string | null, reason: string): void {
    const { remoteAddress } = this;
    try {
      this.#host.handler.recordRefusal({ kind, sqlstate, reason, user: this.#user, remoteAddress });
    } catch (cause) {
      this.#host.settings.onInternalError(cause);
    }
  }
}

/** True for 127.0.0.0/8 and ::1, including IPv4-mapped IPv6 addresses. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address);
}
