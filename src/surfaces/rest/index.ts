import { setTimeout } from 'node:timers/promises';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { InternalError, QueryError, queryError } from 'osl-compiler';
import { publicError } from '../../ask/index.js';
import { turnAway } from '../../ask/visit.js';
import type { Service } from '../../service/service.js';
import { type McpOptions, mcpRoute } from '../mcp/route.js';
import { callOf } from './call.js';
import { ClientErrors } from './client-error.js';
import { answerPreflights, shareWith } from './cors.js';
import { BODY_LIMIT, HEAD_LIMIT, httpFault } from './http-fault.js';
import { Inflight } from './inflight.js';
import { InnerCalls } from './inner-calls.js';
import { documentRoute, documentRoutes } from './openapi/document.js';
import { sendProblem } from './problem.js';
import { authoringRoutes } from './routes/authoring.js';
import { conformanceRoute } from './routes/conformance.js';
import { graphRoutes } from './routes/graph.js';
import { healthRoutes } from './routes/health.js';
import { metricsRoute } from './routes/metrics.js';
import { objectsRoutes } from './routes/objects.js';
import { queryRoute } from './routes/query.js';
import { sampleRoute } from './routes/sample.js';
import { sendUnknown } from './routes/unknown.js';
import { createTelemetry } from './telemetry.js';
import { traceparentOf } from './traceparent.js';

export interface RestOptions {
  /** Milliseconds for a whole request to arrive; 30,000 unless told. */
  readonly requestTimeoutMs?: number;
  /** Open sessions of the wire frontend, for `/metrics`. */
  readonly wireSessions?: () => number;
  /** Addresses and networks, beside this machine, that may read `/metrics`. */
  readonly metricsFrom?: readonly string[];
  /** Origins whose pages may call everything below `/osl`; none, unless told. */
  readonly corsOrigins?: readonly string[];
  /** Of the `/mcp` endpoint; this machine only, unless told. */
  readonly mcp?: Partial<McpOptions>;
}

export interface RestServer {
  /** Port 0 lets the system choose. Rejects where the address is in use. */
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  /**
   * Takes nothing new (503 E5032), lets what runs end for `deadlineMs`, then stops it. Resolves when every answer
   * has ended and its outcome is recorded.
   */
  close(deadlineMs: number): Promise<void>;
}

const LOCAL_MCP: McpOptions = {
  publicUrl: null,
  hosts: [],
  origins: [],
  authorizationServers: [],
  version: '0',
};
const REQUEST_TIMEOUT_MS = 30_000;
const CHECK_MS = 1_000;
/** Beyond the longest execution: after so long without a byte a reader has gone. */
const STALLED_MS = 60_000;

/** The REST frontend. It decides nothing: every call goes to the spine, every error comes from the catalogue. */
export async function createRestServer(service: Service, options: RestOptions = {}): Promise<RestServer> {
  const inflight = new Inflight();
  const inner = new InnerCalls();
  const clientErrors = new ClientErrors(service);
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const app = fastify({
    requestTimeout,
    connectionTimeout: service.caps.timeoutMs + STALLED_MS,
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: 'idle',
    return503OnClosing: false, // ours is a problem, and recorded
    http: {
      maxHeaderSize: HEAD_LIMIT,
      headersTimeout: requestTimeout,
      // How often Node looks for late requests; every 30 s unless told.
      connectionsCheckingInterval: Math.min(requestTimeout, CHECK_MS),
    },
    clientErrorHandler: (error, socket) => clientErrors.handle(error, socket),
    frameworkErrors: (error, request, reply) => {
      request.call = callOf(request.raw, inner);
      turnedAway(service, request, reply, httpFault(error) ?? queryError('notFound', {})).catch(() =>
        request.raw.destroy(),
      );
    },
  });
  // Bodies are read as bytes: what is wrong with one is told only to those who have a token.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.decorateRequest('call');
  shareWith(app, options.corsOrigins ?? []);
  hooks(app, service, inflight, inner, clientErrors);
  answerPreflights(app);
  const telemetry = createTelemetry(app, service, options.wireSessions ?? (() => 0));
  const mcp = { ...LOCAL_MCP, ...options.mcp };
  await documentRoutes(app, mcp.version);
  queryRoute(app, service, inflight);
  sampleRoute(app, service, inflight);
  graphRoutes(app, service);
  authoringRoutes(app, service);
  objectsRoutes(app, service);
  mcpRoute(app, service, inflight, inner, mcp);
  conformanceRoute(app, service);
  healthRoutes(app, service, inflight);
  metricsRoute(app, service, telemetry, options.metricsFrom ?? []);
  documentRoute(app, service);
  await app.ready();
  return Object.freeze({
    listen: (port: number, host: string) => listen(app, port, host),
    close: (deadlineMs: number) => close(app, inflight, deadlineMs),
  });
}

function hooks(
  app: FastifyInstance,
  service: Service,
  inflight: Inflight,
  inner: InnerCalls,
  clientErrors: ClientErrors,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    request.call = callOf(request.raw, inner);
    clientErrors.begins(request.raw.socket, reply.raw);
    const traceparent = traceparentOf(request.headers['traceparent']);
    if (traceparent !== null) {
      reply.raw.setHeader('traceparent', traceparent);
      service.log.info('traced request', { request_id: request.call.requestId, traceparent });
    }
    if (!inflight.draining || ALWAYS_ANSWERED.has(request.url)) done();
    else turnAway(service, request.call, 'http', queryError('shuttingDown', {}), 'anyone').then(done, done);
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    if (inflight.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  app.setNotFoundHandler((request, reply) => sendUnknown(service, request, reply));
  app.setErrorHandler((error, request, reply) => sendFault(service, error, request, reply));
}

const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(['/health', '/ready']);

/** INVARIANT: a QueryError that a handler throws was recorded by the spine; what Fastify finds is recorded here. */
async function sendFault(
  service: Service,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { call } = request;
  if (error instanceof QueryError) return sendProblem(reply, error, call.requestId);
  const fault = httpFault(error);
  if (fault === null) return sendProblem(reply, publicError(service, call.requestId, error), call.requestId);
  if (request.is404) return sendUnknown(service, request, reply);
  return turnedAway(service, request, reply, fault);
}

/** What the log calls the requests of each path that has bodies. */
const ACTIONS: ReadonlyMap<string, string> = new Map([
  ['/osl/query', 'query'],
  ['/osl/sample', 'sample'],
  ['/osl/suggest', 'suggest'],
  ['/osl/validate', 'validate'],
  ['/osl/objects', 'publish'],
]);

/** Refuses what is no proper request; a question's sender must say who it is before it hears what is wrong. */
async function turnedAway(
  service: Service,
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

async function listen(app: FastifyInstance, port: number, host: string): Promise<{ readonly port: number }> {
  await app.listen({ port, host });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new InternalError('the server has no port');
  return { port: address.port };
}

/** Between the end of what was stopped and the end of its connections: time for the last answers to leave. */
const FAREWELL_MS = 100;

async function close(app: FastifyInstance, inflight: Inflight, deadlineMs: number): Promise<void> {
  inflight.drain();
  const stop = async (): Promise<void> => {
    await inflight.stop();
    await setTimeout(FAREWELL_MS);
    app.server.closeAllConnections();
  };
  const closed = app.close();
  const deadline = new AbortController();
  const stopped = setTimeout(deadlineMs, undefined, { signal: deadline.signal }).then(stop, () => undefined);
  await closed;
  deadline.abort();
  await stopped;
  await inflight.ended();
}
