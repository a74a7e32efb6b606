import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Description, describe, type GraphParts, resolveTerm } from '../../../ask/graph/describe.js';
import type { GraphDocument } from '../../../ask/graph/graph-documents.js';
import type { AnswerParts } from '../../../ask/index.js';
import { type DashboardParts, listDashboards } from '../../../ask/request/calls-without-data.js';
import { decideApproval, listApprovals } from '../../../ask/why/approvals.js';
import { explainAccess } from '../../../ask/why/explain-access.js';
import { type AccessRequestParts, requestAccess } from '../../../ask/why/request-access.js';
import { whyObject } from '../../../ask/why/why.js';
import { readAccessQuestion, readAccessRequest, readApprovalVerdict } from '../bodies/access.js';
import { readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import {
  APPROVALS_OPERATION,
  DASHBOARDS_OPERATION,
  DECIDE_APPROVAL_OPERATION,
  EXPLAIN_ACCESS_OPERATION,
  MAP_OPERATION,
  REQUEST_ACCESS_OPERATION,
  RESOLVE_OPERATION,
  SCHEMA_OPERATION,
  WHY_OPERATION,
} from '../openapi/operations.js';
import {
  flagParameter,
  queryParameters,
  SCHEMA_PARAMETERS,
  schemaSelection,
  termParameter,
} from '../parameters.js';
import { malformed, privateHeaders, sendAnswer, sendJson } from '../problem.js';

export function graphRoutes(app: FastifyInstance, service: GraphParts): void {
  app.get('/osl/schema', { schema: SCHEMA_OPERATION }, (request, reply) =>
    sendDocument(service, request, reply, 'schema'),
  );
  app.get('/osl/domain-map', { schema: MAP_OPERATION }, (request, reply) =>
    sendDocument(service, request, reply, 'domain_map'),
  );
  app.get('/osl/schema/resolve', { schema: RESOLVE_OPERATION }, async (request, reply) => {
    const term = await readRequest(service, request.call, 'resolve', () =>
      termParameter(queryParameters(request, ['term']), 'term'),
    );
    const resolution = await resolveTerm(service, request.call, term);
    return sendJson(reply, request.call.requestId, resolution);
  });
}

async function sendDocument(
  service: GraphParts,
  request: FastifyRequest,
  reply: FastifyReply,
  document: Description['document'],
): Promise<FastifyReply> {
  const documentParameters = document === 'schema' ? SCHEMA_PARAMETERS : [];
  const selection = await readRequest(service, request.call, document, () => {
    const parameters = queryParameters(request, ['governed', ...documentParameters]);
    return {
      governed: flagParameter(parameters, 'governed'),
      wish: schemaSelection(Object.fromEntries(parameters)),
    };
  });
  return send(request, reply, await describe(service, request.call, { document, ...selection }));
}

function send(request: FastifyRequest, reply: FastifyReply, { body, etag }: GraphDocument): FastifyReply {
  reply.headers({
    ...privateHeaders(request.call.requestId),
    // Private caches must revalidate: grants can be revoked.
    'cache-control': 'private, no-cache',
    vary: 'Authorization',
    etag: `"${etag}"`,
  });
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.header('content-type', 'application/json').send(body);
}

/** True if the `If-None-Match` header contains the ETag (RFC 9110, 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(`"${etag}"`);
}

/** `GET /osl/why`, `POST /osl/access-requests`, `/osl/approvals` and, for admins, `POST /osl/access/explain`. */
export function accessRoutes(
  app: FastifyInstance,
  service: AnswerParts & AccessRequestParts,
  inflight: Inflight,
): void {
  app.get('/osl/why', { schema: WHY_OPERATION }, async (request, reply) => {
    const object = await readRequest(service, request.call, 'why', () => {
      const name = termParameter(queryParameters(request, ['object']), 'object');
      if (!name.startsWith('osl.metrics.')) return name;
      const hint = 'a metric is visible if all columns that it reads are: ask about each of them';
      throw malformed('`object` must be an entity, bridge or facet, or a column', null, hint).about(
        '/object',
      );
    });
    return sendAnswer(request, reply, await whyObject(service, request.call, object));
  });
  app.post('/osl/access-requests', { schema: REQUEST_ACCESS_OPERATION }, async (request, reply) => {
    const { call } = request;
    const accessRequest = await readRequest(service, call, 'request_access', () =>
      readAccessRequest(request),
    );
    return sendAnswer(request, reply, await requestAccess(service, call, accessRequest));
  });
  app.get('/osl/approvals', { schema: APPROVALS_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'approvals', () => queryParameters(request, []));
    return sendAnswer(request, reply, await listApprovals(service, request.call));
  });
  app.post<{ Params: { id: string } }>(
    '/osl/approvals/:id',
    { schema: DECIDE_APPROVAL_OPERATION },
    async (request, reply) => {
      const { call, params } = request;
      const verdict = await readRequest(service, call, 'approve', () => readApprovalVerdict(request));
      return sendAnswer(request, reply, await decideApproval(service, call, params.id, verdict));
    },
  );
  app.post('/osl/access/explain', { schema: EXPLAIN_ACCESS_OPERATION }, async (request, reply) => {
    const { call } = request;
    const question = await readRequest(service, call, 'explain_access', () => readAccessQuestion(request));
    const info = { call, action: 'explain_access', text: null };
    return inflight.run(reply.raw, info, async (signal) => {
      const explanation = await explainAccess(service, call, question, signal).catch((error: unknown) => {
        throw inflight.toReportedError(error);
      });
      return sendAnswer(request, reply, explanation);
    });
  });
}

/** `GET /osl/dashboards`: the dashboards that the operator shares with the caller's roles. */
export function dashboardsRoute(app: FastifyInstance, service: DashboardParts): void {
  app.get('/osl/dashboards', { schema: DASHBOARDS_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'dashboards', () => queryParameters(request, []));
    return sendAnswer(request, reply, { dashboards: await listDashboards(service, request.call) });
  });
}
