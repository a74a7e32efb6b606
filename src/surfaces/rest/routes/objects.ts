import type { FastifyInstance } from 'fastify';
import {
  candidates,
  discardDraft,
  publication,
  publications,
  storeDraft,
  suggest,
  validate,
  validateDraft,
} from '../../../ask/authoring/drafts.js';
import type { PublishingParts } from '../../../ask/authoring/publish.js';
import { publish } from '../../../ask/authoring/publish.js';
import { readObjectsRequest, readProposal, readSuggestRequest } from '../bodies/authoring.js';
import { readRequest } from '../call.js';
import {
  CANDIDATES_OPERATION,
  OBJECT_OPERATION,
  OBJECTS_OPERATION,
  PUBLISH_OPERATION,
  SUGGEST_OPERATION,
  VALIDATE_OPERATION,
} from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import { sendAnswer, sendProblem } from '../problem.js';

/**
 * `GET /osl/candidates`, `POST /osl/suggest` and `POST /osl/validate`, for manifest authors. They store nothing except
 * the state of drafts.
 */
export function authoringRoutes(app: FastifyInstance, service: PublishingParts): void {
  app.get('/osl/candidates', { schema: CANDIDATES_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'candidates', () => queryParameters(request, []));
    return sendAnswer(request, reply, await candidates(service, request.call));
  });
  app.post('/osl/suggest', { schema: SUGGEST_OPERATION }, async (request, reply) => {
    const target = await readRequest(service, request.call, 'suggest', () => readSuggestRequest(request));
    return sendAnswer(request, reply, await suggest(service, request.call, target));
  });
  app.post('/osl/validate', { schema: VALIDATE_OPERATION }, async (request, reply) => {
    const proposal = await readRequest(service, request.call, 'validate', () => readProposal(request));
    const { call } = request;
    if (proposal.kind === 'draft')
      return sendAnswer(request, reply, await validateDraft(service, call, proposal.id));
    return sendAnswer(request, reply, await validate(service, call, proposal));
  });
}

/** `POST /osl/objects`, `GET /osl/objects` and `GET /osl/objects/{id}`, for publishing through the API. */
export function objectsRoutes(app: FastifyInstance, service: PublishingParts): void {
  app.post('/osl/objects', { schema: PUBLISH_OPERATION }, async (request, reply) => {
    const change = await readRequest(service, request.call, 'publish', () => readObjectsRequest(request));
    if ('keep' in change) {
      const draft = await storeDraft(service, request.call, change.keep);
      return sendAnswer(request, reply, { state: draft.state, draft });
    }
    if ('discard' in change) {
      const draft = await discardDraft(service, request.call, change.discard);
      return sendAnswer(request, reply, { state: 'discarded', draft });
    }
    const outcome = await publish(service, request.call, change);
    if (outcome.kind === 'refused') {
      const { error, diagnostics } = outcome;
      return sendProblem(reply, error, request.call.requestId, { diagnostics });
    }
    const { kind, ...answer } = outcome;
    reply.header('etag', `"${answer.versions.manifest}"`);
    if (answer.changed && answer.version !== null)
      reply.code(201).header('location', `/osl/objects/${answer.version.id}`);
    return sendAnswer(request, reply, { state: kind, ...answer });
  });
  app.get('/osl/objects', { schema: OBJECTS_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'objects', () => queryParameters(request, []));
    const page = await publications(service, request.call);
    return sendAnswer(request, reply.header('etag', `"${page.version}"`), page);
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
