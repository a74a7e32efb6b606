import { ref, text } from '../shape.js';
import { BEARER, json, operation } from './operations.js';
import { ANY_CALL, refusals } from './refusals.js';

export const PUBLISH_OPERATION = operation({
  operationId: 'publish',
  summary: 'Publish, deprecate, withdraw or roll back',
  description:
    'For admins. Validated again, then a new version that cannot be changed, served whole or not at all. It cannot change connectors, policy, endpoints or allowlists.',
  tags: ['authoring'],
  security: BEARER,
  headers: {
    type: 'object',
    properties: { 'if-match': text('The version that the change was made for, in quotes.') },
  },
  body: { content: { 'application/json': { schema: ref('ObjectsRequest') } } },
  response: {
    200: json(ref('Publication'), 'A draft was kept or discarded; or all of it was published already.'),
    201: json(ref('Publication'), 'A new version is served.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'draft', 'publishing', 'notFound'),
    422: {
      description:
        'It could not be served: E1002, with `diagnostics`; or there is nothing of that name: E1001.',
      content: { 'application/problem+json': { schema: ref('Unservable') } },
    },
  },
});

export const OBJECTS_OPERATION = operation({
  operationId: 'publications',
  summary: 'What is published, its history, and drafts',
  tags: ['authoring'],
  security: BEARER,
  response: {
    200: json(ref('Publications'), 'The ETag is the version that is served.'),
    ...refusals(...ANY_CALL, 'authoring'),
  },
});

export const OBJECT_OPERATION = operation({
  operationId: 'publication',
  summary: 'One version, or one draft',
  tags: ['authoring'],
  security: BEARER,
  params: {
    type: 'object',
    properties: { id: text('Number or id of a version, or id of a draft.') },
    required: ['id'],
  },
  response: { 200: json(ref('Published'), 'It.'), ...refusals(...ANY_CALL, 'authoring', 'notFound') },
});
