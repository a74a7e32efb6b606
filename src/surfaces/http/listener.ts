import { constants } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { distrust } from '../rest/call.js';
import { HEAD_LIMIT } from '../rest/http-fault.js';

/** A certificate with its chain, and its key; PEM. */
export interface HttpTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Whether clients are asked for a certificate of an authority in `ca`, and refused without. Default: not asked. */
  readonly clients?: 'asked' | 'demanded';
  readonly ca?: string | Buffer;
  readonly crl?: string | Buffer;
}

/** What takes the connections of one port. */
export interface HttpListener {
  /** A server for each address that is listened on, with what answers the requests. */
  begin(handler: RequestListener): Server;
  /** Other certificates from the next connection on. @throws Error where they do not fit */
  readonly secure: (tls: HttpTls) => void;
}

const CHECK_MS = 1_000;
/** As long as Node keeps an idle connection for its next request, with what Fastify sets. */
const KEEP_ALIVE_MS = 72_000;

/** Over TLS where `tls` says how; plain HTTP without. Times are milliseconds. `refused` ends who must show a certificate and did not. */
export function listenerOf(
  tls: HttpTls | null,
  requestMs: number,
  connectionMs: number,
  refused: (socket: TLSSocket) => void,
): HttpListener {
  const limits = {
    maxHeaderSize: HEAD_LIMIT,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // How often Node looks for late requests; every 30 s unless told.
    connectionsCheckingInterval: Math.min(requestMs, CHECK_MS),
  };
  const secured: TlsServer[] = [];
  const open = new Set<TLSSocket>();
  let authorities = authoritiesOf(tls);
  return {
    begin: (handler) => {
      if (tls === null) return timed(createServer(limits, handler), connectionMs);
      const server = createTlsServer(
        {
          ...limits,
          ...contextOf(tls),
          handshakeTimeout: requestMs,
          requestCert: tls.clients !== undefined,
          // Where only some clients have one, the request hears what is wrong with it; else `refused` has a record made.
          rejectUnauthorized: false,
        },
        handler,
      );
      server.on('secureConnection', (socket: TLSSocket) => {
        if (tls.clients === 'demanded' && !socket.authorized) return refused(socket);
        open.add(socket);
        socket.once('close', () => open.delete(socket));
      });
      secured.push(server);
      return timed(server, connectionMs);
    },
    secure: (next) => {
      for (const server of secured) server.setSecureContext(contextOf(next));
      const others = authoritiesOf(next);
      if (others === authorities) return;
      authorities = others;
      for (const socket of open) distrust(socket);
    },
  };
}

/** What stands for the context of a connection. HTTP/2 is not spoken, and ALPN says so. */
function contextOf({ cert, key, ca, crl, clients }: HttpTls) {
  return {
    cert,
    key,
    ...(ca !== undefined && { ca }),
    ...(crl !== undefined && { crl }),
    // A session that is taken up again would bring along what was made of its certificate under other authorities.
    ...(clients !== undefined && { secureOptions: constants.SSL_OP_NO_TICKET }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  } as const;
}

/** Who vouches for clients, as text that can be compared. */
function authoritiesOf(tls: HttpTls | null): string {
  return `${tls?.ca}\n${tls?.crl}`;
}

function timed(server: Server, ms: number): Server {
  server.on('error', () => undefined); // who listens is told too; a connection that cannot be taken is nobody's
  return server.setTimeout(ms);
}
