import { constants, randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { refuseCall, refusedConnection } from '../../ask/request/calls-without-data.js';
import { invalidateCertificate } from '../rest/call.js';
import { HEAD_LIMIT, rawProblem, toHttpError } from '../rest/problem.js';

export interface HttpTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** `demanded`: clients must present a certificate issued by an authority in `ca`; `asked`: they may. */
  readonly clients?: 'asked' | 'demanded';
  readonly ca?: string | Buffer;
  readonly crl?: string | Buffer;
}

export interface HttpListener {
  /** Creates a server for one address; called once per address. */
  serverFor(handler: RequestListener): Server;
  /**
   * Replaces the certificate and client authorities for new connections. If the authorities have changed, client
   * certificates of open connections are no longer accepted. @throws Error if the certificate is invalid
   */
  readonly secure: (tls: HttpTls) => void;
}

const CHECK_MS = 1_000;
/** Fastify's default keep-alive timeout, ms; Fastify does not apply it to a server made by a `serverFactory`. */
const KEEP_ALIVE_MS = 72_000;

/**
 * Returns a listener with TLS if `tls` is given, otherwise with plain HTTP. Times are in ms. `onUntrusted` closes
 * connections that lack a required client certificate.
 */
export function listenerOf(
  tls: HttpTls | null,
  requestMs: number,
  connectionMs: number,
  onUntrusted: (socket: TLSSocket) => void,
): HttpListener {
  const limits = {
    maxHeaderSize: HEAD_LIMIT,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Interval at which Node looks for timed-out requests; its default is 30 s.
    connectionsCheckingInterval: Math.min(requestMs, CHECK_MS),
    // Node would refuse such requests itself, unrecorded; `addHooks` refuses and records them.
    requireHostHeader: false,
  };
  const tlsServers: TlsServer[] = [];
  const open = new Set<TLSSocket>();
  let authorities = authoritiesOf(tls);
  return {
    serverFor: (handler) => {
      if (tls === null) return withTimeout(createServer(limits, handler), handler, connectionMs);
      const server = createTlsServer(
        {
          ...limits,
          ...contextOf(tls),
          handshakeTimeout: requestMs,
          requestCert: tls.clients !== undefined,
          // Optional certificates are checked per request; `onUntrusted` records connections that lack a required one.
          rejectUnauthorized: false,
        },
        handler,
      );
      server.on('secureConnection', (socket: TLSSocket) => {
        if (tls.clients === 'demanded' && !socket.authorized) return onUntrusted(socket);
        open.add(socket);
        socket.once('close', () => open.delete(socket));
      });
      tlsServers.push(server);
      return withTimeout(server, handler, connectionMs);
    },
    secure: (next) => {
      for (const server of tlsServers) server.setSecureContext(contextOf(next));
      const newAuthorities = authoritiesOf(next);
      if (newAuthorities === authorities) return;
      authorities = newAuthorities;
      for (const socket of open) invalidateCertificate(socket);
    },
  };
}

/** TLS context. ALPN offers HTTP/1.1 only. */
function contextOf({ cert, key, ca, crl, clients }: HttpTls) {
  return {
    cert,
    key,
    ...(ca !== undefined && { ca }),
    ...(crl !== undefined && { crl }),
    // A resumed session would keep the verification result obtained under earlier authorities.
    ...(clients !== undefined && { secureOptions: constants.SSL_OP_NO_TICKET }),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
  } as const;
}

function authoritiesOf(tls: HttpTls | null): string {
  return `${tls?.ca}\n${tls?.crl}`;
}

const NOT_A_PROXY = Object.assign(new Error('CONNECT'), { code: 'HPE_INVALID_METHOD' });

function withTimeout(server: Server, handler: RequestListener, ms: number): Server {
  // Without this, Node answers 417, unrecorded, to an expectation other than `100-continue`; it may be ignored.
  server.on('checkExpectation', handler);
  // Without this, Node closes the connection of a CONNECT, unrecorded and without an answer.
  server.on('connect', (_request, socket) => server.emit('clientError', NOT_A_PROXY, socket));
  server.on('error', () => undefined); // also reported to the caller of listen; failed connections need no action
  return server.setTimeout(ms);
}

/**
 * Responds to connections whose request could not be parsed: not HTTP, oversized head, or timeout. They are refused
 * and recorded as anonymous, since nothing in such a request can be trusted.
 */
export class ClientErrors {
  readonly #service: RequestParts;
  readonly #responses = new WeakMap<Socket, ServerResponse>();

  constructor(service: RequestParts) {
    this.#service = service;
  }

  noteRequest(socket: Socket, response: ServerResponse): void {
    this.#responses.set(socket, response);
  }

  refuse(socket: Socket): void {
    const call = anonymousCall(socket);
    socket.destroy();
    void refusedConnection(this.#service, call, 'http tls', PROTOCOL_VIOLATION);
  }

  handle(error: unknown, socket: Socket): void {
    if (isTlsFault(error)) {
      this.refuse(socket);
      return;
    }
    const fault = isReset(error) ? null : toHttpError(error);
    const response = this.#responses.get(socket);
    const isAnswering = response !== undefined && !response.writableFinished;
    if (fault === null || !socket.writable || (isAnswering && response.headersSent)) {
      socket.destroy();
      return;
    }
    const call = anonymousCall(socket);
    // If the body was cut off, the request's handler records it.
    const refusal = isAnswering
      ? Promise.resolve(fault)
      : refuseCall(this.#service, call, 'http', fault, 'anyone');
    refusal.then(
      (problem) => socket.end(rawProblem(problem, call.requestId), () => socket.destroy()),
      () => socket.destroy(),
    );
  }
}

const PROTOCOL_VIOLATION = '08P01';

function anonymousCall(socket: Socket): RequestCall {
  return {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: { kind: 'bearer', token: null, address: socket.remoteAddress ?? '' },
  };
}

/** True if TLS failed, so the client could not read a response. */
function isTlsFault(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('ERR_SSL_') || code === 'ERR_TLS_HANDSHAKE_TIMEOUT';
}

/** True if the client closed the connection, so it cannot read a response. */
function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}
