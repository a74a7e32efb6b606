import { connect, type Socket } from 'node:net';
import { type Conversation, cut, type Message } from '../../surfaces/pg/fuzz/conversation.js';

/** So long a silence is a hang. */
const PATIENCE_MS = 120_000;

/** A client of raw bytes that never waits for ever, and takes a broken connection as it comes. */
export class Peer {
  readonly socket: Socket;
  readonly heard: Message[] = [];
  /** Told what is said and heard, from when it is set. */
  talk: Conversation | null = null;
  #pending = Buffer.alloc(0);
  #closed = false;
  #fault: string | null = null;
  #wake: () => void = () => undefined;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk: Buffer) => {
      this.#take(Buffer.concat([this.#pending, chunk]));
      this.#wake();
    });
    for (const event of ['end', 'close'] as const) {
      this.socket.on(event, () => {
        this.#closed = true;
        this.#wake();
      });
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(bytes: Buffer): void {
    this.talk?.sends(cut(bytes, 'client'));
    this.socket.write(bytes);
  }

  /** True once `enough`, false where the connection ends before. Throws after a long silence. */
  async until(enough: (heard: readonly Message[]) => boolean): Promise<boolean> {
    for (;;) {
      if (this.#fault !== null) throw new Error(this.#fault);
      if (enough(this.heard)) return true;
      if (this.#closed) return false;
      await this.#more();
    }
  }

  /** Waits until the other side has closed too. */
  async end(): Promise<void> {
    this.socket.end();
    while (!this.#closed) await this.#more();
    this.socket.destroy();
  }

  #take(bytes: Buffer): void {
    const { messages, rest, fault } = cut(bytes, 'server');
    if (fault !== null) this.#fault = `the server sent no message: ${fault}`;
    this.#pending = Buffer.from(rest);
    for (const message of messages) {
      this.heard.push(message);
      this.talk?.hears(message);
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const last = this.heard.slice(-3).map((m) => m.type);
        reject(new Error(`hangs after ${this.heard.length} messages, the last ${last.join('')}`));
      }, PATIENCE_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
