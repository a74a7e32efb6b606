import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { password, readable, startup } from './bytes.js';
import { ScramClient } from './scram.js';

/** A raw client: bytes out, readable messages in. */
export class Client {
  readonly socket: Socket;
  /** Raw bytes not yet consumed. */
  #bytes = Buffer.alloc(0);
  #closed = false;
  /** The body of the last authentication message. */
  #authentication = Buffer.alloc(0);
  #wake: () => void = () => {};
  /** pid and key of BackendKeyData. */
  cancelKey: { pid: number; key: Buffer } | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#wake();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
    socket.on('end', () => {
      this.#closed = true;
      this.#wake();
    });
  }

  static async open(port: number, host = '127.0.0.1'): Promise<Client> {
    const socket = connect({ port, host, noDelay: true });
    const client = new Client(socket);
    await once(socket, 'connect');
    return client;
  }

  /** Connected and authenticated, with the greeting consumed. */
  static ready(port: number, parameters: Record<string, string> = {}, code?: number): Promise<Client> {
    return Client.#admitted(port, startup({ user: 'ada', ...parameters }, code), 'right');
  }

  /** The same at a gateway, by token. */
  static login(port: number, user: string, token: string): Promise<Client> {
    return Client.#admitted(port, startup({ user, database: 'osl' }), token);
  }

  /** The same at a Postgres, which may ask for a password by SCRAM. */
  static async postgres(port: number, user: string, database: string, secret: string): Promise<Client> {
    const client = await Client.open(port);
    client.send(startup({ user, database }));
    const asked = await client.until('R');
    if (asked.at(-1) === 'R 10') {
      const scram = new ScramClient(secret, 'fyko+d2lbbFgONRv9qkx');
      client.send(scram.first());
      await client.until('R 11');
      client.send(scram.final(client.#authentication));
    }
    await client.until('Z');
    return client;
  }

  static async #admitted(port: number, opening: Buffer, secret: string): Promise<Client> {
    const client = await Client.open(port);
    client.send(opening);
    await client.until('R 3');
    client.send(password(secret));
    await client.until('Z');
    return client;
  }

  send(...parts: Buffer[]): this {
    this.socket.write(Buffer.concat(parts));
    return this;
  }

  /** One untyped byte: the answer to an encryption request. */
  async byte(): Promise<string> {
    while (this.#bytes.length === 0 && !this.#closed) await this.#more();
    const byte = this.#bytes.subarray(0, 1).toString();
    this.#bytes = this.#bytes.subarray(1);
    return byte;
  }

  /** All messages up to one that begins with `prefix`; ends with `closed` if the server closes first. */
  async until(prefix: string): Promise<string[]> {
    const lines: string[] = [];
    for (;;) {
      const line = await this.#line();
      lines.push(line);
      if (line.startsWith(prefix) || line === 'closed') return lines;
    }
  }

  /** All messages up to and with `closed`. */
  rest(): Promise<string[]> {
    return this.until('closed');
  }

  /** What comes for `messages`, up to ReadyForQuery. */
  ask(...messages: Buffer[]): Promise<string[]> {
    this.send(...messages);
    return this.until('Z');
  }

  end(): void {
    this.socket.destroy();
  }

  async #line(): Promise<string> {
    for (;;) {
      const b = this.#bytes;
      if (b.length >= 5) {
        const length = b.readUInt32BE(1);
        if (b.length >= length + 1) {
          const type = b.subarray(0, 1).toString();
          const body = b.subarray(5, length + 1);
          this.#bytes = b.subarray(length + 1);
          if (type === 'R') this.#authentication = body;
          if (type === 'K') this.cancelKey = { pid: body.readInt32BE(0), key: body.subarray(4) };
          return readable(type, body);
        }
      }
      // A turn of the event loop, so that a test that asks on and on can still time out.
      if (this.#closed) await new Promise((resolve) => setImmediate(resolve));
      if (this.#closed) return b.length === 0 ? 'closed' : `closed after a torn message of ${b.length} bytes`;
      await this.#more();
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
