import { setTimeout } from 'node:timers/promises';
import { type FastifyInstance, fastify } from 'fastify';
import { InternalError, queryError } from 'osl-compiler';
import type { RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';
import { neighbours } from '../../base/networks.js';
import { CONSOLE_METHODS, type ConsoleOptions, consoleRoutes } from '../console/index.js';
import { type McpOptions, mcpRoute } from '../mcp/route.js';
import { callOf } from '../rest/call.js';
import { BODY_LIMIT, httpFault } from '../rest/http-fault.js';
import { Inflight } from '../rest/inflight.js';
import { METHODS } from '../rest/openapi/routes.js';
import { METRICS_OPERATION } from '../rest/openapi/service-operations.js';
import type { StandingParts } from '../rest/parts.js';
import { privateHeaders } from '../rest/problem.js';
import { tokenRoute } from '../rest/routes/token.js';
import { restRoutes } from '../rest/surface.js';
import { ClientErrors } from './client-error.js';
import { addHooks, breakGlasses, sendRefusal } from './hooks.js';
import { type HttpListener, type HttpTls, listenerOf } from './listener.js';
import type { HttpParts } from './parts.js';
import {
  createTelemetry,
  type MetricsJson,
  NO_WIRE,
  pageOf,
  type Telemetry,
  type WireNumbers,
} from './telemetry.js';

/** Headers that a page may send, beside those that every page may. */
const SENT =
  'Authorization, Content-Type, If-Match, If-None-Match, traceparent, OSL-Purpose, OSL-Break-Glass';
/** Headers of an answer that a page may read, beside those that every page may. */
const READ = 'Retry-After, X-Request-Id, ETag, Location, Allow, WWW-Authenticate, traceparent';
const CORS_METHODS = 'GET, HEAD, POST';
/** How long a browser may remember that it may ask. */
const REMEMBERED_SECONDS = 600;

/**
 * Lets pages of `origins`, each as a browser sends it, call everything below `/osl` and read `/openapi.json`. Nobody
 * else is told anything, and with no origins nothing here does anything. Tokens come in `Authorization`, never by
 * themselves as cookies do, so that credentials are never allowed. `/mcp` has a list of its own.
 *
 * Not by `@fastify/cors`: it writes into Fastify's headers, which a streamed answer leaves without and where a
 * route's own `Vary` takes its place, and it adds a route for every OPTIONS.
 *
 * INVARIANT: called before other hooks, so that a refusal of theirs can be read by the page that it is for.
 */
function shareWith(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    if (isShared(request.url)) {
      const { origin } = request.headers;
      if (origin !== undefined && origins.includes(origin)) {
        reply.raw.setHeader('access-control-allow-origin', origin);
        reply.raw.setHeader('access-control-expose-headers', READ);
      }
    }
    done();
  });
  // Caches keep answers apart by it; what is streamed is kept by none.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isShared(request.url)) {
      const others = reply.getHeader('vary');
      reply.header('vary', others === undefined ? 'Origin' : `${String(others)}, Origin`);
    }
    done(null, payload);
  });
}

/**
 * Answers the question that a browser asks before a page's own. It has no token and touches nothing, so that it leaves
 * no record; from any other origin it is the unknown method that it is without a list.
 */
function answerPreflights(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply;
    const asks = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    if (!asks || !raw.hasHeader('access-control-allow-origin')) {
      done();
      return;
    }
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': CORS_METHODS,
        'access-control-allow-headers': SENT,
        'access-control-max-age': REMEMBERED_SECONDS,
      })
      .send();
  });
}

function isShared(url: string): boolean {
  const path = url.split('?', 1)[0] ?? '';
  return path.startsWith('/osl/') || path === '/openapi.json';
}

/**
 * `GET /metrics`, for Prometheus on this machine and in `networks`, and not by way of a proxy: its own address says
 * nothing of who asks. For everybody else there is nothing at this path.
 *
 * @param gather what all processes of the server count; this one alone, unless told
 */
function metricsRoute(
  app: FastifyInstance,
  service: RequestParts & StandingParts,
  telemetry: Telemetry,
  networks: readonly string[],
  gather?: () => Promise<readonly MetricsJson[]>,
): void {
  const mayAsk = neighbours(networks);
  app.get('/metrics', { schema: METRICS_OPERATION }, async (request, reply) => {
    const forwarded = FORWARDED.some((name) => request.headers[name] !== undefined);
    if (forwarded || !mayAsk(request.socket.remoteAddress ?? '')) {
      throw await turnAway(service, request.call, 'http', queryError('notFound', {}), 'anyone');
    }
    const { registry } = telemetry;
    const text = gather === undefined ? await registry.metrics() : await pageOf(await gather());
    service.probes.count('metrics', '/metrics', 200, request.call);
    return reply
      .headers({
        ...privateHeaders(request.call.requestId),
        'content-type': telemetry.registry.contentType,
      })
      .send(text);
  });
}

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

export interface HttpOptions {
  /** What clients are shown; without it REST is plain HTTP. */
  readonly tls?: HttpTls;
  /** Milliseconds for a whole request to arrive; 30,000 unless told. */
  readonly requestTimeoutMs?: number;
  /** The wire frontend, for `/metrics`. */
  readonly wire?: WireNumbers;
  /** What all processes of the server count, for `/metrics`; this one alone, unless told. */
  readonly gather?: () => Promise<readonly MetricsJson[]>;
  /** Addresses and networks, beside this machine, that may read `/metrics`. */
  readonly metricsFrom?: readonly string[];
  /** Origins whose pages may call everything below `/osl`; none, unless told. */
  readonly corsOrigins?: readonly string[];
  /** Of the `/mcp` endpoint; this machine only, unless told. */
  readonly mcp?: Partial<McpOptions>;
  /** What `/console` is served with; null or absent: there is none. */
  readonly console?: ConsoleOptions | null;
  /** Routes beside those of REST; none, unless told. */
  readonly more?: MoreRoutes | null;
}

/** Routes of another surface, which this listener has too. */
export interface MoreRoutes {
  readonly methods: ReadonlyMap<string, string>;
  add(app: FastifyInstance): void;
}

export interface HttpServer {
  /** Port 0 lets the system choose. Rejects where the address is in use. */
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  /**
   * Takes nothing new (503 E5032), lets what runs end for `deadlineMs`, then stops it. Resolves when every answer
   * has ended and its outcome is recorded.
   */
  close(deadlineMs: number): Promise<void>;
  /** Shows another certificate, from the next connection on. Nothing where there is no TLS. @throws Error where it does not fit */
  secure(tls: HttpTls): void;
  /** What this process counts. */
  figures(): Promise<MetricsJson>;
  /** What it answers now. */
  readonly inflight: Inflight;
}

const LOCAL_MCP: McpOptions = {
  publicUrl: null,
  hosts: [],
  origins: [],
  authorizationServers: [],
  version: '0',
};
/** The routes' own take their place before the first route; so Fastify's are not even loaded. */
const NO_COMPILERS = { buildValidator: noCompiler, buildSerializer: noCompiler };
const REQUEST_TIMEOUT_MS = 30_000;
/** Beyond the longest execution: after so long without a byte a reader has gone. */
const STALLED_MS = 60_000;

/** One port for REST, MCP and `/metrics`. */
export async function createHttpServer(service: HttpParts, options: HttpOptions = {}): Promise<HttpServer> {
  const inflight = new Inflight();
  const clientErrors = new ClientErrors(service);
  const requestTimeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const connectionTimeoutMs = service.caps.timeoutMs + STALLED_MS;
  const listener = listenerOf(options.tls ?? null, requestTimeoutMs, connectionTimeoutMs, (socket) =>
    clientErrors.refuse(socket),
  );
  const app = bareApp(service, clientErrors, listener);
  shareWith(app, options.corsOrigins ?? []);
  const page = options.console ?? null;
  const more = options.more ?? null;
  addHooks(app, service, inflight, clientErrors, methodsWith(page, more));
  breakGlasses(app, service);
  answerPreflights(app);
  const telemetry = createTelemetry(app, service, options.wire ?? NO_WIRE);
  const mcp = { ...LOCAL_MCP, ...options.mcp };
  await restRoutes(app, service, inflight, mcp.version);
  tokenRoute(app, service, mcp.publicUrl);
  mcpRoute(app, service, inflight, mcp);
  metricsRoute(app, service, telemetry, options.metricsFrom ?? [], options.gather);
  if (page !== null) consoleRoutes(app, service, page);
  more?.add(app);
  await app.ready();
  return Object.freeze({
    listen: (port: number, host: string) => listen(app, port, host),
    close: (deadlineMs: number) => close(app, inflight, deadlineMs),
    secure: listener.secure,
    figures: () => telemetry.figures(),
    inflight,
  });
}

/** What each path answers, on a server with this console and these routes beside. */
function methodsWith(page: ConsoleOptions | null, more: MoreRoutes | null): ReadonlyMap<string, string> {
  const ofPage = page === null ? [] : [...CONSOLE_METHODS, ...(page.demo?.methods ?? [])];
  return new Map([...METHODS, ...ofPage, ...(more?.methods ?? [])]);
}

/** An app without routes, whose requests have their `call` and whose faults are told by the catalogue. */
export function bareApp(
  service: RequestParts,
  clientErrors: ClientErrors,
  listener: Pick<HttpListener, 'begin'>,
): FastifyInstance {
  const app = fastify({
    serverFactory: (handler) => listener.begin(handler),
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: 'idle',
    return503OnClosing: false, // ours is a problem, and recorded
    schemaController: { compilersFactory: NO_COMPILERS },
    clientErrorHandler: (error, socket) => clientErrors.handle(error, socket),
    frameworkErrors: (error, request, reply) => {
      request.call = callOf(request.raw);
      sendRefusal(service, request, reply, httpFault(error) ?? queryError('notFound', {})).catch(() =>
        request.raw.destroy(),
      );
    },
  });
  // Bodies are read as bytes: what is wrong with one is told only to those who have a token.
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

/** Between the end of what was stopped and the end of its connections: time for the last answers to leave. */
const FAREWELL_MS = 100;

export async function close(app: FastifyInstance, inflight: Inflight, deadlineMs: number): Promise<void> {
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
