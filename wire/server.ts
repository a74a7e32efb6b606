import { constants } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { CancelKeys } from './cancel-keys.js';
import { Connection, type Host } from './connection.js';
import { fatal } from './errors.js';
import type { Handler } from './handler.js';
import type { TlsHandshake } from './handshake.js';
import { settingsOf, type WireOptions, type WireTls } from './options.js';

/** Bytes that may wait in a socket before its writer has to. */
const SOCKET_BUFFER = 64 * 1024;
/** So that a client whose host vanished does not hold a session for ever. */
const KEEP_ALIVE_MS = 60_000;
/** After the deadline of `stop`, for last words to be read and sessions to close. */
const GIVE_UP_MS = 1_500;

export interface WireServer {
  /** Port 0 takes a free one. Rejects if the address cannot be had. */
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  /**
   * Accepts nothing more, ends idle sessions with 57P01, lets running ones end, and ends what still runs after
   * `deadlineMs` (default 10,000). Resolves when every socket and every session is closed, or at the latest
   * 1.5 s after the deadline.
   */
  stop(deadlineMs?: number): Promise<void>;
  /** Takes other certificates, from the next connection on; where other authorities vouch for clients, ends the sessions of those that came by a certificate. @throws Error where they do not fit together */
  secure(tls: WireTls): void;
  /** A cancel request that another server of the same port was sent. False if the key is not a session's of this one. */
  cancel(processId: number, key: Buffer): boolean;
  /** Connections, authenticated or not, whose socket or session is not closed yet. */
  readonly connections: number;
}

export function createWireServer(options: WireOptions, handler: Handler): WireServer {
  const settings = settingsOf(options);
  let tls = tlsOf(options.tls);
  let authorities = authoritiesOf(options.tls);
  const host: Host = {
    settings,
    handler,
    cancelKeys: new CancelKeys(options.cancels),
    get tls() {
      return tls;
    },
  };
  const connections: Connections = new Map();
  const unauthenticated = new Set<Connection>();

  const server = createServer(
    {
      // A client that has closed its side is gone; until it is told so, what it was sent must still arrive.
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
      const others = authoritiesOf(next) !== authorities;
      tls = tlsOf(next);
      authorities = authoritiesOf(next);
      if (others) for (const connection of connections.keys()) connection.distrust();
    },
    cancel: (processId, key) => host.cancelKeys.cancelOwn(processId, key),
    stop: (deadlineMs = 10_000) => stop(server, connections, deadlineMs),
    get connections() {
      return connections.size;
    },
  };
}

/** Each connection with the promise that its socket is closed and its session too. */
type Connections = Map<Connection, Promise<void>>;

function accept(socket: Socket, host: Host, all: Connections, unauthenticated: Set<Connection>): void {
  const connection = new Connection(socket, host);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.once('close', () => unauthenticated.delete(connection));
  if (unauthenticated.size >= host.settings.maxUnauthenticated) makeRoom(unauthenticated);
  unauthenticated.add(connection);
  const served = connection.run(() => unauthenticated.delete(connection));
  remember(
    connection,
    served.then(() => closed),
    all,
  );
}

/**
 * Refuses the connection that has waited for longest: honest ones authenticate in a moment, so that those which only hold
 * their place cannot keep everybody else out.
 */
function makeRoom(unauthenticated: Set<Connection>): void {
  for (const oldest of unauthenticated) {
    unauthenticated.delete(oldest);
    oldest.refuse('capacity', fatal('53300', 'too many connections are waiting for authentication'));
    return;
  }
}

function remember(connection: Connection, done: Promise<void>, all: Connections): void {
  all.set(connection, done);
  void done.then(() => all.delete(connection));
}

function listen(server: Server, port: number, host: string): Promise<{ port: number }> {
  return new Promise((resolve, reject) => {
    server.on('error', reject); // also of a connection that cannot be taken, later: nobody is to be told then
    server.listen(port, host, () => {
      const address = server.address();
      // A string only for a pipe, null only before `listen`.
      resolve({ port: typeof address === 'object' && address !== null ? address.port : port });
    });
  });
}

async function stop(server: Server, connections: Connections, deadlineMs: number): Promise<void> {
  const reason = fatal('57P01', 'terminating connection due to administrator command');
  server.close();
  for (const connection of connections.keys()) connection.drain(reason);
  const deadline = setTimeout(() => {
    for (const connection of connections.keys()) connection.kill(reason);
  }, deadlineMs);
  let last: NodeJS.Timeout | undefined;
  const givenUp = new Promise<void>((resolve) => {
    last = setTimeout(() => {
      for (const connection of connections.keys()) connection.destroy();
      resolve();
    }, deadlineMs + GIVE_UP_MS);
  });
  await Promise.race([Promise.all(connections.values()), givenUp]);
  clearTimeout(deadline);
  clearTimeout(last);
}

/** Authorities for client certificates, as text that can be compared. */
function authoritiesOf(tls: WireTls | undefined): string {
  return [tls?.ca, tls?.crl].flat().map(String).join('\n');
}

function tlsOf(tls: WireTls | undefined): TlsHandshake | null {
  if (tls === undefined) return null;
  const { direct = true, clients = null, ...context } = tls;
  // A session that is taken up again would bring along what was made of its certificate under other authorities.
  const whole =
    clients === null ? {} : { secureOptions: constants.SSL_OP_NO_TICKET, sessionIdContext: 'osl' };
  return {
    context: createSecureContext({ minVersion: 'TLSv1.2', ...whole, ...context }),
    direct,
    clients,
  };
}
