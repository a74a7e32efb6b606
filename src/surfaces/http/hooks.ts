import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { QueryError, queryError } from 'osl-compiler';
import { publicError, type RequestParts } from '../../ask/index.js';
import { type BreakGlassParts, breakGlass } from '../../ask/request/break-glass.js';
import type { RequestCall } from '../../ask/request/call.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';
import { callOf, headerText } from '../rest/call.js';
import type { Inflight } from '../rest/inflight.js';
import { METHODS } from '../rest/openapi/document.js';
import { sendProblem } from '../rest/problem.js';
import { httpFault } from '../rest/request-errors.js';
import type { ClientErrors } from './listener.js';

/** Converts a request path to its route template, spelled as in the table of methods. */
export function templateOf(path: string): string {
  return path
    .replace(/^\/osl\/objects\/[^/]+$/, '/osl/objects/{id}')
    .replace(/^\/osl\/approvals\/[^/]+$/, '/osl/approvals/{id}')
    .replace(/^\/osl\/receipts\/[^/]+$/, '/osl/receipts/{request_id}')
    .replace(/^\/admin\/sessions\/[^/]+\/(cancel|end)$/, '/admin/sessions/{id}/$1')
    .replace(/^\/admin\/audit\/requests\/[^/]+(\/proofs)?$/, '/admin/audit/requests/{id}$1');
}

/** Hint for requests to `/`; it echoes nothing from the request. */
function rootHint(methods: ReadonlyMap<string, string>): string {
  const pages = methods.has('/console/') ? 'the console is at /console/, ' : '';
  return `${pages}what programs may ask is in /openapi.json`;
}

/**
 * Responds to requests that match no route: E4050 if the path allows other methods, else E4040. Below `/osl` and
 * `/admin`, callers without a valid token do not learn which of the two applies.
 */
async function sendNotFound(
  service: RequestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  methods: ReadonlyMap<string, string> = METHODS,
): Promise<FastifyReply> {
  const { call } = request;
  const path = request.url.split('?', 1)[0] ?? '';
  const allowed = methods.get(templateOf(path));
  const reason =
    allowed === undefined
      ? queryError('notFound', path === '/' ? { elsewhere: rootHint(methods) } : {})
      : queryError('methodNotAllowed', { allowed });
  const who = /^\/(?:osl|admin)(?:\/|$)/.test(path) ? 'identified' : 'anyone';
  const refusal = await refuseCall(service, call, 'http', reason, who);
  if (refusal.entry === 'methodNotAllowed' && allowed !== undefined) reply.header('allow', allowed);
  return sendProblem(reply, refusal, call.requestId);
}

function traceparentOf(header: string | readonly string[] | undefined): string | null {
  if (typeof header !== 'string') return null;
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(header);
  if (match === null || match[1] === 'ff') return null;
  return /^0+$/.test(match[2] ?? '') || /^0+$/.test(match[3] ?? '') ? null : header;
}

export function addHooks(
  app: FastifyInstance,
  service: RequestParts,
  inflight: Inflight,
  clientErrors: ClientErrors,
  methods: ReadonlyMap<string, string> = METHODS,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.call = callOf(request.raw);
    clientErrors.noteRequest(request.raw.socket, reply.raw);
    const traceparent = traceparentOf(request.headers['traceparent']);
    if (traceparent !== null) {
      reply.raw.setHeader('traceparent', traceparent);
      request.call = { ...request.call, traceparent };
      service.log.info('traced request', { request_id: request.call.requestId, traceparent });
    }
    if (!inflight.draining || ALWAYS_ANSWERED.has(request.url)) done();
    else refuseCall(service, request.call, 'http', queryError('shuttingDown', {}), 'anyone').then(done, done);
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    if (inflight.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  app.setNotFoundHandler((request, reply) => sendNotFound(service, request, reply, methods));
  app.setErrorHandler((error, request, reply) => sendFault(service, error, request, reply, methods));
}

/** Activates break-glass access for requests with an `OSL-Break-Glass` header before they are handled. */
export function addBreakGlassHook(app: FastifyInstance, service: BreakGlassParts): void {
  app.addHook('preHandler', async (request) => {
    const reason = headerText(request.raw.rawHeaders, 'osl-break-glass');
    if (reason !== null) request.call = await inEmergency(service, request.call, reason, request.url);
  });
}

/**
 * Returns the call with break-glass access. A call with an invalid token is returned unchanged, since the route
 * refuses it.
 */
async function inEmergency(
  service: BreakGlassParts,
  call: RequestCall,
  reason: string,
  url: string,
): Promise<RequestCall> {
  const { credentials, origin } = call;
  const isMcp = url === '/mcp';
  if (credentials.kind !== 'bearer' || credentials.token === null || origin === undefined) return call;
  if (!isMcp && !url.startsWith('/osl/')) return call;
  const identity = await service.verifier.verify(credentials.token).catch((error: unknown) => {
    if (error instanceof QueryError) return null;
    throw error;
  });
  if (identity === null || service.model().snapshot === null) return call;
  const own: RequestCall = isMcp ? { ...call, surface: 'mcp' } : call;
  const emergency = await breakGlass(service, own, identity, reason);
  return { ...call, requestId: randomUUID(), origin: { ...origin, emergency } };
}

const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(['/health', '/healthz', '/ready', '/readyz']);

/**
 * INVARIANT: a QueryError thrown by a handler has already been recorded; errors raised by Fastify are recorded here.
 */
async function sendFault(
  service: RequestParts,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  methods: ReadonlyMap<string, string>,
): Promise<FastifyReply> {
  const { call } = request;
  if (error instanceof QueryError) return sendProblem(reply, error, call.requestId);
  const fault = httpFault(error);
  if (fault === null) return sendProblem(reply, publicError(service, call.requestId, error), call.requestId);
  if (request.is404) return sendNotFound(service, request, reply, methods);
  return sendRefusal(service, request, reply, fault);
}

const ACTIONS: ReadonlyMap<string, string> = new Map([
  ['/osl/query', 'query'],
  ['/osl/subscribe', 'subscribe'],
  ['/osl/sample', 'sample'],
  ['/osl/suggest', 'suggest'],
  ['/osl/validate', 'validate'],
  ['/osl/objects', 'publish'],
  ['/osl/access-requests', 'request_access'],
  ['/osl/access/explain', 'explain_access'],
]);

/** Refuses a malformed request; for query routes the error is shown only to authenticated callers. */
export async function sendRefusal(
  service: RequestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  fault: QueryError,
): Promise<FastifyReply> {
  const { call } = request;
  const action = ACTIONS.get(request.routeOptions.url ?? '');
  const refusal =
    action === undefined
      ? await refuseCall(service, call, 'http', fault, 'anyone')
      : await refuseCall(service, call, action, fault, 'identified');
  return sendProblem(reply, refusal, call.requestId);
}
