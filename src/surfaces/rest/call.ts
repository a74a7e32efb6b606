import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Call } from '../../ask/index.js';
import { bearerToken, statedIn } from './authorization.js';
import { certificateOf } from './client-certificate.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls, under which request id: taken from the request before anything else is. */
    call: Call;
  }
}

/**
 * The call that a request is. Its id is always our own: one that a client chose could be used twice. The address is
 * that of the socket, and of the headers only `Authorization` says who asks; without it the certificate of a client does.
 * What it is for, `OSL-Purpose` may say.
 */
export function callOf(request: IncomingMessage): Call {
  const certificate = certificateOf(request.socket);
  return {
    requestId: randomUUID(),
    surface: 'rest',
    credentials: {
      kind: 'bearer',
      token: bearerToken(request.rawHeaders),
      address: request.socket.remoteAddress ?? '',
      ...(certificate !== undefined && { certificate }),
    },
    origin: {
      address: request.socket.remoteAddress ?? null,
      purpose: statedIn(request.rawHeaders, 'osl-purpose'),
      emergency: null,
    },
  };
}
