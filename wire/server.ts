import { constants } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { CancelKeys } from './cancel-keys.js';
import { type ConnectionHost, WireConnection } from './connection.js';
import { fatal } from './errors.js';
import type { Handler } from './handler.js';
import type { TlsHandshake } from './handshake.js';
import { type WireOptions, type WireTls, withDefaults } from './options.js';

/** Socket buffer size in bytes at which writers must wait. */
const SOCKET_BUFFER = 64 * 1024;
/** Keep-alive delay in ms, to detect clients whose host has vanished. */
const KEEP_ALIVE_MS = 60_000;
/** Additional time after the deadline of `stop` for sending errors and closing sessions. */
const GIVE_UP_MS = 1_500;

export interface WireServer {
  /** Starts listening; port 0 selects a free port. Rejects if the address is not available. */
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  /**
   * Stops accepting connections, ends idle sessions with 57P01, lets running series finish, and ends them after
   * `deadlineMs` (default 10,000). Resolves when all sockets and sessions are closed, at the latest 1.5 s after the
   * deadline.
   */
  stop(deadlineMs?: number): Promise<void>;
  /**
   * Uses other certificates for new connections. If the client authorities or CRLs change, connections whose client
   * presented a certificate end.
   *
   * @throws Error if key and certificate do not match
   */
  secure(tls: WireTls): void;
  /** Handles a cancel request forwarded by another server. Returns false if the key is wrong. */
  cancel(processId: number, key: Buffer): boolean;
  /** The number of connections whose socket or session is still open. */
  readonly connections: number;
}

export function createWireServer(options: WireOptions, handler: Handler): WireServer {
  const settings = withDefaults(options);
  let tls = tlsOf(options.tls);
  let authorities = authoritiesOf(options.tls);
  const host: ConnectionHost = {
    settings,
    handler,
    cancelKeys: new CancelKeys(options.cancels),
    get tls() {
      return tls;
    },
  };
  const connections: OpenConnections = new Map();
  const unauthenticated = new Set<WireConnection>();

  const server = createServer(
    {
      // A client that has closed its side is gone, but data already sent to it must still arrive.
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      highWaterMark: SOCKET_BUFFER,
    },
    (socket) => accept(socket, host, connections, unauthenticated),
  );

  return {
    listen: (port, address) => listen(server, port, address),
    secure: (next) => {
      const authoritiesChanged = authoritiesOf(next) !== authorities;
      tls = tlsOf(next);
      authorities = authoritiesOf(next);
      if (authoritiesChanged) for (const connection of connections.keys()) connection.distrust();
    },
    cancel: (processId, key) => host.cancelKeys.cancelOwn(processId, key),
    stop: (deadlineMs = 10_000) => stop(server, connections, deadlineMs),
    get connections() {
      return connections.size;
    },
  };
}

type OpenConnections = Map<WireConnection, Promise<void>>;

function accept(
  socket: Socket,
  host: ConnectionHost,
  all: OpenConnections,
  unauthenticated: Set<WireConnection>,
): void {
  const connection = new WireConnection(socket, host);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.once('close', () => unauthenticated.delete(connection));
  if (unauthenticated.size >= host.settings.maxUnauthenticated) makeRoom(unauthenticated);
  unauthenticated.add(connection);
  const finished = connection.run(() => unauthenticated.delete(connection));
  track(
    connection,
    finished.then(() => closed),
    all,
  );
}

/**
 * Refuses the oldest unauthenticated connection. Honest clients authenticate quickly, so this prevents idle connections
 * from blocking new ones.
 */
function makeRoom(unauthenticated: Set<WireConnection>): void {
  for (const oldest of unauthenticated) {
    unauthenticated.delete(oldest);
    oldest.refuse('capacity', fatal('53300', 'too many connections are waiting for authentication'));
    return;
  }
}

function track(connection: WireConnection, done: Promise<void>, all: OpenConnections): void {
  all.set(connection, done);
  void done.then(() => all.delete(connection));
}

function listen(server: Server, port: number, host: string): Promise<{ port: number }> {
  return new Promise((resolve, reject) => {
    server.on('error', reject); // also handles later accept errors, for which `reject` has no effect
    server.listen(port, host, () => {
      const address = server.address();
      // `address` returns a string only for pipes, and null only before `listen`.
      resolve({ port: typeof address === 'object' && address !== null ? address.port : port });
    });
  });
}

async function stop(server: Server, connections: OpenConnections, deadlineMs: number): Promise<void> {
  const reason = fatal('57P01', 'terminating connection due to administrator command');
  server.close();
  for (const connection of connections.keys()) connection.drain(reason);
  const killTimer = setTimeout(() => {
    for (const connection of connections.keys()) connection.kill(reason);
  }, deadlineMs);
  let giveUpTimer: NodeJS.Timeout | undefined;
  const gaveUp = new Promise<void>((resolve) => {
    giveUpTimer = setTimeout(() => {
      for (const connection of connections.keys()) connection.destroy();
      resolve();
    }, deadlineMs + GIVE_UP_MS);
  });
  await Promise.race([Promise.all(connections.values()), gaveUp]);
  clearTimeout(killTimer);
  clearTimeout(giveUpTimer);
}

/** Returns the client authorities and CRLs as a text, to detect changes. */
function authoritiesOf(tls: WireTls | undefined): string {
  return [tls?.ca, tls?.crl].flat().map(String).join('\n');
}

function tlsOf(tls: WireTls | undefined): TlsHandshake | null {
  if (tls === undefined) return null;
  const { direct = true, clients = null, ...context } = tls;
  // TLS session resumption would reuse a verification by the previous authorities.
  const noResumption =
    clients === null ? {} : { secureOptions: constants.SSL_OP_NO_TICKET, sessionIdContext: 'osl' };
  return {
    context: createSecureContext({ minVersion: 'TLSv1.2', ...noResumption, ...context }),
    direct,
    clients,
  };
}
