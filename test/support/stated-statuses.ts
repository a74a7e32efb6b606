import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { templateOf } from '../../src/surfaces/http/server.js';
import { ROUTES } from '../../src/surfaces/rest/openapi/document.js';
import { refusals, UNAUTHENTICATED } from '../../src/surfaces/rest/openapi/refusals.js';

/** What is answered where the document has no operation: an unknown path, another method of a known one, a preflight. */
const UNROUTED: ReadonlySet<string> = new Set([
  ...Object.keys(refusals(...UNAUTHENTICATED, 'access', 'path', 'body')),
  '204',
]);

/** Paths of other documents, or of none: pages, and the routes of admins. */
const ELSEWHERE = /^\/(?:console|admin)(?:\/|$)/;

function statedFor(method: string, path: string): ReadonlySet<string> | null {
  if (ELSEWHERE.test(path)) return null;
  const operations = ROUTES.get(templateOf(path));
  const operation = method === 'HEAD' ? operations?.GET : operations?.[method === 'GET' ? 'GET' : 'POST'];
  if (operation === undefined || !['GET', 'HEAD', 'POST'].includes(method)) return UNROUTED;
  const { response } = operation as { readonly response?: object }; // as `operation()` was given it
  return new Set(Object.keys(response ?? {}));
}

/** What of the document an answer is outside of; null where it is within. */
function unstated(method: string, url: string, status: number): string | null {
  const path = url.split('?', 1)[0] ?? '';
  const stated = statedFor(method, path);
  return stated === null || stated.has(String(status))
    ? null
    : `${method} ${path} answered ${status}, and the document has ${[...stated].join(', ')} only`;
}

let watching = false;

/**
 * From now on each answer of a gateway in this process is held against the document of its routes: a status that
 * `/openapi.json` does not state ends the test.
 */
export function holdToDocument(): void {
  if (watching) return;
  watching = true;
  subscribe('http.server.response.finish', (message) => {
    // Node's own; of the head as it was sent `_header` alone tells, since Fastify sets no header by itself.
    const { request, response } = message as {
      readonly request: IncomingMessage;
      readonly response: ServerResponse & { readonly _header?: string | null };
    };
    // Servers that a test makes for itself, of an issuer or a model, give no request ids.
    if (!/^x-request-id:/im.test(response._header ?? '')) return;
    const fault = unstated(request.method ?? '', request.url ?? '', response.statusCode);
    if (fault !== null) throw new Error(fault);
  });
}
