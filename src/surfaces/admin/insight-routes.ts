import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { queryError } from 'osl-compiler';
import type { RequestCall, RequestParts } from '../../ask/index.js';
import { figures } from '../../ask/operating/figures.js';
import type { InsightParts, JobName } from '../../ask/operating/insight.js';
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
import { type ShadowParts, shadowReport } from '../../ask/operating/shadow.js';
import { matrix } from '../../ask/why/matrix.js';
import { readRequest } from '../rest/call.js';
import { queryParameters } from '../rest/parameters.js';
import { sendAnswer } from '../rest/problem.js';
import { INSIGHT_OPERATIONS } from './operations.js';
import {
  auditFilter,
  countParameter,
  cursorParameter,
  FILTER_PARAMETERS,
  LIMITS_PARAMETERS,
  limitsQuestion,
  MATRIX_PARAMETERS,
  matrixQuestion,
  type Parameters,
  timeParameter,
} from './requests.js';

export const INSIGHT_METHODS: readonly (readonly [path: string, methods: string])[] = [
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
];

type InsightSchemas = Readonly<Record<keyof typeof INSIGHT_OPERATIONS, FastifySchema>>;

/**
 * Registers the admin routes for access, the audit log and statistics.
 *
 * @param schemas OpenAPI operation of each route
 */
export function insightRoutes(
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
    (given) => ({
      filter: auditFilter(given),
      page: { from: cursorParameter(given), most: countParameter(given, 'most', 1, MOST_RECORDS, 50) },
    }),
    (call, { filter, page }) => searchRecords(parts(), call, filter, page),
  );
  get(
    '/admin/audit/requests/:id',
    schemas.auditRequest,
    ['near'],
    (given, request) => ({ id: idIn(request), near: timeParameter(given, 'near') }),
    (call, { id, near }) => requestRecords(parts(), call, id, near),
  );
  get(
    '/admin/audit/requests/:id/proofs',
    schemas.auditProofs,
    [],
    (_, request) => idIn(request),
    async (call, id) => ({ proofs: await requestProofs(parts(), call, id) }),
  );
  show('/admin/policy/shadow', schemas.shadow, (call) => shadowReport(parts(), call));
  show('/admin/figures', schemas.figures, (call) => figures(parts(), call));
  get('/admin/limits', schemas.limits, LIMITS_PARAMETERS, limitsQuestion, (call, asked) =>
    limits(parts(), call, asked),
  );
  show('/admin/freshness', schemas.freshness, (call) => freshness(parts(), call));
  const job = (path: string, name: JobName, looked: FastifySchema, begun: FastifySchema): void => {
    show(path, looked, (call) => lookAtJob(parts(), call, name));
    app.post(path, { schema: begun }, async (request, reply) =>
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
export function getRoutes(app: FastifyInstance, parts: () => RequestParts) {
  const get = <T>(
    path: string,
    schema: FastifySchema,
    known: readonly string[],
    read: (given: Parameters, request: FastifyRequest) => T,
    answer: (call: RequestCall, parsed: T) => Promise<object>,
  ): void => {
    app.get(path, { schema }, async (request: FastifyRequest, reply: FastifyReply) => {
      const { call } = request;
      const parsed = await readRequest(parts(), call, 'admin_show', () =>
        read(queryParameters(request, known), request),
      );
      return sendAnswer(request, reply, await answer(call, parsed));
    });
  };
  const show = (path: string, schema: FastifySchema, answer: (call: RequestCall) => Promise<object>): void =>
    get(path, schema, [], () => null, answer);
  return { get, show };
}

/** Returns the request id from the path. @throws QueryError E4040 if it is malformed */
function idIn({ params }: FastifyRequest): string {
  const id: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, 'id') : null;
  if (typeof id !== 'string' || !REQUEST_ID.test(id)) throw queryError('notFound', {});
  return id;
}

const REQUEST_ID = /^[0-9A-Za-z-]{1,64}$/;
