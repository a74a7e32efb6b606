import type { FastifyInstance } from 'fastify';
import type { PublishingParts } from '../../../ask/authoring/author.js';
import { discardDraft, keepDraft, publication, publications } from '../../../ask/authoring/drafts.js';
import { publish } from '../../../ask/authoring/publish.js';
import { readObjectsRequest } from '../bodies/objects.js';
import { OBJECT_OPERATION, OBJECTS_OPERATION, PUBLISH_OPERATION } from '../openapi/publishing-operations.js';
import { sendAnswer, sendProblem } from '../problem.js';
import { queryParameters } from '../query-string.js';
import { readRequest } from '../read-request.js';

/** `POST /osl/objects`, `GET /osl/objects`, `GET /osl/objects/{id}`: what is published by API. */
export function objectsRoutes(app: FastifyInstance, service: PublishingParts): void {
  app.post('/osl/objects', { schema: PUBLISH_OPERATION }, async (request, reply) => {
    const asked = await readRequest(service, request.call, 'publish', () => readObjectsRequest(request));
    if ('keep' in asked) {
      const draft = await keepDraft(service, request.call, asked.keep);
      return sendAnswer(request, reply, { state: draft.state, draft });
    }
    if ('discard' in asked) {
      const draft = await discardDraft(service, request.call, asked.discard);
      return sendAnswer(request, reply, { state: 'discarded', draft });
    }
    const published = await publish(service, request.call, asked);
    if (published.kind === 'refused') {
      const { error, diagnostics } = published;
      return sendProblem(reply, error, request.call.requestId, { diagnostics });
    }
    const { kind, ...answer } = published;
    reply.header('etag', `"${answer.versions.manifest}"`);
    if (answer.changed && answer.version !== null)
      reply.code(201).header('location', `/osl/objects/${answer.version.id}`);
    return sendAnswer(request, reply, { state: kind, ...answer });
  });
  app.get('/osl/objects', { schema: OBJECTS_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'objects', () => queryParameters(request, []));
    const found = await publications(service, request.call);
    return sendAnswer(request, reply.header('etag', `"${found.version}"`), found);
  });
  app.get<{ Params: { id: string } }>(
    '/osl/objects/:id',
    { schema: OBJECT_OPERATION },
    async (request, reply) => {
      await readRequest(service, request.call, 'objects', () => queryParameters(request, []));
      return sendAnswer(request, reply, await publication(service, request.call, request.params.id));
    },
  );
}
