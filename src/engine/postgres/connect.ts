import { createConnection, isIP, type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { CONNECT_ONE_MS, onFirstHost, PostgresClient, requireRole } from '../../base/postgres/index.js';
import type { Transport } from '../upstream-session.js';

const CONNECT_MS = 10_000;
const CANCEL_MS = 5_000;

/** Runs a setup query on the authenticated connection, before its socket is taken over. */
export type SetupQuery = (sql: string) => Promise<Record<string, unknown>[]>;

/**
 * Connects with `pg` to the first host of `url` that accepts the connection, runs `setup` and takes over the socket.
 *
 * Rejects with the error of `pg` or `setup`, which must not be shown to users of the gateway.
 */
export function connectTransport(
  url: string,
  applicationName: string,
  setup: (query: SetupQuery) => Promise<void>,
): Promise<Transport> {
  return onFirstHost(url, (host, role, several) =>
    connectHost(host, applicationName, several ? CONNECT_ONE_MS : CONNECT_MS, async (query) => {
      if (role !== null) await requireRole(role, query);
      await setup(query);
    }),
  );
}

async function connectHost(
  url: string,
  applicationName: string,
  connectMs: number,
  setup: (query: SetupQuery) => Promise<void>,
): Promise<Transport> {
  const client = new PostgresClient({
    connectionString: url,
    // TLS reads the data of the underlying socket itself, so with TLS that must be a plain socket.
    stream: (options?: { readonly ssl?: unknown }) => (options?.ssl ? new Socket() : slabSocket()),
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: connectMs,
  });
  // pg's timeout ends with the login; a server that hangs afterwards would occupy its place in the pool forever.
  const timer = setTimeout(() => client.cut(new Error('the server fell silent')), connectMs);
  try {
    await client.connect();
    await setup(async (sql) => (await client.query<Record<string, unknown>>(sql)).rows);
  } catch (error) {
    client.cut();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return takeOver(client);
}

function takeOver(client: PostgresClient): Transport {
  const { stream, host, port, tls } = client;
  // INVARIANT: from here on pg receives no events of this socket, so nothing is parsed or sent twice.
  for (const event of ['data', 'error', 'close', 'end']) stream.removeAllListeners(event);
  stream.on('error', () => stream.destroy());
  return new SocketTransport(stream, { host, port, tls, ...client.cancelKey });
}

class SocketTransport implements Transport {
  readonly graceMs = 0;
  readonly #stream: Duplex;
  readonly #target: CancelTarget;

  constructor(stream: Duplex, target: CancelTarget) {
    this.#stream = stream;
    this.#target = target;
  }

  attach(receive: (chunk: Uint8Array) => void, closed: () => void): void {
    this.#stream.on('data', receive);
    this.#stream.on('end', () => this.#stream.destroy());
    this.#stream.once('close', closed);
    if (this.#stream.destroyed) setImmediate(closed);
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#stream.writable) return true;
    this.#stream.write(bytes);
    return this.#stream.writableLength === 0;
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  cancel(): Promise<void> {
    return sendCancel(this.#target);
  }

  destroy(): void {
    this.#stream.destroy();
  }
}

interface CancelTarget {
  readonly host: string;
  readonly port: number;
  /** The `ssl` option of pg: false, true or options of `tls.connect`. */
  readonly tls: unknown;
  readonly processId: number;
  readonly secretKey: number;
}

/** Sends a CancelRequest on a separate connection. Settles when the server closes it, after signalling the backend. */
function sendCancel(target: CancelTarget): Promise<void> {
  return new Promise((resolve, reject) => {
    const plain = target.host.startsWith('/')
      ? createConnection(`${target.host}/.s.PGSQL.${target.port}`)
      : createConnection(target.port, target.host);
    plain.setTimeout(CANCEL_MS, () =>
      plain.destroy(new Error('the cancel request was not answered in time')),
    );
    plain.on('error', reject);
    plain.once('close', () => resolve());
    if (target.tls === false || target.tls === undefined) {
      plain.once('connect', () => plain.write(cancelRequest(target)));
      plain.resume();
    } else {
      cancelOverTls(plain, target, reject);
    }
  });
}

function cancelOverTls(plain: Socket, target: CancelTarget, reject: (error: unknown) => void): void {
  plain.once('connect', () => plain.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]))); // SSLRequest
  plain.once('data', (answer) => {
    if (answer.toString('latin1') !== 'S') {
      plain.destroy(new Error('the server refused TLS for a cancel request'));
      return;
    }
    const options: ConnectionOptions =
      typeof target.tls === 'object' && target.tls !== null ? target.tls : {};
    // TLS does not allow an IP address as the server name (RFC 6066); the certificate is still checked against `host`.
    const serverName = isIP(target.host) === 0 ? { servername: target.host } : {};
    const secure = connectTls({ host: target.host, ...serverName, ...options, socket: plain });
    secure.on('error', reject);
    secure.once('secureConnect', () => secure.write(cancelRequest(target)));
    secure.resume();
  });
}

function cancelRequest(target: CancelTarget): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeInt32BE(16, 0);
  bytes.writeInt32BE(80_877_102, 4);
  bytes.writeInt32BE(target.processId, 8);
  bytes.writeInt32BE(target.secretKey, 12);
  return bytes;
}

/** Maximum size of one socket read, in bytes. */
const READ_BYTES = 65_536;
const SLAB_BYTES = 262_144;

let slab: Buffer = Buffer.alloc(0);
let slabUsed = 0;

/** Copies `bytes` into a slab that many reads share. */
function copyToSlab(bytes: Uint8Array): Buffer {
  if (slabUsed + bytes.length > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    slabUsed = 0;
  }
  const copy = slab.subarray(slabUsed, slabUsed + bytes.length);
  copy.set(bytes);
  slabUsed += bytes.length;
  return copy;
}

/**
 * Returns a socket whose reads share slabs. Node allocates 64 KiB per read and trims it; for answers in pieces of 8
 * KiB, garbage collection would cost more than the actual work.
 */
function slabSocket(): Socket {
  const onread: OnReadOpts = {
    buffer: Buffer.allocUnsafeSlow(READ_BYTES),
    callback: (length, buffer) => {
      socket.emit('data', copyToSlab(buffer.subarray(0, length)));
      return true;
    },
  };
  // The types declare `onread` only for `connect`, but Node reads it in the constructor.
  const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = { onread };
  const socket = new Socket(options);
  return socket;
}
