import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { queryError } from 'osl-compiler';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { figures } from '../../ask/operating/figures.js';
import type { InsightParts, JobName } from '../../ask/operating/insight.js';
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
import {
  accessRequests,
  beginJob,
  freshness,
  limits,
  lookAtJob,
  MOST_RECORDS,
  requestProofs,
  requestRecords,
  searchRecords,
} from '../../ask/operating/read-audit.js';
import { type ShadowParts, shadowReport, startShadow, stopShadow } from '../../ask/operating/shadow.js';
import { matrix } from '../../ask/why/matrix.js';
import { ClientErrors, type HttpTls, listenerOf } from '../http/listener.js';
import { type AdditionalRoutes, addHooks, close, createApp, listen } from '../http/server.js';
import { readRequest } from '../rest/call.js';
import { Inflight } from '../rest/inflight.js';
import { documentRoute, documentRoutes } from '../rest/openapi/document.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { queryParameters } from '../rest/parameters.js';
import type { HealthParts } from '../rest/parts.js';
import { sendAnswer } from '../rest/problem.js';
import { ADMIN_DOCUMENT, INSIGHT_OPERATIONS, OPERATIONS } from './operations.js';
import {
  auditFilter,
  countParameter,
  cursorParameter,
  FILTER_PARAMETERS,
  historyQuestion,
  LIMITS_PARAMETERS,
  limitsQuestion,
  MATRIX_PARAMETERS,
  matrixQuestion,
  minutesQuestion,
  type Parameters,
  readRevocation,
  readShadow,
  timeParameter,
} from './requests.js';

type InsightSchemas = Readonly<Record<keyof typeof INSIGHT_OPERATIONS, FastifySchema>>;

/**
 * Registers the admin routes for access, the audit log and statistics.
 *
 * @param schemas OpenAPI operation of each route
 */
function insightRoutes(
  app: FastifyInstance,
  parts: () => InsightParts & ShadowParts,
  schemas: InsightSchemas = INSIGHT_OPERATIONS,
): void {
  const { get, show } = getRoutes(app, parts);
  get('/admin/matrix', schemas.matrix, MATRIX_PARAMETERS, matrixQuestion, (call, question) =>
    matrix(parts(), call, question),
  );
  get('/admin/access-requests', schemas.accessRequests, ['from'], cursorParameter, (call, from) =>
    accessRequests(parts(), call, from),
  );
  get(
    '/admin/audit/records',
    schemas.auditRecords,
    [...FILTER_PARAMETERS, 'from', 'most'],
    (parameters) => ({
      filter: auditFilter(parameters),
      page: {
        from: cursorParameter(parameters),
        most: countParameter(parameters, 'most', 1, MOST_RECORDS, 50),
      },
    }),
    (call, { filter, page }) => searchRecords(parts(), call, filter, page),
  );
  get(
    '/admin/audit/requests/:id',
    schemas.auditRequest,
    ['near'],
    (parameters, request) => ({ id: requestIdOf(request), near: timeParameter(parameters, 'near') }),
    (call, { id, near }) => requestRecords(parts(), call, id, near),
  );
  get(
    '/admin/audit/requests/:id/proofs',
    schemas.auditProofs,
    [],
    (_, request) => requestIdOf(request),
    async (call, id) => ({ proofs: await requestProofs(parts(), call, id) }),
  );
  show('/admin/policy/shadow', schemas.shadow, (call) => shadowReport(parts(), call));
  show('/admin/figures', schemas.figures, (call) => figures(parts(), call));
  get('/admin/limits', schemas.limits, LIMITS_PARAMETERS, limitsQuestion, (call, question) =>
    limits(parts(), call, question),
  );
  show('/admin/freshness', schemas.freshness, (call) => freshness(parts(), call));
  const job = (
    path: string,
    name: JobName,
    statusSchema: FastifySchema,
    startSchema: FastifySchema,
  ): void => {
    show(path, statusSchema, (call) => lookAtJob(parts(), call, name));
    app.post(path, { schema: startSchema }, async (request, reply) =>
      sendAnswer(request, reply, await beginJob(parts(), request.call, name)),
    );
  };
  job('/admin/audit/verification', 'verify', schemas.verification, schemas.verify);
  job('/admin/policy/tests', 'policy_tests', schemas.policyTests, schemas.testPolicy);
}

/**
 * Returns helpers that add GET routes: `read` parses the parameters and `answer` handles the request; `show` is for
 * routes without parameters.
 */
function getRoutes(app: FastifyInstance, parts: () => RequestParts) {
  const get = <T>(
    path: string,
    schema: FastifySchema,
    parameterNames: readonly string[],
    read: (parameters: Parameters, request: FastifyRequest) => T,
    answer: (call: RequestCall, parsed: T) => Promise<object>,
  ): void => {
    app.get(path, { schema }, async (request: FastifyRequest, reply: FastifyReply) => {
      const { call } = request;
      const parsed = await readRequest(parts(), call, 'admin_show', () =>
        read(queryParameters(request, parameterNames), request),
      );
      return sendAnswer(request, reply, await answer(call, parsed));
    });
  };
  const show = (path: string, schema: FastifySchema, answer: (call: RequestCall) => Promise<object>): void =>
    get(path, schema, [], () => null, answer);
  return { get, show };
}

/** Returns the request id from the path. @throws QueryError E4040 if it is malformed */
function requestIdOf({ params }: FastifyRequest): string {
  const id: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, 'id') : null;
  if (typeof id !== 'string' || !REQUEST_ID.test(id)) throw queryError('notFound', {});
  return id;
}

const REQUEST_ID = /^[0-9A-Za-z-]{1,64}$/;

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
  ['/admin/matrix', 'GET, HEAD'],
  ['/admin/access-requests', 'GET, HEAD'],
  ['/admin/policy/tests', 'GET, HEAD, POST'],
  ['/admin/policy/shadow', 'GET, HEAD'],
  ['/admin/audit/records', 'GET, HEAD'],
  ['/admin/audit/requests/{id}', 'GET, HEAD'],
  ['/admin/audit/requests/{id}/proofs', 'GET, HEAD'],
  ['/admin/audit/verification', 'GET, HEAD, POST'],
  ['/admin/figures', 'GET, HEAD'],
  ['/admin/limits', 'GET, HEAD'],
  ['/admin/freshness', 'GET, HEAD'],
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
  const app = createApp(parts, clientErrors, listener);
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
  for (const action of ['cancel', 'end'] as const) {
    app.post<{ Params: { id: string } }>(
      `/admin/sessions/:id/${action}`,
      { schema: schemas[action] },
      async (request, reply) => {
        await command(parts(), request.call, request.params.id, action);
        return sendAnswer(request, reply, { done: action });
      },
    );
  }
}

function tokenRoutes(app: FastifyInstance, parts: AdminParts): void {
  app.post('/admin/tokens/revoke', { schema: OPERATIONS.revoke }, async (request, reply) => {
    const revocation = await revoke(parts, request.call, () => readRevocation(request));
    return sendAnswer(request, reply, revocation);
  });
  getRoutes(app, () => parts).show('/admin/tokens/revoked', OPERATIONS.revoked, async (call) => ({
    revoked: await revocations(parts, call),
  }));
}

function shadowRoutes(app: FastifyInstance, parts: AdminParts): void {
  app.post('/admin/policy/shadow/start', { schema: OPERATIONS.startShadow }, async (request, reply) => {
    const shadow = await startShadow(parts, request.call, () => readShadow(request));
    return sendAnswer(request, reply, shadow);
  });
  app.post('/admin/policy/shadow/stop', { schema: OPERATIONS.stopShadow }, async (request, reply) =>
    sendAnswer(request, reply, await stopShadow(parts, request.call)),
  );
}

function serverRoutes(app: FastifyInstance, parts: AdminParts): void {
  for (const draining of [true, false]) {
    const action = draining ? 'drain' : 'resume';
    app.post(`/admin/${action}`, { schema: OPERATIONS[action] }, async (request, reply) => {
      await drain(parts, request.call, draining);
      return sendAnswer(request, reply, { done: action });
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
 * Returns the routes behind the console's admin pages, for the REST listener. The public document does not list them.
 */
export function adminRoutesForRest(
  parts: () => OperatingParts & InsightParts & ShadowParts,
): AdditionalRoutes {
  const methods = new Map([...ADMIN_METHODS].filter(([path]) => !ADMIN_LISTENER_ONLY.has(path)));
  return Object.freeze({
    methods,
    add: (app: FastifyInstance) => {
      stateRoutes(app, parts, hiddenOperations(OPERATIONS));
      sessionRoutes(app, parts, hiddenOperations(OPERATIONS));
      insightRoutes(app, parts, hiddenOperations(INSIGHT_OPERATIONS));
    },
  });
}

function hiddenOperations<K extends string>(
  operations: Readonly<Record<K, FastifySchema>>,
): Record<K, FastifySchema> {
  // cast: the keys are the same; every operation is hidden
  return Object.fromEntries(Object.keys(operations).map((name) => [name, HIDDEN_OPERATION])) as Record<
    K,
    FastifySchema
  >;
}
