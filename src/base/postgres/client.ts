import type { Duplex } from 'node:stream';
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg';
import { CONNECT_ONE_MS, onFirstHost, requireRole } from './hosts.js';

const HEADER = 5;
const MAX_MESSAGE = 0x4000_0000;

/**
 * Splits the server's bytes into whole messages and checks their lengths and strings. The parser of `pg` does not check
 * them: a server that is not Postgres could make it throw an uncaught exception, or read forever.
 */
class MessageCheck {
  #chunks: Buffer[] = [];
  #length = 0;
  /** Number of buffered bytes at which the next message, or at least its header, is complete. */
  #needed = HEADER;

  /** Returns the messages completed so far; empty if none is complete. @throws Error if a message is malformed */
  take(chunk: Buffer): Buffer {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return EMPTY;
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    let at = 0;
    for (;;) {
      const end = messageEnd(bytes, at);
      if (end === null || end > bytes.length) {
        this.#needed = (end ?? at + HEADER) - at;
        break;
      }
      checkStrings(bytes[at] ?? 0, bytes.subarray(at + HEADER, end));
      at = end;
    }
    const rest = bytes.subarray(at);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return bytes.subarray(0, at);
  }
}

const EMPTY = Buffer.alloc(0);

/** Returns the end offset of the message that starts at `at`; null if its header is incomplete. */
function messageEnd(bytes: Buffer, at: number): number | null {
  if (at + HEADER > bytes.length) return null;
  const length = bytes.readUInt32BE(at + 1);
  if (length < 4 || length > MAX_MESSAGE) throw noMessage(`of length ${length}`);
  return at + 1 + length;
}

/** Checks the strings of a message. @throws Error if a string does not end within `body` */
function checkStrings(type: number, body: Buffer): void {
  switch (String.fromCharCode(type)) {
    case 'E':
    case 'N':
      checkFields(body);
      break;
    case 'R':
      if (body.length >= 4 && body.readInt32BE(0) === SASL) checkList(body, 4);
      break;
    case 'S':
      stringsEnd(body, 0, 2);
      break;
    case 'C':
      stringsEnd(body, 0, 1);
      break;
    case 'A':
      stringsEnd(body, 4, 2);
      break;
    case 'T':
      checkColumns(body);
      break;
  }
}

const SASL = 10;
const COLUMN_BYTES = 18;

function stringsEnd(body: Buffer, at: number, count: number): number {
  let end = at;
  for (let i = 0; i < count; i += 1) {
    const zero = body.indexOf(0, end);
    if (zero < 0) throw noMessage('with a string that does not end');
    end = zero + 1;
  }
  return end;
}

function checkFields(body: Buffer): void {
  let at = 0;
  while (body[at] !== 0) {
    if (at >= body.length) throw noMessage('with a report that does not end');
    at = stringsEnd(body, at + 1, 1);
  }
}

function checkList(body: Buffer, from: number): void {
  for (let at = from, end = 0; ; at = end) {
    end = stringsEnd(body, at, 1);
    if (end === at + 1) return;
  }
}

function checkColumns(body: Buffer): void {
  const count = body.length >= 2 ? body.readUInt16BE(0) : 0;
  let at = 2;
  for (let i = 0; i < count; i += 1) at = stringsEnd(body, at, 1) + COLUMN_BYTES;
}

function noMessage(what: string): Error {
  return new Error(`what answers is no Postgres: it sent a message ${what}`);
}

const END_MS = 2_000;

/**
 * The only `pg` client in use. INVARIANT: connection errors reject pending queries and emit `end`; they never end the
 * process, whether the client is idle, checked out or connecting.
 */
export class PostgresClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config);
    this.on('error', ignored); // without a listener Node would end the process
    checkMessages(connectionOf(this));
  }

  /** Closes the connection; destroys it if the server does not close it in time. */
  override end(): Promise<void>;
  override end(done: (error: Error) => void): void;
  override end(done?: (error: Error) => void): Promise<void> | undefined {
    const late = setTimeout(() => this.cut(), END_MS).unref();
    this.once('end', () => clearTimeout(late));
    if (done === undefined) return super.end();
    super.end(done);
    return undefined;
  }

  get stream(): Duplex {
    return connectionOf(this).stream;
  }

  /** The session's key for a CancelRequest. */
  get cancelKey(): { readonly processId: number; readonly secretKey: number } {
    const { processID, secretKey } = this as unknown as ClientInternals; // missing from the types of `pg`
    return { processId: processID, secretKey };
  }

  /** `ssl` as parsed by `pg`: false, true or options of `tls.connect`. */
  get tls(): unknown {
    return connectionOf(this).ssl;
  }

  cut(error?: Error): void {
    this.stream.destroy(error);
  }
}

/** Creates a connection pool whose idle connections may break without an unhandled error. */
export function postgresPool(config: PoolConfig): Pool {
  const pool = new Pool({ ...config, Client: PostgresClient });
  pool.on('error', ignored); // an idle connection broke, which affects no statement
  return pool;
}

function ignored(): void {
  // Pending queries are rejected by `pg`.
}

interface ClientInternals {
  readonly processID: number;
  readonly secretKey: number;
  readonly connection: ConnectionInternals;
}

interface ConnectionInternals {
  readonly stream: Duplex;
  readonly ssl: unknown;
  attachListeners(stream: Duplex): void;
}

function connectionOf(client: Client): ConnectionInternals {
  return (client as unknown as ClientInternals).connection; // missing from the types of `pg`
}

/** Inserts `MessageCheck` before the parser; an error in either destroys the connection. */
function checkMessages(connection: ConnectionInternals): void {
  const attach = connection.attachListeners.bind(connection);
  connection.stream.on('error', ignored);
  connection.attachListeners = (stream) => {
    stream.on('error', ignored);
    const before = new Set(stream.listeners('data'));
    attach(stream);
    const check = new MessageCheck();
    for (const parse of stream.listeners('data').filter((listener) => !before.has(listener))) {
      stream.removeListener('data', parse as (chunk: Buffer) => void);
      stream.on('data', (chunk: Buffer) => {
        try {
          const whole = check.take(chunk);
          if (whole.length > 0) parse.call(stream, whole);
        } catch (error) {
          stream.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
    }
  };
}

export type ResultRow = Readonly<Record<string, unknown>>;

export interface SessionOptions extends ClientConfig {
  /** Timeout in ms for connecting and for each statement, after which the connection is dropped. */
  readonly silenceMs: number;
}

/** A single, dedicated connection. */
export interface PostgresSession {
  /** Runs statements one after another; rejects once the connection is lost. */
  query(text: string, values?: readonly unknown[]): Promise<readonly ResultRow[]>;
  readonly open: boolean;
  /** Resolves with the reason once the connection is lost or closed. Never rejects. */
  readonly lost: Promise<Error>;
  /** Subscribes to notifications; a missing payload is an empty string. */
  onNotification(heard: (payload: string) => void): void;
  /** Destroys the connection; pending statements are rejected. */
  cut(): void;
  end(): Promise<void>;
}

/** Opens a session. @throws the error of `pg` if the server does not answer or refuses the login */
export async function openSession({ silenceMs, ...config }: SessionOptions): Promise<PostgresSession> {
  const client = new PostgresClient({ keepAlive: true, connectionTimeoutMillis: silenceMs, ...config });
  let open = true;
  const lost = new Promise<Error>((resolve) => {
    const over = (why: Error): void => {
      open = false;
      resolve(why);
    };
    client.on('error', over);
    client.on('end', () => over(new Error('the connection was closed')));
  });
  await client.connect();
  let last: Promise<unknown> = Promise.resolve();
  const run = async (text: string, values: readonly unknown[]): Promise<readonly ResultRow[]> => {
    if (!open) throw new Error('the connection to the database is lost');
    const late = setTimeout(() => client.cut(new Error(`no answer in ${silenceMs} ms`)), silenceMs);
    try {
      return (await client.query<Record<string, unknown>>(text, [...values])).rows;
    } finally {
      clearTimeout(late);
    }
  };
  return {
    query(text, values = []) {
      const answer = last.then(() => run(text, values));
      last = answer.catch(() => undefined);
      return answer;
    },
    get open() {
      return open;
    },
    lost,
    onNotification: (heard) => void client.on('notification', ({ payload }) => heard(payload ?? '')),
    cut() {
      open = false;
      client.cut();
    },
    async end() {
      open = false;
      await client.end().catch(() => undefined);
    },
  };
}

/**
 * Opens a session on the first suitable server of a URL that may name several.
 *
 * @throws the error of the last server tried
 */
export function openSessionOnFirst(
  url: string,
  options: Omit<SessionOptions, 'connectionString'>,
): Promise<PostgresSession> {
  return onFirstHost(url, async (host, role, several) => {
    const limit = several ? { connectionTimeoutMillis: CONNECT_ONE_MS } : {};
    const session = await openSession({ ...options, ...limit, connectionString: host });
    try {
      if (role !== null) await requireRole(role, (text) => session.query(text));
      return session;
    } catch (error) {
      session.cut();
      throw error;
    }
  });
}
