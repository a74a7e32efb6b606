import type { Socket } from 'node:net';
import { FrameDecoder } from '../../../../wire/index.js';
import { messageOf } from '../../../base/thrown.js';
import { anyMessage, typed } from './messages.js';

/** A token and the subject that it is of. */
export interface Login {
  readonly subject: string;
  readonly token: string;
}

/** Gets a fresh token; called for each connection and each renewal. */
export type TokenSource = () => Promise<Login>;

/** Passes on what `socket` brings. What cannot be read ends the connection, and with it the other side's. */
export function hearData(socket: Socket, hear: (chunk: Buffer) => void): void {
  socket.on('data', (chunk) => {
    try {
      hear(chunk);
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

/** A token is good for 300 s at most, and 30 s of skew; it is renewed well before. */
export const RENEW_MS = 120_000;

const READY = 0x5a; // Z
const ERROR = 0x45; // E
const FAILED = 0x45; // status E: a transaction block that takes no statement
/** What the server answers with one ReadyForQuery each: Query, Sync, FunctionCall. */
const ASKS = new Set([0x51, 0x53, 0x46]);

/**
 * Passes messages between a client and the server once the client is logged in, and renews the token in between.
 *
 * A renewal is a `SET osl.token` of our own. It is sent only while everything that the client asked is answered and
 * nothing of it is half sent; what comes meanwhile waits, and the answer to our statement is not passed on.
 */
export class Relay {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #tokens: TokenSource;
  readonly #said: (text: string) => void;
  readonly #fromServer = new FrameDecoder();
  readonly #fromClient = new FrameDecoder();
  readonly #timer: NodeJS.Timeout;
  /** ReadyForQuery messages that the server owes; the first comes after AuthenticationOk. */
  #owed = 1;
  /** The client is amid a series that no Sync has ended yet. */
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
    hearData(this.#client, (chunk) => this.#clientSent(chunk));
    hearData(this.#server, (chunk) => this.#serverSent(chunk));
    this.#timer = setInterval(() => {
      this.#due = true;
      void this.#renew();
    }, renewMs);
    this.#server.once('close', () => clearInterval(this.#timer));
  }

  /** Bytes that came before the relay was there. */
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
    for (
      let message = this.#fromClient.message(anyMessage);
      message !== null;
      message = this.#fromClient.message(anyMessage)
    ) {
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
    for (
      let message = this.#fromServer.message(anyMessage);
      message !== null;
      message = this.#fromServer.message(anyMessage)
    ) {
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
      return; // the timer comes round again before the old one is over
    }
    if (!this.#resting) {
      this.#due = true;
      return;
    }
    this.#renewing = true;
    this.#server.write(typed('Q', `SET osl.token = '${token.replaceAll("'", "''")}'`));
  }
}
