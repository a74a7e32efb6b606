import type { FastifyInstance } from 'fastify';

/** Headers that a page may send, beside those that every page may. */
const SENT =
  'Authorization, Content-Type, If-Match, If-None-Match, traceparent, OSL-Purpose, OSL-Break-Glass';
/** Headers of an answer that a page may read, beside those that every page may. */
const READ = 'Retry-After, X-Request-Id, ETag, Location, Allow, WWW-Authenticate, traceparent';
const METHODS = 'GET, HEAD, POST';
/** How long a browser may remember that it may ask. */
const REMEMBERED_SECONDS = 600;

/**
 * Lets pages of `origins`, each as a browser sends it, call everything below `/osl` and read `/openapi.json`. Nobody
 * else is told anything, and with no origins nothing here does anything. Tokens come in `Authorization`, never by
 * themselves as cookies do, so that credentials are never allowed. `/mcp` has a list of its own.
 *
 * Not by `@fastify/cors`: it writes into Fastify's headers, which a streamed answer leaves without and where a
 * route's own `Vary` takes its place, and it adds a route for every OPTIONS.
 *
 * INVARIANT: called before other hooks, so that a refusal of theirs can be read by the page that it is for.
 */
export function shareWith(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    if (isShared(request.url)) {
      const { origin } = request.headers;
      if (origin !== undefined && origins.includes(origin)) {
        reply.raw.setHeader('access-control-allow-origin', origin);
        reply.raw.setHeader('access-control-expose-headers', READ);
      }
    }
    done();
  });
  // Caches keep answers apart by it; what is streamed is kept by none.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isShared(request.url)) {
      const others = reply.getHeader('vary');
      reply.header('vary', others === undefined ? 'Origin' : `${String(others)}, Origin`);
    }
    done(null, payload);
  });
}

/**
 * Answers the question that a browser asks before a page's own. It has no token and touches nothing, so that it leaves
 * no record; from any other origin it is the unknown method that it is without a list.
 */
export function answerPreflights(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply;
    const asks = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
    if (!asks || !raw.hasHeader('access-control-allow-origin')) {
      done();
      return;
    }
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': SENT,
        'access-control-max-age': REMEMBERED_SECONDS,
      })
      .send();
  });
}

function isShared(url: string): boolean {
  const path = url.split('?', 1)[0] ?? '';
  return path.startsWith('/osl/') || path === '/openapi.json';
}
