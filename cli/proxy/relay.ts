import type { Socket } from 'node:net';
import { messageOf } from '../../src/base/thrown.js';
import { FrameDecoder } from '../../wire/index.js';

export interface SubjectToken {
  readonly subject: string;
  readonly token: string;
}

export type TokenSource = () => Promise<SubjectToken>;

/** Calls `hear` for each chunk. An error destroys this socket, which closes the other side's socket too. */
export function onData(socket: Socket, hear: (chunk: Buffer) => void): void {
  socket.on('data', (chunk) => {
    try {
      hear(chunk);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

/** Interval in ms at which the token is renewed. Tokens are valid for at most 300 s, plus 30 s of clock skew. */
export const RENEW_MS = 120_000;

const READY = 0x5a; // Z
const ERROR = 0x45; // E
const FAILED = 0x45; // status E: a failed transaction block
/** Messages that are each answered by one ReadyForQuery: Query, Sync, FunctionCall. */
const ASKS = new Set([0x51, 0x53, 0x46]);

/**
 * Relays messages between client and server after the login, and renews the token in between.
 *
 * To renew, the relay itself sends `SET osl.token`, but only while no request is pending or partly sent. Messages that
 * arrive meanwhile wait, and the response is not relayed.
 */
export class Relay {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #tokens: TokenSource;
  readonly #said: (text: string) => void;
  readonly #fromServer = new FrameDecoder();
  readonly #fromClient = new FrameDecoder();
  readonly #timer: NodeJS.Timeout;
  /** Number of ReadyForQuery messages still to be received; the first follows AuthenticationOk. */
  #owed = 1;
  /** True while an extended-query series is sent, until its Sync. */
  #amid = false;
  #failed = false;
  #renewing = false;
  #due = false;

  constructor(
    ends: { readonly client: Socket; readonly server: Socket },
    tokens: TokenSource,
    renewMs: number,
    said: (text: string) => void,
  ) {
    this.#client = ends.client;
    this.#server = ends.server;
    this.#tokens = tokens;
    this.#said = said;
    onData(this.#client, (chunk) => this.#clientSent(chunk));
    onData(this.#server, (chunk) => this.#serverSent(chunk));
    this.#timer = setInterval(() => {
      this.#due = true;
      void this.#renew();
    }, renewMs);
    this.#server.once('close', () => clearInterval(this.#timer));
  }

  resume(client: Buffer, server: Buffer): void {
    if (server.length > 0) this.#serverSent(server);
    if (client.length > 0) this.#clientSent(client);
  }

  #clientSent(chunk: Buffer): void {
    this.#fromClient.push(chunk);
    if (!this.#renewing) this.#passToServer();
  }

  #passToServer(): void {
    const passed: Buffer[] = [];
    for (const message of messagesIn(this.#fromClient)) {
      const asks = ASKS.has(message[0] ?? 0);
      if (asks) this.#owed += 1;
      this.#amid = !asks;
      passed.push(message);
    }
    if (passed.length === 0 || this.#server.write(Buffer.concat(passed))) return;
    this.#client.pause();
    this.#server.once('drain', () => this.#client.resume());
  }

  #serverSent(chunk: Buffer): void {
    this.#fromServer.push(chunk);
    const passed: Buffer[] = [];
    for (const message of messagesIn(this.#fromServer)) {
      if (this.#renewing) {
        this.#renewalAnswered(message);
        continue;
      }
      passed.push(message);
      if (message[0] !== READY) continue;
      this.#owed -= 1;
      this.#failed = message[5] === FAILED;
    }
    if (passed.length > 0 && !this.#client.write(Buffer.concat(passed))) {
      this.#server.pause();
      this.#client.once('drain', () => this.#server.resume());
    }
    if (this.#due) void this.#renew();
  }

  #renewalAnswered(message: Buffer): void {
    if (message[0] === ERROR) this.#said('the token was not renewed: the session ends with the old one');
    if (message[0] !== READY) return;
    this.#renewing = false;
    this.#passToServer();
  }

  get #resting(): boolean {
    const nothing = this.#owed === 0 && !this.#amid && this.#fromClient.buffered === 0;
    return nothing && !this.#failed && !this.#renewing && !this.#server.destroyed;
  }

  async #renew(): Promise<void> {
    if (!this.#due || !this.#resting) return;
    this.#due = false;
    let token: string;
    try {
      token = (await this.#tokens()).token;
    } catch (error) {
      this.#said(`no new token: ${messageOf(error)}`);
      return; // the timer retries before the old token expires
    }
    if (!this.#resting) {
      this.#due = true;
      return;
    }
    this.#renewing = true;
    this.#server.write(encodeMessage('Q', `SET osl.token = '${token.replaceAll("'", "''")}'`));
  }
}

export const SSL_REQUEST = 80_877_103;
export const GSS_REQUEST = 80_877_104;
export const CANCEL_REQUEST = 80_877_102;
/** Maximum size of a Postgres message in bytes (1 GiB), because everything is relayed. */
const anyMessage = (): number => 0x4000_0000;

/** Yields the complete messages received so far. */
export function* messagesIn(decoder: FrameDecoder): Generator<Buffer> {
  for (let message = decoder.message(anyMessage); message !== null; message = decoder.message(anyMessage))
    yield message;
}

export function withUser(startup: Buffer, user: string): Buffer {
  const words = startup.toString('utf8', 8).split('\0').slice(0, -2);
  const parameters = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) parameters.set(words[i] ?? '', words[i + 1] ?? '');
  parameters.set('user', user);
  const body = Buffer.from(`${[...parameters].map(([name, value]) => `${name}\0${value}\0`).join('')}\0`);
  const packet = Buffer.alloc(8 + body.length);
  packet.writeUInt32BE(packet.length, 0);
  startup.copy(packet, 4, 4, 8);
  body.copy(packet, 8);
  return packet;
}

export function encodeMessage(type: string, body: string): Buffer {
  const text = Buffer.from(`${body}\0`);
  const message = Buffer.alloc(5 + text.length);
  message.write(type, 0, 'latin1');
  message.writeUInt32BE(4 + text.length, 1);
  text.copy(message, 5);
  return message;
}

export function fatalError(text: string, sqlstate = '08006'): Buffer {
  return encodeMessage('E', ['SFATAL', 'VFATAL', `C${sqlstate}`, `M${text}`, ''].join('\0'));
}

export function askForPassword(): Buffer {
  return Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
}
