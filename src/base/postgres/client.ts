import type { Duplex } from 'node:stream';
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg';
import { MessageCheck } from './message-check.js';

/** Time in ms that a server may take to end a connection. */
const END_MS = 2_000;

/**
 * The only client of `pg` that there is. INVARIANT: whatever becomes of its connection is told to whoever waits for an
 * answer, and by `end`; it never ends the process, whether the client is idle, lent or connecting.
 */
export class PostgresClient extends Client {
  constructor(config?: string | ClientConfig) {
    super(config);
    this.on('error', ignored); // without a listener Node ends the process; `end` follows
    checkMessages(connectionOf(this));
  }

  /** A server that does not end the connection in time has it cut. */
  override end(): Promise<void>;
  override end(done: (error: Error) => void): void;
  override end(done?: (error: Error) => void): Promise<void> | undefined {
    const late = setTimeout(() => this.cut(), END_MS).unref();
    this.once('end', () => clearTimeout(late));
    if (done === undefined) return super.end();
    super.end(done);
    return undefined;
  }

  /** The socket, or the TLS over it. */
  get stream(): Duplex {
    return connectionOf(this).stream;
  }

  /** Of the session, for a cancel request. */
  get cancelKey(): { readonly processId: number; readonly secretKey: number } {
    const { processID, secretKey } = this as unknown as ClientInternals; // its types leave them out
    return { processId: processID, secretKey };
  }

  /** Its `ssl` as it was understood: false, true or options of `tls.connect`. */
  get tls(): unknown {
    return connectionOf(this).ssl;
  }

  /** Ends the connection at once. */
  cut(error?: Error): void {
    this.stream.destroy(error);
  }
}

/** Connections that are lent and taken back, with one error listener each for as long as they last. */
export function postgresPool(config: PoolConfig): Pool {
  const pool = new Pool({ ...config, Client: PostgresClient });
  pool.on('error', ignored); // a connection that breaks while it rests is none of a statement's
  return pool;
}

function ignored(): void {
  // Whoever waits for an answer is told.
}

interface ClientInternals {
  readonly processID: number;
  readonly secretKey: number;
  readonly connection: ConnectionInternals;
}

interface ConnectionInternals {
  readonly stream: Duplex;
  readonly ssl: unknown;
  /** Has the parser hear the stream. */
  attachListeners(stream: Duplex): void;
}

function connectionOf(client: Client): ConnectionInternals {
  return (client as unknown as ClientInternals).connection; // its types leave it out
}

/** Puts `MessageCheck` before the parser; what either throws is the end of the connection. */
function checkMessages(connection: ConnectionInternals): void {
  const attach = connection.attachListeners.bind(connection);
  connection.stream.on('error', ignored);
  connection.attachListeners = (stream) => {
    stream.on('error', ignored);
    const before = new Set(stream.listeners('data'));
    attach(stream);
    const check = new MessageCheck();
    for (const parse of stream.listeners('data').filter((listener) => !before.has(listener))) {
      stream.removeListener('data', parse as (chunk: Buffer) => void); // as it was added
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
