import type { FastifyInstance } from 'fastify';
import type { RequestParts } from '../../../ask/index.js';
import { admitCall } from '../../../ask/request/calls-without-data.js';
import { readRequest } from '../call.js';
import { CONFORMANCE_OPERATION } from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import { privateHeaders } from '../problem.js';

/** Declared conformance levels. Written by test/proof/conformance from what it proves; do not edit. */
export const CONFORMANCE_LEVELS: readonly string[] = [
  'discovery',
  'query',
  'retrieval',
  'traversal',
  'metrics',
  'authoring',
  'mcp',
  'authentication',
  'errors',
  'limits',
  'versioning',
  'lineage',
  'columnar',
];

/** `GET /osl/conformance`: levels of the contract that are fully met. Needs any valid token. */
export function conformanceRoute(app: FastifyInstance, service: RequestParts): void {
  app.get('/osl/conformance', { schema: CONFORMANCE_OPERATION }, async (request, reply) => {
    const { call } = request;
    await readRequest(service, request.call, 'conformance', () => queryParameters(request, []));
    await admitCall(service, call, 'conformance', 'query');
    return reply.headers(privateHeaders(call.requestId)).send(CONFORMANCE_LEVELS);
  });
}
