import { object, oneOf, text } from '../shape.js';
import { BEARER, json, operation, type Routes } from './operations.js';
import { ANY_CALL, problem, refusals, UNAUTHENTICATED } from './refusals.js';

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
    code: text('Error code, as in `Problem`; its other members are included as well.'),
    request_id: text('ID of this request, also in the audit log.'),
  },
  'An error (RFC 6749, 5.2).',
);

export const TOKEN_OPERATION = operation({
  operationId: 'exchangeToken',
  summary: "Exchange an issuer's token for an actor token",
  description: 'Token exchange (RFC 8693), according to the rules of the policy.',
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
          'scope?': text('`admin`, or empty.'),
        }),
      },
    },
  },
  response: {
    ...refusals(...UNAUTHENTICATED, 'bodyTooLarge'),
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
    400: json(
      OAUTH_FAULT,
      'The token was not exchanged, for example because it is invalid or gives no access.',
    ),
    429: json(OAUTH_FAULT, 'Limit exceeded (see `Retry-After`).'),
    503: json(OAUTH_FAULT, 'Temporarily unavailable.'),
  },
});

export const MCP_OPERATION = operation({
  operationId: 'mcp',
  summary: 'Handle a message of the Model Context Protocol',
  description:
    'Streamable HTTP without sessions. If a tool call is refused, the response has status 200 and its result contains the problem.',
  tags: ['protocols'],
  security: BEARER,
  body: {
    content: {
      'application/json': { schema: { type: 'object', description: 'JSON-RPC 2.0 message.' } },
    },
  },
  response: {
    ...refusals(...ANY_CALL, 'mcp', 'bodyTooLarge'),
    200: json({ type: 'object' }, 'JSON-RPC 2.0 response.', {
      'text/event-stream': text('The same response as a server-sent event.'),
    }),
    202: { description: 'A notification was accepted.', type: 'null' },
    400: problem('Invalid message: E0511, or a JSON-RPC error.'),
    401: problem('No token, or an invalid one: E2102, E3001. The protocol requires 401 in both cases.'),
    406: json({ type: 'object' }, 'The client accepts no response format of the protocol: a JSON-RPC error.'),
    415: json({ type: 'object' }, 'The body is not JSON: a JSON-RPC error.'),
  },
});

export const MCP_METADATA_OPERATION = operation({
  operationId: 'mcpMetadata',
  summary: 'Authorization servers for `/mcp` (RFC 9728)',
  tags: ['protocols'],
  response: {
    200: json(object({ resource: text(), authorization_servers: { type: 'array' } }), 'The metadata.'),
    ...refusals(...UNAUTHENTICATED),
  },
});

export const METRICS_OPERATION = operation({
  operationId: 'metrics',
  summary: 'Metrics for Prometheus',
  description: 'Only for clients on this machine and in the networks of `OSL_METRICS_FROM`; others get 404.',
  tags: ['protocols'],
  response: {
    200: { description: 'Prometheus text format.', content: { 'text/plain': { schema: text() } } },
    ...refusals(...UNAUTHENTICATED, 'notFound'),
  },
});

export const DOCUMENT_OPERATION = operation({
  operationId: 'openapi',
  summary: 'This OpenAPI document',
  tags: ['protocols'],
  response: {
    200: json({ type: 'object', description: 'OpenAPI 3.1.' }, 'The document.'),
    ...refusals(...UNAUTHENTICATED),
  },
});

export const SERVICE_ROUTES: Routes = [
  ['/oauth/token', { POST: TOKEN_OPERATION }],
  ['/mcp', { POST: MCP_OPERATION }],
  ['/.well-known/oauth-protected-resource/mcp', { GET: MCP_METADATA_OPERATION }],
  ['/openapi.json', { GET: DOCUMENT_OPERATION }],
  ['/metrics', { GET: METRICS_OPERATION }],
];
