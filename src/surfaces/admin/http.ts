import type { FastifyInstance, FastifySchema } from 'fastify';
import type { RequestCall } from '../../ask/index.js';
import type { InsightParts } from '../../ask/operating/insight.js';
import {
  command,
  drain,
  history,
  type OperatingParts,
  reload,
  revocations,
  revoke,
  serverStatus,
  sessions,
  shutDown,
  slowest,
} from '../../ask/operating/operate.js';
import { type ShadowParts, startShadow, stopShadow } from '../../ask/operating/shadow.js';
import { addHooks } from '../http/hooks.js';
import { ClientErrors, type HttpTls, listenerOf } from '../http/listener.js';
import { bareApp, close, listen, type MoreRoutes } from '../http/server.js';
import { Inflight } from '../rest/inflight.js';
import { documentRoute, documentRoutes } from '../rest/openapi/document.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import type { HealthParts } from '../rest/parts.js';
import { sendAnswer } from '../rest/problem.js';
import { getRoutes, INSIGHT_METHODS, insightRoutes } from './insight-routes.js';
import { ADMIN_DOCUMENT, INSIGHT_OPERATIONS, OPERATIONS } from './operations.js';
import { historyQuestion, minutesQuestion, readRevocation, readShadow } from './requests.js';

export type AdminParts = OperatingParts & InsightParts & ShadowParts & Pick<HealthParts, 'probes'>;

export interface AdminHttp {
  listen(port: number, host: string): Promise<{ readonly port: number }>;
  close(deadlineMs: number): Promise<void>;
  secure(tls: HttpTls): void;
}

/** Allowed HTTP methods per path; a test checks that they match the registered routes. */
export const ADMIN_METHODS: ReadonlyMap<string, string> = new Map([
  ['/admin/standing', 'GET, HEAD'],
  ['/admin/sessions', 'GET, HEAD'],
  ['/admin/pools', 'GET, HEAD'],
  ['/admin/caches', 'GET, HEAD'],
  ['/admin/history', 'GET, HEAD'],
  ['/admin/history/statements', 'GET, HEAD'],
  ['/admin/sessions/{id}/cancel', 'POST'],
  ['/admin/sessions/{id}/end', 'POST'],
  ['/admin/drain', 'POST'],
  ['/admin/resume', 'POST'],
  ['/admin/reload', 'POST'],
  ['/admin/shutdown', 'POST'],
  ['/admin/tokens/revoke', 'POST'],
  ['/admin/tokens/revoked', 'GET, HEAD'],
  ['/admin/policy/shadow/start', 'POST'],
  ['/admin/policy/shadow/stop', 'POST'],
  ...INSIGHT_METHODS,
  ['/openapi.json', 'GET, HEAD'],
]);

const REQUEST_TIMEOUT_MS = 30_000;
const CONNECTION_TIMEOUT_MS = 90_000;

export async function createAdminHttp(
  parts: AdminParts,
  version: string,
  tls: HttpTls | null,
): Promise<AdminHttp> {
  const inflight = new Inflight();
  const clientErrors = new ClientErrors(parts);
  const listener = listenerOf(tls, REQUEST_TIMEOUT_MS, CONNECTION_TIMEOUT_MS, (socket) =>
    clientErrors.refuse(socket),
  );
  const app = bareApp(parts, clientErrors, listener);
  addHooks(app, parts, inflight, clientErrors, ADMIN_METHODS);
  await documentRoutes(app, version, ADMIN_DOCUMENT);
  stateRoutes(app, () => parts);
  sessionRoutes(app, () => parts);
  serverRoutes(app, parts);
  tokenRoutes(app, parts);
  shadowRoutes(app, parts);
  insightRoutes(app, () => parts);
  documentRoute(app, parts);
  await app.ready();
  return Object.freeze({
    listen: (port: number, host: string) => listen(app, port, host),
    close: (deadlineMs: number) => close(app, inflight, deadlineMs),
    secure: listener.secure,
  });
}

/**
 * Registers the routes that report sessions, processes, pools, caches and their history.
 *
 * @param schemas OpenAPI operation of each route
 */
function stateRoutes(
  app: FastifyInstance,
  parts: () => OperatingParts,
  schemas: SessionSchemas = OPERATIONS,
): void {
  const { get, show } = getRoutes(app, parts);
  get('/admin/history', schemas.history, ['span', 'by'], historyQuestion, (call, question) =>
    history(parts(), call, question),
  );
  get(
    '/admin/history/statements',
    schemas.historyStatements,
    ['from', 'until'],
    minutesQuestion,
    async (call, question) => ({ statements: await slowest(parts(), call, question) }),
  );
  const views = (call: RequestCall) => serverStatus(parts(), call);
  show('/admin/sessions', schemas.sessions, async (call) => ({ sessions: await sessions(parts(), call) }));
  show('/admin/standing', schemas.standing, async (call) => ({
    processes: (await views(call)).map(({ pools: _, caches: __, sessions: open, ...view }) => {
      return { ...view, sessions: open.length };
    }),
  }));
  show('/admin/pools', schemas.pools, async (call) => ({
    pools: (await views(call)).flatMap(({ pools }) => pools),
  }));
  show('/admin/caches', schemas.caches, async (call) => ({
    caches: (await views(call)).flatMap(({ caches }) => caches),
  }));
}

type SessionSchemas = Readonly<Record<keyof typeof OPERATIONS, FastifySchema>>;

function sessionRoutes(
  app: FastifyInstance,
  parts: () => OperatingParts,
  schemas: SessionSchemas = OPERATIONS,
): void {
  for (const what of ['cancel', 'end'] as const) {
    app.post<{ Params: { id: string } }>(
      `/admin/sessions/:id/${what}`,
      { schema: schemas[what] },
      async (request, reply) => {
        await command(parts(), request.call, request.params.id, what);
        return sendAnswer(request, reply, { done: what });
      },
    );
  }
}

function tokenRoutes(app: FastifyInstance, parts: AdminParts): void {
  app.post('/admin/tokens/revoke', { schema: OPERATIONS.revoke }, async (request, reply) => {
    const made = await revoke(parts, request.call, () => readRevocation(request));
    return sendAnswer(request, reply, made);
  });
  getRoutes(app, () => parts).show('/admin/tokens/revoked', OPERATIONS.revoked, async (call) => ({
    revoked: await revocations(parts, call),
  }));
}

function shadowRoutes(app: FastifyInstance, parts: AdminParts): void {
  app.post('/admin/policy/shadow/start', { schema: OPERATIONS.startShadow }, async (request, reply) => {
    const started = await startShadow(parts, request.call, () => readShadow(request));
    return sendAnswer(request, reply, started);
  });
  app.post('/admin/policy/shadow/stop', { schema: OPERATIONS.stopShadow }, async (request, reply) =>
    sendAnswer(request, reply, await stopShadow(parts, request.call)),
  );
}

function serverRoutes(app: FastifyInstance, parts: AdminParts): void {
  for (const on of [true, false]) {
    const done = on ? 'drain' : 'resume';
    app.post(`/admin/${done}`, { schema: OPERATIONS[done] }, async (request, reply) => {
      await drain(parts, request.call, on);
      return sendAnswer(request, reply, { done });
    });
  }
  app.post('/admin/reload', { schema: OPERATIONS.reload }, async (request, reply) =>
    sendAnswer(request, reply, await reload(parts, request.call)),
  );
  app.post('/admin/shutdown', { schema: OPERATIONS.shutdown }, async (request, reply) => {
    await shutDown(parts, request.call);
    return sendAnswer(request, reply, { done: 'shutdown' });
  });
}

/** Routes served only by the admin listener: a token in a browser must not be able to stop a server. */
const ADMIN_LISTENER_ONLY: ReadonlySet<string> = new Set([
  '/admin/drain',
  '/admin/resume',
  '/admin/reload',
  '/admin/shutdown',
  '/admin/tokens/revoke',
  '/admin/tokens/revoked',
  '/admin/policy/shadow/start',
  '/admin/policy/shadow/stop',
  '/openapi.json',
]);

/**
 * Adds the routes behind the console's admin pages to the REST listener, without listing them in the public document.
 */
export function adminBesideRest(parts: () => OperatingParts & InsightParts & ShadowParts): MoreRoutes {
  const methods = new Map([...ADMIN_METHODS].filter(([path]) => !ADMIN_LISTENER_ONLY.has(path)));
  return Object.freeze({
    methods,
    add: (app: FastifyInstance) => {
      stateRoutes(app, parts, hidden(OPERATIONS));
      sessionRoutes(app, parts, hidden(OPERATIONS));
      insightRoutes(app, parts, hidden(INSIGHT_OPERATIONS));
    },
  });
}

function hidden<K extends string>(operations: Readonly<Record<K, FastifySchema>>): Record<K, FastifySchema> {
  // Same keys, with every operation hidden.
  return Object.fromEntries(Object.keys(operations).map((name) => [name, HIDDEN_OPERATION])) as Record<
    K,
    FastifySchema
  >;
}
