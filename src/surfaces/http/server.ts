import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { InternalError, QueryError, queryError } from 'osl-compiler';
import { publicError, type RequestParts } from '../../ask/index.js';
import { type BreakGlassParts, breakGlass } from '../../ask/request/break-glass.js';
import type { RequestCall } from '../../ask/request/call.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';
import { CONSOLE_METHODS, type ConsoleOptions, consoleRoutes } from '../console/route.js';
import { type McpOptions, mcpRoute } from '../mcp/route.js';
import { callOf, headerText } from '../rest/call.js';
import { Inflight } from '../rest/inflight.js';
import { documentRoute, documentRoutes, METHODS } from '../rest/openapi/document.js';
import type { RestParts } from '../rest/parts.js';
import { BODY_LIMIT, sendProblem, toHttpError } from '../rest/problem.js';
import { accessRoutes, dashboardsRoute, graphRoutes } from '../rest/routes/graph.js';
import { authoringRoutes, objectsRoutes } from '../rest/routes/objects.js';
import { queryRoute, receiptsRoute, sampleRoute } from '../rest/routes/query.js';
import { conformanceRoute, healthRoutes } from '../rest/routes/service.js';
import { subscribeRoute } from '../rest/routes/subscribe.js';
import { tokenRoute } from '../rest/routes/token.js';
import { ClientErrors, type HttpListener, type HttpTls, listenerOf } from './listener.js';
import {
  createTelemetry,
  type HttpParts,
  type MetricsJson,
  metricsRoute,
  NO_WIRE,
  type WireFigures,
} from './telemetry.js';

/** Request headers that cross-origin pages may send, in addition to the CORS-safelisted ones. */
const ALLOWED_HEADERS =
  'Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Prefer, traceparent, OSL-Purpose, OSL-Task, OSL-Break-Glass, OSL-Approval-Reason';
const EXPOSED_HEADERS =
  'Retry-After, X-Request-Id, ETag, Location, Allow, Preference-Applied, WWW-Authenticate, traceparent';
const CORS_METHODS = 'GET, HEAD, POST';
const PREFLIGHT_SECONDS = 600;

/**
 * CORS for `origins` (exact values of the `Origin` header): everything below `/osl`, and `/openapi.json`. Other
 * origins get no CORS headers; without origins this does nothing. Tokens are sent in `Authorization`, so credentials
 * (cookies) are never allowed. `/mcp` has its own list.
 *
 * Not `@fastify/cors`: it sets headers on Fastify's reply, which streamed answers bypass and a route's `Vary`
 * overwrites, and it adds a route for every OPTIONS.
 *
 * INVARIANT: called before the other hooks are added, so that pages can also read the errors that those hooks send.
 */
function addCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    if (isCrossOriginPath(request.url)) {
      const { origin } = request.headers;
      if (origin !== undefined && origins.includes(origin)) {
        reply.raw.setHeader('access-control-allow-origin', origin);
        reply.raw.setHeader('access-control-expose-headers', EXPOSED_HEADERS);
      }
    }
    done();
  });
  // Caches need `Vary` to separate responses by origin. Streamed answers bypass this hook, but they are never cached.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isCrossOriginPath(request.url)) {
      const existing = reply.getHeader('vary');
      reply.header('vary', existing === undefined ? 'Origin' : `${String(existing)}, Origin`);
    }
    done(null, payload);
  });
}

/**
 * Responds to CORS preflights. They carry no token and have no effect, so they are not recorded. From origins that are
 * not allowed, OPTIONS is treated as an unknown method.
 */
function answerPreflights(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply;
    const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    if (!isPreflight || !raw.hasHeader('access-control-allow-origin')) {
      done();
      return;
    }
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': CORS_METHODS,
        'access-control-allow-headers': ALLOWED_HEADERS,
        'access-control-max-age': PREFLIGHT_SECONDS,
      })
      .send();
  });
}

function isCrossOriginPath(url: string): boolean {
  const path = url.split('?', 1)[0] ?? '';
  return path.startsWith('/osl/') || path === '/openapi.json';
}

export interface HttpServerOptions {
  /** TLS certificate; if absent, REST is served over plain HTTP. */
  readonly tls?: HttpTls;
  /** Maximum time to receive a complete request, in ms. Default 30,000. */
  readonly requestTimeoutMs?: number;
  readonly wire?: WireFigures;
  /** Collects the metrics of all processes of the server for `/metrics`. Default: this process only. */
  readonly collectMetrics?: () => Promise<readonly MetricsJson[]>;
  /** Addresses and networks that may read `/metrics`, in addition to this machine. */
  readonly metricsFrom?: readonly string[];
  /** Origins whose pages may call everything below `/osl`. Default: none. */
  readonly corsOrigins?: readonly string[];
  readonly mcp?: Partial<McpOptions>;
  readonly console?: ConsoleOptions | null;
  readonly additionalRoutes?: AdditionalRoutes | null;
}

export interface AdditionalRoutes {
  readonly methods: ReadonlyMap<string, string>;
  add(app: FastifyInstance): void;
}

export interface HttpServer {
  /** Starts listening; port 0 lets the system choose a port. Rejects if the address is in use. */
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  /**
   * Refuses new requests (503 E5032), waits up to `deadlineMs` for running requests, then aborts them. Resolves when
   * every response has ended and its outcome is recorded.
   */
  close(deadlineMs: number): Promise<void>;
  /** Replaces certificates as `HttpListener.secure` does; no effect without TLS. @throws Error if one is invalid */
  secure(tls: HttpTls): void;
  figures(): Promise<MetricsJson>;
  readonly inflight: Inflight;
}

const LOCAL_MCP: McpOptions = {
  publicUrl: null,
  hosts: [],
  origins: [],
  authorizationServers: [],
  version: '0',
};
/** Placeholders for Fastify's compilers, which need not be loaded, since routes install other ones. */
const NO_COMPILERS = { buildValidator: noCompiler, buildSerializer: noCompiler };
const REQUEST_TIMEOUT_MS = 30_000;
/** Time in ms beyond the longest execution after which a silent client is presumed gone. */
const STALL_MS = 60_000;

export async function createHttpServer(
  service: HttpParts,
  options: HttpServerOptions = {},
): Promise<HttpServer> {
  const inflight = new Inflight();
  const clientErrors = new ClientErrors(service);
  const requestTimeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const connectionTimeoutMs = service.caps.timeoutMs + STALL_MS;
  const listener = listenerOf(options.tls ?? null, requestTimeoutMs, connectionTimeoutMs, (socket) =>
    clientErrors.refuse(socket),
  );
  const app = createApp(service, clientErrors, listener);
  addCors(app, options.corsOrigins ?? []);
  const consoleOptions = options.console ?? null;
  const additionalRoutes = options.additionalRoutes ?? null;
  addHooks(app, service, inflight, clientErrors, allMethods(consoleOptions, additionalRoutes));
  addBreakGlassHook(app, service);
  answerPreflights(app);
  const telemetry = createTelemetry(app, service, options.wire ?? NO_WIRE);
  const mcp = { ...LOCAL_MCP, ...options.mcp };
  await restRoutes(app, service, inflight, mcp.version);
  tokenRoute(app, service, mcp.publicUrl);
  mcpRoute(app, service, inflight, mcp);
  metricsRoute(app, service, telemetry, options.metricsFrom ?? [], options.collectMetrics);
  if (consoleOptions !== null) consoleRoutes(app, service, consoleOptions);
  additionalRoutes?.add(app);
  await app.ready();
  return Object.freeze({
    listen: (port: number, host: string) => listen(app, port, host),
    close: (deadlineMs: number) => close(app, inflight, deadlineMs),
    secure: listener.secure,
    figures: () => telemetry.figures(),
    inflight,
  });
}

function allMethods(
  consoleOptions: ConsoleOptions | null,
  additionalRoutes: AdditionalRoutes | null,
): ReadonlyMap<string, string> {
  const consoleMethods =
    consoleOptions === null ? [] : [...CONSOLE_METHODS, ...(consoleOptions.demo?.methods ?? [])];
  return new Map([...METHODS, ...consoleMethods, ...(additionalRoutes?.methods ?? [])]);
}

/** Creates an app without routes that sets each request's `call` and maps errors to the error catalogue. */
export function createApp(
  service: RequestParts,
  clientErrors: ClientErrors,
  listener: Pick<HttpListener, 'serverFor'>,
): FastifyInstance {
  const app = fastify({
    serverFactory: (handler) => listener.serverFor(handler),
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: 'idle',
    return503OnClosing: false, // the application refuses with a problem response and records it
    schemaController: { compilersFactory: NO_COMPILERS },
    clientErrorHandler: (error, socket) => clientErrors.handle(error, socket),
    frameworkErrors: (error, request, reply) => {
      request.call = callOf(request.raw);
      sendRefusal(service, request, reply, toHttpError(error) ?? queryError('notFound', {})).catch(() =>
        request.raw.destroy(),
      );
    },
  });
  // Bodies are read as bytes, so that errors in them are reported only to authenticated callers.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.decorateRequest('call');
  return app;
}

function noCompiler(): never {
  throw new InternalError('a route wants a compiler of schemas');
}

export async function listen(
  app: FastifyInstance,
  port: number,
  host: string,
): Promise<{ readonly port: number }> {
  await app.listen({ port, host });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new InternalError('the server has no port');
  return { port: address.port };
}

/** Time in ms for sending the last responses before connections are closed. */
const LAST_RESPONSES_MS = 100;

export async function close(app: FastifyInstance, inflight: Inflight, deadlineMs: number): Promise<void> {
  inflight.drain();
  const stop = async (): Promise<void> => {
    await inflight.stop();
    await setTimeout(LAST_RESPONSES_MS);
    app.server.closeAllConnections();
  };
  const closed = app.close();
  const deadline = new AbortController();
  const stopped = setTimeout(deadlineMs, undefined, { signal: deadline.signal }).then(stop, () => undefined);
  await closed;
  deadline.abort();
  await stopped;
  await inflight.allEnded();
}

/**
 * Registers `/health`, `/ready`, the routes below `/osl` and their OpenAPI document. The routes only translate:
 * requests are handled by `src/ask`, and errors come from the catalogue. The app must set each request's `call` and an
 * error handler.
 */
async function restRoutes(
  app: FastifyInstance,
  service: RestParts,
  inflight: Inflight,
  version: string,
): Promise<void> {
  await documentRoutes(app, version);
  queryRoute(app, service, inflight);
  subscribeRoute(app, service, inflight);
  sampleRoute(app, service, inflight);
  graphRoutes(app, service);
  accessRoutes(app, service, inflight);
  authoringRoutes(app, service);
  objectsRoutes(app, service);
  receiptsRoute(app, service);
  dashboardsRoute(app, service);
  conformanceRoute(app, service);
  healthRoutes(app, service, inflight);
  documentRoute(app, service);
}

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
  const audience = /^\/(?:osl|admin)(?:\/|$)/.test(path) ? 'identified' : 'anyone';
  const refusal = await refuseCall(service, call, 'http', reason, audience);
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
    const reason = isWithoutHost(request.raw)
      ? queryError('malformedBody', { detail: 'the request has no Host header' })
      : inflight.draining && !ALWAYS_SERVED.has(request.url)
        ? queryError('shuttingDown', {})
        : null;
    if (reason === null) done();
    else refuseCall(service, request.call, 'http', reason, 'anyone').then(done, done);
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    if (inflight.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  app.setNotFoundHandler((request, reply) => sendNotFound(service, request, reply, methods));
  app.setErrorHandler((error, request, reply) => sendFault(service, error, request, reply, methods));
}

/** True for a request of HTTP/1.1 without the header that it requires (RFC 9112, 3.2). */
function isWithoutHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}

/** Activates break-glass access for requests with an `OSL-Break-Glass` header before they are handled. */
function addBreakGlassHook(app: FastifyInstance, service: BreakGlassParts): void {
  app.addHook('preHandler', async (request) => {
    const reason = headerText(request.raw.rawHeaders, 'osl-break-glass');
    if (reason !== null) request.call = await withBreakGlass(service, request.call, reason, request.url);
  });
}

/**
 * Activates break-glass access and returns the call with it. The call is returned unchanged outside of `/osl/` and
 * `/mcp`, without a policy, and if its token is missing or invalid, since the route then refuses it.
 */
async function withBreakGlass(
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
  const mcpCall: RequestCall = isMcp ? { ...call, surface: 'mcp' } : call;
  const emergency = await breakGlass(service, mcpCall, identity, reason);
  return { ...call, requestId: randomUUID(), origin: { ...origin, emergency } };
}

const ALWAYS_SERVED: ReadonlySet<string> = new Set(['/health', '/healthz', '/ready', '/readyz']);

/**
 * Responds to an error.
 *
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
  const fault = toHttpError(error);
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
async function sendRefusal(
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
