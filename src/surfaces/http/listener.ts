import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server as TlsServer } from 'node:tls';
import { HEAD_LIMIT } from '../rest/http-fault.js';

/** A certificate with its chain, and its key; PEM. */
export interface HttpTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** What takes the connections of one port. */
export interface Listener {
  /** A server for each address that is listened on, with what answers the requests. */
  begin(handler: RequestListener): Server;
  /** Other certificates from the next connection on. @throws Error where they do not fit */
  readonly secure: (tls: HttpTls) => void;
}

const CHECK_MS = 1_000;
/** As long as Node keeps an idle connection for its next request, with what Fastify sets. */
const KEEP_ALIVE_MS = 72_000;

/** Over TLS where `tls` says how; plain HTTP without. Times are milliseconds. */
export function listenerOf(tls: HttpTls | null, requestMs: number, connectionMs: number): Listener {
  const limits = {
    maxHeaderSize: HEAD_LIMIT,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // How often Node looks for late requests; every 30 s unless told.
    connectionsCheckingInterval: Math.min(requestMs, CHECK_MS),
  };
  const secured: TlsServer[] = [];
  return {
    begin: (handler) => {
      if (tls === null) return timed(createServer(limits, handler), connectionMs);
      const server = createTlsServer({ ...limits, ...contextOf(tls), handshakeTimeout: requestMs }, handler);
      secured.push(server);
      return timed(server, connectionMs);
    },
    secure: (next) => {
      for (const server of secured) server.setSecureContext(contextOf(next));
    },
  };
}

/** What stands for the context of a connection. HTTP/2 is not spoken, and ALPN says so. */
function contextOf({ cert, key }: HttpTls) {
  return { cert, key, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;
}

function timed(server: Server, ms: number): Server {
  return server.setTimeout(ms);
}
