import type { FastifyInstance } from 'fastify';
import { queryError } from 'osl-compiler';
import type { RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';
import { neighbours } from '../../base/networks.js';
import { METRICS_OPERATION } from '../rest/openapi/service-operations.js';
import type { StandingParts } from '../rest/parts.js';
import { privateHeaders } from '../rest/problem.js';
import { type MetricsJson, pageOf, type Telemetry } from './telemetry.js';

/**
 * `GET /metrics`, for Prometheus on this machine and in `networks`, and not by way of a proxy: its own address says
 * nothing of who asks. For everybody else there is nothing at this path.
 *
 * @param gather what all processes of the server count; this one alone, unless told
 */
export function metricsRoute(
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
