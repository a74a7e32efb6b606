import type { FastifyInstance, FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import type { Service } from '../../service.js';
import { turnAway } from '../../spine/visit.js';
import { HIDDEN_OPERATION } from '../openapi/operations.js';
import { privateHeaders } from '../problem.js';
import type { Telemetry } from '../telemetry.js';

/** `GET /metrics`, for Prometheus on this machine. For everybody else there is nothing at this path. */
export function metricsRoute(app: FastifyInstance, service: Service, telemetry: Telemetry): void {
  app.get('/metrics', { schema: HIDDEN_OPERATION }, async (request, reply) => {
    if (!isLocal(request)) {
      throw await turnAway(service, request.call, 'http', queryError('notFound', {}), 'anyone');
    }
    const text = await telemetry.registry.metrics();
    return reply
      .headers({
        ...privateHeaders(request.call.requestId),
        'content-type': telemetry.registry.contentType,
      })
      .send(text);
  });
}

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/** From a loopback address, and not by way of a proxy that runs here. */
function isLocal(request: FastifyRequest): boolean {
  const address = request.socket.remoteAddress ?? '';
  const loopback = address === '::1' || /^(?:::ffff:)?127\./.test(address);
  return loopback && FORWARDED.every((name) => request.headers[name] === undefined);
}
