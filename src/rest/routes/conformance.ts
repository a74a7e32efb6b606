import type { FastifyInstance } from 'fastify';
import type { Service } from '../../service.js';
import { admit } from '../../spine/visit.js';
import { CONFORMANCE_OPERATION } from '../openapi/operations.js';
import { privateHeaders } from '../problem.js';

/** `GET /osl/conformance`: the list of declared levels, of which there are none yet. For any valid token. */
export function conformanceRoute(app: FastifyInstance, service: Service): void {
  app.get('/osl/conformance', { schema: CONFORMANCE_OPERATION }, async ({ call }, reply) => {
    await admit(service, call, 'conformance', 'query');
    return reply.headers(privateHeaders(call.requestId)).send([]);
  });
}
