import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RequestParts } from '../../ask/index.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { privateHeaders } from '../rest/problem.js';
import type { TokenParts } from '../rest/routes/token.js';

/**
 * Settings the page needs before sign-in. They are served without a token, so they are not confidential: version and
 * issuers are also in `/openapi.json` and `/.well-known/oauth-protected-resource/mcp`.
 */
function publicSettings({ version, admin, demo, localTokens, wire, logins }: ConsoleOptions) {
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
 * Security headers of the console: it may load from and call only this server, must not be framed, and never parses
 * text as markup. `connectOrigins` lists additional origins it may call: the sign-in issuers.
 *
 * `trusted-types`: the page's only policy accepts nothing but the empty string, so any other assignment of markup
 * throws.
 */
function consoleHeaders(connectOrigins: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'self'",
    ...(connectOrigins.length === 0 ? [] : [`connect-src 'self' ${connectOrigins.join(' ')}`]),
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

function originsOf(urls: readonly string[]): readonly string[] {
  const webUrls = urls.filter((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
  return [...new Set(webUrls.map((url) => new URL(url).origin))];
}

export const CONSOLE_METHODS: ReadonlyMap<string, string> = new Map([
  ['/console', 'GET, HEAD'],
  ['/console/', 'GET, HEAD'],
  ['/console/settings.json', 'GET, HEAD'],
]);

const PAGE = 'index.html';

/**
 * Routes of the console: pages that call the API with the visitor's token, like any client. Its files are the same for
 * all visitors, so requests are neither authenticated nor audited.
 */
export function consoleRoutes(app: FastifyInstance, service: RequestParts, options: ConsoleOptions): void {
  const { files, demo } = options;
  const routeOptions = { schema: HIDDEN_OPERATION };
  const headers = (): Readonly<Record<string, string>> =>
    consoleHeaders(originsOf(publicSettings(options).issuers.map(({ issuer }) => issuer)));
  const serve = (name: string) => async (request: FastifyRequest, reply: FastifyReply) => {
    const file = files.get(name);
    if (file === undefined) return reply.callNotFound();
    return sendFile(request, reply.headers(headers()), file);
  };
  // Browsers that open `/` are redirected; other clients get a hint in the error.
  app.get('/', routeOptions, (request, reply) => {
    reply.header('vary', 'Accept');
    return acceptsHtml(request) ? reply.redirect('/console/', 302) : reply.callNotFound();
  });
  app.get('/console', routeOptions, (_request, reply) => reply.redirect('/console/', 308));
  app.get('/console/', routeOptions, serve(PAGE));
  app.get('/console/settings.json', routeOptions, async (request, reply) =>
    reply.headers({ ...privateHeaders(request.call.requestId), ...headers() }).send(publicSettings(options)),
  );
  // The name is only looked up in the list of files, so no path can lead out of the console's folder.
  app.get<{ Params: { '*': string } }>('/console/*', routeOptions, (request, reply) =>
    serve(request.params['*'])(request, reply),
  );
  demo?.add(app, service);
}

function acceptsHtml({ headers }: FastifyRequest): boolean {
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
    'cache-control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'Accept-Encoding',
  });
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  reply.header('content-type', file.type);
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(bytes);
  return reply.header('content-encoding', 'gzip').send(gzipped);
}

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  /** True if admin pages are included. */
  readonly admin: boolean;
  readonly version: string;
  /** Passwordless sign-in; null unless this is `osl demo`, accessed from this machine. */
  readonly demo: DemoSignIn | null;
  /** True if tokens created by `osl token` are accepted. */
  readonly localTokens: boolean;
  /** Port of the Postgres listener and its use of TLS, for the psql commands that the console offers to copy. */
  readonly wire: () => { readonly port: number; readonly tls: boolean };
  readonly logins: TokenParts['logins'];
}

/** Passwordless sign-in as one of `callers`. Made by `demo.ts`, which only `osl demo` imports. */
export interface DemoSignIn {
  readonly callers: readonly { readonly chain: readonly string[]; readonly about: string }[];
  readonly methods: ReadonlyMap<string, string>;
  add(app: FastifyInstance, service: RequestParts): void;
}

interface ConsoleFile {
  readonly type: string;
  /** True if the file name contains a content hash, so the file may be cached forever. */
  readonly isHashed: boolean;
  content(): Promise<ConsoleContent>;
}

interface ConsoleContent {
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  /** ETag of the uncompressed content. */
  readonly etag: string;
}

export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.woff2', 'font/woff2'],
]);

/** Folder where Vite puts files whose names contain a content hash. */
const HASHED_FOLDER = 'assets/';

/**
 * Files of the built console, listed once at startup: files added later are not served, and request paths never reach
 * the file system. Empty if the console has not been built.
 */
export function consoleFiles(folder: string): ConsoleFiles {
  const names = listFiles(folder, '').filter((name) => TYPES.has(extname(name)));
  return new Map(names.map((name) => [name, fileOf(folder, name)]));
}

function listFiles(folder: string, prefix: string): readonly string[] {
  return entriesOf(join(folder, prefix)).flatMap((entry) => {
    const name = `${prefix}${entry.name}`;
    if (entry.isDirectory()) return listFiles(folder, `${name}/`);
    return entry.isFile() ? [name] : [];
  });
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // not built
  }
}

function fileOf(folder: string, name: string): ConsoleFile {
  let cached: Promise<ConsoleContent> | null = null;
  return {
    type: TYPES.get(extname(name)) ?? 'application/octet-stream',
    isHashed: name.startsWith(HASHED_FOLDER),
    content: () => {
      cached ??= readContent(join(folder, name)).catch((error: unknown) => {
        cached = null;
        throw error;
      });
      return cached;
    },
  };
}

async function readContent(path: string): Promise<ConsoleContent> {
  const bytes = readFileSync(path);
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { bytes, gzipped: await promisify(gzip)(bytes), etag };
}
