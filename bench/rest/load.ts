import { connect, type Socket } from 'node:net';

/** Options of `node load.js '<json>'`. */
export interface LoadOptions {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Request body; `{id}` is replaced by a random key. */
  readonly body: string;
  readonly keys: number;
  readonly connections: number;
  readonly seconds: number;
}

/** Result printed by `load.js`. */
export interface LoadResult {
  readonly rps: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** A keep-alive connection with one request in progress at a time. */
class Connection {
  readonly #options: LoadOptions;
  readonly #socket: Socket;
  readonly #head: string;
  readonly #done: (us: number) => void;
  #pending = '';
  #sentAt = 0;

  constructor(options: LoadOptions, done: (us: number) => void, fail: (error: Error) => void) {
    this.#options = options;
    this.#done = done;
    const headers = Object.entries({ host: 'bench', 'content-type': 'application/json', ...options.headers });
    this.#head = `POST ${options.path} HTTP/1.1\r\n${headers.map(([k, v]) => `${k}: ${v}\r\n`).join('')}`;
    this.#socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true }, () => this.#send());
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        this.#receive(chunk.toString('latin1'));
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
    this.#socket.on('error', fail);
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(): void {
    const { body, keys } = this.#options;
    const text = body.replace('{id}', `${1 + Math.floor(Math.random() * keys)}`);
    this.#sentAt = performance.now();
    this.#socket.write(`${this.#head}content-length: ${text.length}\r\n\r\n${text}`);
  }

  #receive(chunk: string): void {
    this.#pending += chunk;
    const head = this.#pending.indexOf('\r\n\r\n');
    if (head < 0) return;
    if (!this.#pending.startsWith('HTTP/1.1 200')) throw new Error(this.#pending);
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#pending.slice(0, head))?.[1];
    if (length === undefined) throw new Error('an answer without content-length');
    if (this.#pending.length < head + 4 + Number(length)) return;
    this.#pending = '';
    this.#done(1_000 * (performance.now() - this.#sentAt));
    this.#send();
  }
}

async function run(options: LoadOptions): Promise<LoadResult> {
  const times: number[] = [];
  const connections: Connection[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      for (let i = 0; i < options.connections; i++) {
        connections.push(new Connection(options, (us) => times.push(us), reject));
      }
      setTimeout(resolve, 1_000 * options.seconds);
    });
  } finally {
    for (const connection of connections) connection.close();
  }
  times.sort((a, b) => a - b);
  const at = (q: number): number => times[Math.floor(q * times.length)] ?? Number.NaN;
  return { rps: times.length / options.seconds, p50Us: at(0.5), p99Us: at(0.99) };
}

// passed by our own bench
const options: LoadOptions = JSON.parse(process.argv[2] ?? '{}');
process.stdout.write(`${JSON.stringify(await run(options))}\n`);
