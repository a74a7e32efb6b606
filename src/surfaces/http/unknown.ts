import type { FastifyReply, FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import type { RequestParts } from '../../ask/index.js';
import { turnAway } from '../../ask/request/visit.js';
import { METHODS } from '../rest/openapi/routes.js';
import { sendProblem } from '../rest/problem.js';

/** `path` as the list of methods has it. */
export function templateOf(path: string): string {
  return path
    .replace(/^\/osl\/objects\/[^/]+$/, '/osl/objects/{id}')
    .replace(/^\/admin\/sessions\/[^/]+\/(cancel|end)$/, '/admin/sessions/{id}/$1')
    .replace(/^\/admin\/audit\/requests\/[^/]+(\/proofs)?$/, '/admin/audit/requests/{id}$1');
}

/** Where to go from `/`, in words that hold nothing of the request. */
function entrances(methods: ReadonlyMap<string, string>): string {
  const pages = methods.has('/console/') ? 'the console is at /console/, ' : '';
  return `${pages}what programs may ask is in /openapi.json`;
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
    allowed === undefined
      ? queryError('notFound', path === '/' ? { elsewhere: entrances(methods) } : {})
      : queryError('methodNotAllowed', { allowed });
  const who = /^\/(?:osl|admin)(?:\/|$)/.test(path) ? 'identified' : 'anyone';
  const told = await turnAway(service, call, 'http', reason, who);
  if (told.entry === 'methodNotAllowed' && allowed !== undefined) reply.header('allow', allowed);
  return sendProblem(reply, told, call.requestId);
}
