import { object, oneOf, text } from '../shape.js';
import { BEARER, json, operation } from './operations.js';
import { ANY_CALL, problem, refusals, UNSIGNED } from './refusals.js';

/* Operations outside the JSON API: OAuth, MCP, Prometheus and the document. Generated clients omit them. */

/** `POST /oauth/token` reports errors in the format of RFC 6749, extended by the members of a problem. */
const OAUTH_FAULT = object(
  {
    error: oneOf(
      'invalid_request',
      'invalid_scope',
      'invalid_target',
      'unsupported_grant_type',
      'temporarily_unavailable',
      'server_error',
    ),
    error_description: text(),
    code: text('As in `Problem`, whose other members are here too.'),
    request_id: text('The call in the audit log.'),
  },
  'An error (RFC 6749, 5.2).',
);

export const TOKEN_OPERATION = operation({
  operationId: 'exchangeToken',
  summary: "Exchange an issuer's token for an actor token",
  description: 'RFC 8693, by the rules of the policy.',
  tags: ['protocols'],
  body: {
    content: {
      'application/x-www-form-urlencoded': {
        schema: object({
          grant_type: oneOf('urn:ietf:params:oauth:grant-type:token-exchange'),
          subject_token: text(),
          subject_token_type: text(),
          'actor_token?': text(),
          'actor_token_type?': text(),
          'requested_token_type?': text(),
          'resource?': text(),
          'audience?': text(),
          'scope?': text('`admin`, or nothing.'),
        }),
      },
    },
  },
  response: {
    ...refusals(...UNSIGNED, 'bodyTooLarge'),
    200: json(
      object({
        access_token: text(),
        issued_token_type: text(),
        token_type: oneOf('Bearer'),
        expires_in: { type: 'integer' },
        'scope?': text(),
      }),
      'The token.',
    ),
    400: json(OAUTH_FAULT, 'Not exchanged: also where a token is not valid, or nothing is granted.'),
    429: json(OAUTH_FAULT, 'Over the limit, with `Retry-After`.'),
    503: json(OAUTH_FAULT, 'It cannot be exchanged now.'),
  },
});

export const MCP_OPERATION = operation({
  operationId: 'mcp',
  summary: 'A message of the Model Context Protocol',
  description:
    'Streamable HTTP without sessions. What a tool refuses is a result with status 200 that carries the problem.',
  tags: ['protocols'],
  security: BEARER,
  body: {
    content: {
      'application/json': { schema: { type: 'object', description: 'A message of JSON-RPC 2.0.' } },
    },
  },
  response: {
    ...refusals(...ANY_CALL, 'mcp', 'bodyTooLarge'),
    200: json({ type: 'object' }, 'The answer, of JSON-RPC 2.0.', {
      'text/event-stream': text('The same as an event.'),
    }),
    202: { description: 'A notification was taken.', type: 'null' },
    400: problem('Not a message that can be answered: E0511, or an error of JSON-RPC.'),
    401: problem(
      'No token, or one that is not valid: E2102, E3001. The protocol asks for 401 in both cases.',
    ),
    406: json({ type: 'object' }, 'The client takes no answer of the protocol: an error of JSON-RPC.'),
    415: json({ type: 'object' }, 'The body is not JSON: an error of JSON-RPC.'),
  },
});

export const MCP_METADATA_OPERATION = operation({
  operationId: 'mcpMetadata',
  summary: 'Who issues tokens for `/mcp` (RFC 9728)',
  tags: ['protocols'],
  response: {
    200: json(object({ resource: text(), authorization_servers: { type: 'array' } }), 'It.'),
    ...refusals(...UNSIGNED),
  },
});

export const METRICS_OPERATION = operation({
  operationId: 'metrics',
  summary: 'Metrics for Prometheus',
  description:
    'For this machine and the networks of `OSL_METRICS_FROM`; for everybody else there is nothing here.',
  tags: ['protocols'],
  response: {
    200: { description: 'Prometheus text format.', content: { 'text/plain': { schema: text() } } },
    ...refusals(...UNSIGNED, 'notFound'),
  },
});

export const DOCUMENT_OPERATION = operation({
  operationId: 'openapi',
  summary: 'This document',
  tags: ['protocols'],
  response: {
    200: json({ type: 'object', description: 'OpenAPI 3.1.' }, 'It.'),
    ...refusals(...UNSIGNED),
  },
});
