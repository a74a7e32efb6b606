import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { QueryError, queryError } from 'osl-compiler';
import { publicError, type RequestParts } from '../../ask/index.js';
import { breakGlass, type GlassParts } from '../../ask/request/break-glass.js';
import type { RequestCall } from '../../ask/request/call.js';
import { turnAway } from '../../ask/request/visit.js';
import { callOf, statedIn } from '../rest/call.js';
import { httpFault } from '../rest/http-fault.js';
import type { Inflight } from '../rest/inflight.js';
import { METHODS } from '../rest/openapi/routes.js';
import { sendProblem } from '../rest/problem.js';
import type { ClientErrors } from './client-error.js';
import { traceparentOf } from './traceparent.js';
import { sendUnknown } from './unknown.js';

/** What is done with every request, whichever route it is for. */
export function addHooks(
  app: FastifyInstance,
  service: RequestParts,
  inflight: Inflight,
  clientErrors: ClientErrors,
  methods: ReadonlyMap<string, string> = METHODS,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.call = callOf(request.raw);
    clientErrors.begins(request.raw.socket, reply.raw);
    const traceparent = traceparentOf(request.headers['traceparent']);
    if (traceparent !== null) {
      reply.raw.setHeader('traceparent', traceparent);
      request.call = { ...request.call, traceparent };
      service.log.info('traced request', { request_id: request.call.requestId, traceparent });
    }
    if (!inflight.draining || ALWAYS_ANSWERED.has(request.url)) done();
    else turnAway(service, request.call, 'http', queryError('shuttingDown', {}), 'anyone').then(done, done);
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    if (inflight.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  app.setNotFoundHandler((request, reply) => sendUnknown(service, request, reply, methods));
  app.setErrorHandler((error, request, reply) => sendFault(service, error, request, reply, methods));
}

/** Lets whoever states a reason in `OSL-Break-Glass` break the glass, before its request is answered. */
export function breakGlasses(app: FastifyInstance, service: GlassParts): void {
  app.addHook('preHandler', async (request) => {
    const reason = statedIn(request.raw.rawHeaders, 'osl-break-glass');
    if (reason !== null) request.call = await inEmergency(service, request.call, reason, request.url);
  });
}

/** The call with the glass broken that its header asks for. Who calls nobody knows yet whose token is none: the route says so. */
async function inEmergency(
  service: GlassParts,
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

/** INVARIANT: a QueryError that a handler throws was recorded by the spine; what Fastify finds is recorded here. */
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
  if (request.is404) return sendUnknown(service, request, reply, methods);
  return sendRefusal(service, request, reply, fault);
}

/** What the log calls the requests of each path that has bodies. */
const ACTIONS: ReadonlyMap<string, string> = new Map([
  ['/osl/query', 'query'],
  ['/osl/sample', 'sample'],
  ['/osl/suggest', 'suggest'],
  ['/osl/validate', 'validate'],
  ['/osl/objects', 'publish'],
  ['/osl/access-requests', 'request_access'],
  ['/osl/access/explain', 'explain_access'],
]);

/** Refuses what is no proper request; a question's sender must say who it is before it hears what is wrong. */
export async function sendRefusal(
  service: RequestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  fault: QueryError,
): Promise<FastifyReply> {
  const { call } = request;
  const action = ACTIONS.get(request.routeOptions.url ?? '');
  const told =
    action === undefined
      ? await turnAway(service, call, 'http', fault, 'anyone')
      : await turnAway(service, call, action, fault, 'identified');
  return sendProblem(reply, told, call.requestId);
}
