import type { Duplex } from 'node:stream';
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg';
import { MessageCheck } from './message-check.js';

const END_MS = 2_000;

/**
 * The only `pg` client in use. INVARIANT: connection errors reject pending queries and emit `end`; they never end the
 * process, whether the client is idle, lent or connecting.
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

  /** Key of the session, for a CancelRequest. */
  get cancelKey(): { readonly processId: number; readonly secretKey: number } {
    const { processID, secretKey } = this as unknown as ClientInternals; // not in its types
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

/** Connection pool whose idle connections may break without an unhandled error. */
export function postgresPool(config: PoolConfig): Pool {
  const pool = new Pool({ ...config, Client: PostgresClient });
  pool.on('error', ignored); // an idle connection broke: no statement is affected
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
  return (client as unknown as ClientInternals).connection; // not in its types
}

/** Puts `MessageCheck` before the parser; an error of either destroys the connection. */
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
