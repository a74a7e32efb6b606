import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RequestParts } from '../../ask/index.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { privateHeaders } from '../rest/problem.js';
import type { ConsoleFile } from './files.js';
import type { ConsoleOptions } from './options.js';

/**
 * What the page is told before anybody has signed in. It needs no token, so it holds nothing that an installation
 * keeps to itself: version and issuers stand in `/openapi.json` and `/.well-known/oauth-protected-resource/mcp` too.
 */
function toldOf({ version, admin, demo, localTokens, wire, logins }: ConsoleOptions) {
  return {
    version,
    admin,
    demo: demo === null ? null : { callers: demo.callers },
    local_tokens: localTokens,
    wire: wire(),
    issuers: logins().flatMap(({ issuer, login }) =>
      login === null ? [] : [{ issuer, client_id: login.clientId, scopes: login.scopes }],
    ),
  };
}

/**
 * What the console's pages may do: load and call nothing but this server, be in nobody's frame, and show no text as
 * markup. `connects` are origins beside this one that they may call: the issuers with which people sign in.
 *
 * `trusted-types`: the one policy that the page makes takes the empty text alone, so that whatever would put a value
 * into the page as markup throws instead.
 */
function consoleHeaders(connects: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'self'",
    ...(connects.length === 0 ? [] : [`connect-src 'self' ${connects.join(' ')}`]),
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types default',
  ];
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  };
}

/** The origins of what is fetched to sign in; a text that is no URL of the web has none. */
function originsOf(urls: readonly string[]): readonly string[] {
  const web = urls.filter((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
  return [...new Set(web.map((url) => new URL(url).origin))];
}

/** Methods of the console's paths. */
export const CONSOLE_METHODS: ReadonlyMap<string, string> = new Map([
  ['/console', 'GET, HEAD'],
  ['/console/', 'GET, HEAD'],
  ['/console/settings.json', 'GET, HEAD'],
]);

const PAGE = 'index.html';

/**
 * The console: pages that ask the governed API with their visitor's token, as any client does. Nothing here knows of
 * data; what is served is the same for everybody, so that no token is asked for and no record is made.
 */
export function consoleRoutes(app: FastifyInstance, service: RequestParts, options: ConsoleOptions): void {
  const { files, demo } = options;
  const hidden = { schema: HIDDEN_OPERATION };
  const headers = (): Readonly<Record<string, string>> =>
    consoleHeaders(originsOf(toldOf(options).issuers.map(({ issuer }) => issuer)));
  const serve = (name: string) => async (request: FastifyRequest, reply: FastifyReply) => {
    const file = files.get(name);
    if (file === undefined) return reply.callNotFound();
    return sendFile(request, reply.headers(headers()), file);
  };
  // Who types the address alone into a browser wants the pages; anybody else hears of them in the refusal.
  app.get('/', hidden, (request, reply) => {
    reply.header('vary', 'Accept');
    return wantsPage(request) ? reply.redirect('/console/', 302) : reply.callNotFound();
  });
  app.get('/console', hidden, (_request, reply) => reply.redirect('/console/', 308));
  app.get('/console/', hidden, serve(PAGE));
  app.get('/console/settings.json', hidden, async (request, reply) =>
    reply.headers({ ...privateHeaders(request.call.requestId), ...headers() }).send(toldOf(options)),
  );
  // By the name as it came: a name of no file is unknown, however it is written.
  app.get<{ Params: { '*': string } }>('/console/*', hidden, (request, reply) =>
    serve(request.params['*'])(request, reply),
  );
  demo?.add(app, service);
}

function wantsPage({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').split(',').some((type) => /^\s*text\/html\s*(?:;|$)/i.test(type));
}

async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: ConsoleFile,
): Promise<FastifyReply> {
  const { bytes, gzipped, etag } = await file.content();
  reply.headers({
    etag,
    'cache-control': file.lasting ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'Accept-Encoding',
  });
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  reply.header('content-type', file.type);
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(bytes);
  return reply.header('content-encoding', 'gzip').send(gzipped);
}
