import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { readClientCertificate } from '../../../policy/index.js';
import type { RequestCall } from '../../ask/index.js';
import type { PresentedCertificate } from '../../ask/request/call.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls, under which request id: taken from the request before anything else is. */
    call: RequestCall;
  }
}

/**
 * The call that a request is. Its id is always our own: one that a client chose could be used twice. The address is
 * that of the socket, and of the headers only `Authorization` says who asks; without it the certificate of a client does.
 * What it is for, `OSL-Purpose` may say.
 */
export function callOf(request: IncomingMessage): RequestCall {
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

/** What connections have shown, which is read once for all their requests. */
const read = new WeakMap<TLSSocket, PresentedCertificate>();

/** The certificate that the client of a connection showed; null where no authority vouches for it; undefined for none. */
function certificateOf(socket: Socket): PresentedCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const known = read.get(socket);
  if (known !== undefined) return known;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  const shown = socket.authorized ? readClientCertificate(certificate) : null;
  read.set(socket, shown);
  return shown;
}

/** Other authorities vouch for clients now: what the connection showed under others is good for nothing more. */
export function distrust(socket: TLSSocket): void {
  if (certificateOf(socket) !== undefined) read.set(socket, null);
}

/** What no token is: the verifier refuses it (E3001). */
const BROKEN = '';

/**
 * The token of `Authorization: Bearer <token>`; null where the header is not there. Two of them, another scheme or
 * anything more is a broken token, never none. `rawHeaders` are names and values in turn, as they arrived: Node's
 * own map drops a second `Authorization`.
 */
function bearerToken(rawHeaders: readonly string[]): string | null {
  let found: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'authorization') continue;
    if (found !== null) return BROKEN;
    found = /^bearer +(\S+)$/i.exec(rawHeaders[i + 1] ?? '')?.[1] ?? BROKEN;
  }
  return found;
}

/**
 * What the caller says in header `name`, percent-encoded UTF-8; null where it is not there. Two of them, or what cannot be
 * read, say nothing that anybody is allowed: the empty text.
 */
export function statedIn(rawHeaders: readonly string[], name: string): string | null {
  let found: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    if (found !== null) return UNREADABLE;
    found = decoded(rawHeaders[i + 1] ?? '');
  }
  return found;
}

const UNREADABLE = '';

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return UNREADABLE;
  }
}
