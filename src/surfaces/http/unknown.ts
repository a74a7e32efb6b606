import type { FastifyReply, FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import type { RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';
import { sendProblem } from '../rest/problem.js';

/** What each path answers; a test holds it to the routes. */
export const METHODS: ReadonlyMap<string, string> = new Map([
  ['/osl/query', 'POST'],
  ['/osl/sample', 'POST'],
  ['/osl/schema', 'GET, HEAD'],
  ['/osl/schema/resolve', 'GET, HEAD'],
  ['/osl/domain-map', 'GET, HEAD'],
  ['/osl/why', 'GET, HEAD'],
  ['/osl/access-requests', 'POST'],
  ['/osl/access/explain', 'POST'],
  ['/osl/candidates', 'GET, HEAD'],
  ['/osl/suggest', 'POST'],
  ['/osl/validate', 'POST'],
  ['/osl/objects', 'GET, HEAD, POST'],
  ['/osl/objects/{id}', 'GET, HEAD'],
  ['/osl/conformance', 'GET, HEAD'],
  ['/oauth/token', 'POST'],
  ['/mcp', 'POST'],
  ['/.well-known/oauth-protected-resource/mcp', 'GET, HEAD'],
  ['/openapi.json', 'GET, HEAD'],
  ['/health', 'GET, HEAD'],
  ['/ready', 'GET, HEAD'],
  ['/metrics', 'GET, HEAD'],
]);

/** `path` as the list of methods has it. */
function templateOf(path: string): string {
  return path
    .replace(/^\/osl\/objects\/[^/]+$/, '/osl/objects/{id}')
    .replace(/^\/admin\/sessions\/[^/]+\/(cancel|end)$/, '/admin/sessions/{id}/$1')
    .replace(/^\/admin\/audit\/requests\/[^/]+(\/proofs)?$/, '/admin/audit/requests/{id}$1');
}

/**
 * Answers what no route does: another method of a known path (E4050), or an unknown path (E4040). Below `/osl` and
 * `/admin` that is told only to those who have a valid token.
 */
export async function sendUnknown(
  service: RequestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  methods: ReadonlyMap<string, string> = METHODS,
): Promise<FastifyReply> {
  const { call } = request;
  const path = request.url.split('?', 1)[0] ?? '';
  const allowed = methods.get(templateOf(path));
  const reason =
    allowed === undefined ? queryError('notFound', {}) : queryError('methodNotAllowed', { allowed });
  const who = /^\/(?:osl|admin)(?:\/|$)/.test(path) ? 'identified' : 'anyone';
  const told = await turnAway(service, call, 'http', reason, who);
  if (told.entry === 'methodNotAllowed' && allowed !== undefined) reply.header('allow', allowed);
  return sendProblem(reply, told, call.requestId);
}
