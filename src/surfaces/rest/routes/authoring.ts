import type { FastifyInstance } from 'fastify';
import type { PublishingParts } from '../../../ask/authoring/author.js';
import { validateDraft } from '../../../ask/authoring/drafts.js';
import { candidates, suggest, validate } from '../../../ask/authoring/propose.js';
import { readProposal, readWish } from '../bodies/authoring.js';
import { CANDIDATES_OPERATION, SUGGEST_OPERATION, VALIDATE_OPERATION } from '../openapi/operations.js';
import { sendAnswer } from '../problem.js';
import { queryParameters } from '../query-string.js';
import { readRequest } from '../read-request.js';

/** `GET /osl/candidates`, `POST /osl/suggest`, `POST /osl/validate`: for those who write the manifest. Nothing is stored but a draft's state. */
export function authoringRoutes(app: FastifyInstance, service: PublishingParts): void {
  app.get('/osl/candidates', { schema: CANDIDATES_OPERATION }, async (request, reply) => {
    await readRequest(service, request.call, 'candidates', () => queryParameters(request, []));
    return sendAnswer(request, reply, await candidates(service, request.call));
  });
  app.post('/osl/suggest', { schema: SUGGEST_OPERATION }, async (request, reply) => {
    const wish = await readRequest(service, request.call, 'suggest', () => readWish(request));
    return sendAnswer(request, reply, await suggest(service, request.call, wish));
  });
  app.post('/osl/validate', { schema: VALIDATE_OPERATION }, async (request, reply) => {
    const proposal = await readRequest(service, request.call, 'validate', () => readProposal(request));
    const { call } = request;
    if (proposal.kind === 'draft')
      return sendAnswer(request, reply, await validateDraft(service, call, proposal.id));
    return sendAnswer(request, reply, await validate(service, call, proposal));
  });
}
