import type { FastifyInstance } from 'fastify';
import type { AnswerParts } from '../../../ask/index.js';
import { explainAccess } from '../../../ask/why/explain-access.js';
import { type AccessRequestParts, requestAccess } from '../../../ask/why/request-access.js';
import { whyObject } from '../../../ask/why/why.js';
import { readAccessQuestion, readAccessRequest } from '../bodies/access.js';
import type { Inflight } from '../inflight.js';
import {
  EXPLAIN_ACCESS_OPERATION,
  REQUEST_ACCESS_OPERATION,
  WHY_OPERATION,
} from '../openapi/access-operations.js';
import { sendAnswer } from '../problem.js';
import { queryParameters, termParameter } from '../query-string.js';
import { readRequest } from '../read-request.js';

/** `GET /osl/why`, `POST /osl/access-requests`, and for admins `POST /osl/access/explain`. */
export function accessRoutes(
  app: FastifyInstance,
  service: AnswerParts & AccessRequestParts,
  inflight: Inflight,
): void {
  app.get('/osl/why', { schema: WHY_OPERATION }, async (request, reply) => {
    const object = await readRequest(service, request.call, 'why', () =>
      termParameter(queryParameters(request, ['object']), 'object'),
    );
    return sendAnswer(request, reply, await whyObject(service, request.call, object));
  });
  app.post('/osl/access-requests', { schema: REQUEST_ACCESS_OPERATION }, async (request, reply) => {
    const { call } = request;
    const asked = await readRequest(service, call, 'request_access', () => readAccessRequest(request));
    return sendAnswer(request, reply, await requestAccess(service, call, asked));
  });
  app.post('/osl/access/explain', { schema: EXPLAIN_ACCESS_OPERATION }, async (request, reply) => {
    const { call } = request;
    const asked = await readRequest(service, call, 'explain_access', () => readAccessQuestion(request));
    const about = { call, action: 'explain_access', text: null };
    return inflight.run(reply.raw, about, async (signal) => {
      const explained = await explainAccess(service, call, asked, signal).catch((error: unknown) => {
        throw inflight.reasonOf(error);
      });
      return sendAnswer(request, reply, explained);
    });
  });
}
