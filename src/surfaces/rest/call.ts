import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import { QueryError } from 'osl-compiler';
import { readClientCertificate } from '../../../policy/index.js';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import type { PresentedCertificate } from '../../ask/request/call.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Credentials, origin and request id, set before any other hook runs. */
    call: RequestCall;
  }
}

/**
 * Creates the call of a request. Its id is always generated here, since a client could reuse one. The address is that
 * of the socket. The caller is identified only by the `Authorization` header or, without it, by the client's
 * certificate. `OSL-Purpose`, `OSL-Task` and `OSL-Approval-Reason` state purpose, task and reason for approval.
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
      purpose: headerText(request.rawHeaders, 'osl-purpose'),
      emergency: null,
      task: headerText(request.rawHeaders, 'osl-task'),
      approvalReason: headerText(request.rawHeaders, 'osl-approval-reason'),
    },
  };
}

const certificateCache = new WeakMap<TLSSocket, PresentedCertificate>();

/** Returns the client's certificate; null if no trusted authority signed it, undefined if the client presented none. */
function certificateOf(socket: Socket): PresentedCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const cached = certificateCache.get(socket);
  if (cached !== undefined) return cached;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  const presented = socket.authorized ? readClientCertificate(certificate) : null;
  certificateCache.set(socket, presented);
  return presented;
}

/** Invalidates the connection's certificate after the trusted authorities have changed. */
export function invalidateCertificate(socket: TLSSocket): void {
  if (certificateOf(socket) !== undefined) certificateCache.set(socket, null);
}

const INVALID_TOKEN = '';

/**
 * Returns the token from `Authorization: Bearer <token>`, or null without the header. Duplicate headers, other schemes
 * or additional text yield an invalid token. Reads `rawHeaders` (alternating names and values), because Node's map
 * drops a second `Authorization`.
 */
function bearerToken(rawHeaders: readonly string[]): string | null {
  let token: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'authorization') continue;
    if (token !== null) return INVALID_TOKEN;
    token = /^bearer +(\S+)$/i.exec(rawHeaders[i + 1] ?? '')?.[1] ?? INVALID_TOKEN;
  }
  return token;
}

/**
 * Decodes the percent-encoded UTF-8 in header `name`; null without the header. Duplicate or undecodable headers yield
 * the empty string, which no policy allows.
 */
export function headerText(rawHeaders: readonly string[], name: string): string | null {
  let value: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    if (value !== null) return UNDECODABLE;
    value = decodePercent(rawHeaders[i + 1] ?? '');
  }
  return value;
}

const UNDECODABLE = '';

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return UNDECODABLE;
  }
}

/** Runs `parse`. A malformed request is refused and recorded after its sender has been authenticated. */
export async function readRequest<T>(
  service: RequestParts,
  call: RequestCall,
  action: string,
  parse: () => T,
): Promise<T> {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw await refuseCall(service, call, action, error, 'identified');
  }
}

/** Host names by which a browser on this machine addresses the server. */
export const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/** True if the request came through a proxy, so that its address does not identify the client. */
export function isForwarded({ headers }: FastifyRequest): boolean {
  return FORWARDED.some((name) => headers[name] !== undefined);
}
