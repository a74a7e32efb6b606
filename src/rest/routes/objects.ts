import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Service } from '../../service.js';
import { discardDraft, keepDraft, publication, publications } from '../../spine/drafts.js';
import { publish } from '../../spine/publish.js';
import { readObjectsRequest } from '../objects-body.js';
import { OBJECT_OPERATION, OBJECTS_OPERATION, PUBLISH_OPERATION } from '../openapi/publishing-operations.js';
import { privateHeaders, problemHeaders, problemOf } from '../problem.js';
import { queryParameters } from '../query-string.js';
import { readRequest } from '../read-request.js';

/** `POST /osl/objects`, `GET /osl/objects`, `GET /osl/objects/{id}`: what is published by API. */
export function objectsRoutes(app: FastifyInstance, service: Service): void {
  app.post('/osl/objects', { schema: PUBLISH_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request, 'publish', () => readObjectsRequest(request));
    if ('keep' in asked) return sendDraft(request, reply, await keepDraft(service, request.call, asked.keep));
    if ('discard' in asked)
      return send(request, reply, {
        state: 'discarded',
        draft: await discardDraft(service, request.call, asked.discard),
      });
    const published = await publish(service, request.call, asked);
    if (published.kind === 'refused') {
      const { error, diagnostics } = published;
      const { requestId } = request.call;
      const body = Buffer.from(JSON.stringify({ ...problemOf(error, requestId), diagnostics }));
      return reply.code(error.http).headers(problemHeaders(error, requestId)).send(body);
    }
    const { kind, ...answer } = published;
    reply.header('etag', `"${answer.versions.manifest}"`);
    if (answer.changed && answer.version !== null)
      reply.code(201).header('location', `/osl/objects/${answer.version.id}`);
    return send(request, reply, { state: kind, ...answer });
  });
  app.get('/osl/objects', { schema: OBJECTS_OPERATION }, async (request, reply) => {
    await readRequest(service, request, 'objects', () => queryParameters(request, []));
    const found = await publications(service, request.call);
    return send(request, reply.header('etag', `"${found.version}"`), found);
  });
  app.get<{ Params: { id: string } }>(
    '/osl/objects/:id',
    { schema: OBJECT_OPERATION },
    async (request, reply) => {
      await readRequest(service, request, 'objects', () => queryParameters(request, []));
      return send(request, reply, await publication(service, request.call, request.params.id));
    },
  );
}

function sendDraft(
  request: FastifyRequest,
  reply: FastifyReply,
  draft: Awaited<ReturnType<typeof keepDraft>>,
): FastifyReply {
  return send(request, reply, { state: draft.state, draft });
}

function send({ call }: FastifyRequest, reply: FastifyReply, answer: object): FastifyReply {
  return reply
    .headers({ ...privateHeaders(call.requestId), 'content-type': 'application/json' })
    .send(Buffer.from(JSON.stringify({ request_id: call.requestId, ...answer })));
}
