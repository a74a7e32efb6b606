import type { FastifyInstance } from 'fastify';
import { type DashboardParts, listDashboards } from '../../../ask/request/shared-dashboards.js';
import { readRequest } from '../call.js';
import { DASHBOARDS_OPERATION } from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import { sendAnswer } from '../problem.js';

/** `GET /osl/dashboards`: the dashboards that the operator shares with the caller's roles. */
export function dashboardsRoute(app: FastifyInstance, service: DashboardParts): void {
  app.get('/osl/dashboards', { schema: DASHBOARDS_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'dashboards', () => queryParameters(request, []));
    return sendAnswer(request, reply, { dashboards: await listDashboards(service, request.call) });
  });
}
