import { ref, text } from '../shape.js';
import { BEARER, json, operation } from './operations.js';
import { ANY_CALL, QUESTION, refusals } from './refusals.js';

export const WHY_OPERATION = operation({
  operationId: 'why',
  summary: 'Why the caller sees an object as it does',
  tags: ['graph'],
  security: BEARER,
  querystring: {
    type: 'object',
    properties: { object: text('An entity or facet, or a column of one: `osl.entities.customer.email`.') },
    required: ['object'],
  },
  response: { 200: json(ref('Why'), 'It.'), ...refusals(...ANY_CALL, ...QUESTION) },
});

export const REQUEST_ACCESS_OPERATION = operation({
  operationId: 'requestAccess',
  summary: 'Ask the owner of the policy for access',
  description:
    'On record, and where `OSL_OWNER_WEBHOOK` names a receiver, sent to it with what could be granted. The answer does not tell whether there is such an object.',
  tags: ['graph'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessRequest') } } },
  response: {
    200: json(ref('AccessRequested'), 'It is on record.'),
    ...refusals(...ANY_CALL, 'body', 'asking the owner'),
  },
});

export const EXPLAIN_ACCESS_OPERATION = operation({
  operationId: 'explainAccess',
  summary: 'Who sees what, and why',
  description:
    'For admins. Nothing of the data is read, but whether the row that `row` names is there for the subject.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessQuestion') } } },
  response: {
    200: json(ref('AccessExplanation'), 'It.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', ...QUESTION),
  },
});
