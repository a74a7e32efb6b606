import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { refusedConnection } from '../../ask/request/session.js';
import { turnAway } from '../../ask/request/visit.js';
import { httpFault } from '../rest/http-fault.js';
import { rawProblem } from '../rest/problem.js';

/**
 * Responds to connections whose request could not be parsed: no HTTP, head too large, timeout. Refused and recorded
 * anonymously, since nothing in it can be trusted.
 */
export class ClientErrors {
  readonly #service: RequestParts;
  readonly #current = new WeakMap<Socket, ServerResponse>();

  constructor(service: RequestParts) {
    this.#service = service;
  }

  /** Notes that a request of `socket` is being answered. */
  begins(socket: Socket, response: ServerResponse): void {
    this.#current.set(socket, response);
  }

  /** Closes a connection whose TLS handshake failed. */
  refuse(socket: Socket): void {
    const call = strangersCall(socket);
    socket.destroy();
    void refusedConnection(this.#service, call, 'http tls', PROTOCOL_VIOLATION);
  }

  handle(error: unknown, socket: Socket): void {
    if (isTlsFault(error)) {
      this.refuse(socket);
      return;
    }
    const fault = isReset(error) ? null : httpFault(error);
    const response = this.#current.get(socket);
    const answering = response !== undefined && !response.writableFinished;
    if (fault === null || !socket.writable || (answering && response.headersSent)) {
      socket.destroy();
      return;
    }
    const call = strangersCall(socket);
    // A request whose body broke off is recorded by its handler.
    const told = answering ? Promise.resolve(fault) : turnAway(this.#service, call, 'http', fault, 'anyone');
    told.then(
      (problem) => socket.end(rawProblem(problem, call.requestId), () => socket.destroy()),
      () => socket.destroy(),
    );
  }
}

/** SQLSTATE of a protocol violation. */
const PROTOCOL_VIOLATION = '08P01';

function strangersCall(socket: Socket): RequestCall {
  return {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: { kind: 'bearer', token: null, address: socket.remoteAddress ?? '' },
  };
}

/** TLS failed, so no response could be read. */
function isTlsFault(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('ERR_SSL_') || code === 'ERR_TLS_HANDSHAKE_TIMEOUT';
}

/** The client disconnected before sending a request. */
function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}
