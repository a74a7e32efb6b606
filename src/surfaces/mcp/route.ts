import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { QueryError, queryError } from 'osl-compiler';
import { publicError, type RequestCall } from '../../ask/index.js';
import { admit, turnAway } from '../../ask/request/visit.js';
import { ambiguityOf, requirePlain } from '../rest/bodies/json-text.js';
import type { Inflight } from '../rest/inflight.js';
import { MCP_METADATA_OPERATION, MCP_OPERATION } from '../rest/openapi/service-operations.js';
import type { RestParts } from '../rest/parts.js';
import { problemHeaders, problemOf } from '../rest/problem.js';
import { LocalEngine } from './local-engine.js';
import type { MessageHandler } from './message-handler.js';
import { rawArguments } from './raw-arguments.js';

/** Whom the endpoint serves beside this machine. Hosts are names without a port. */
interface AllowedOrigins {
  /** Of the `Host` header. */
  readonly hosts: readonly string[];
  /** Of the `Origin` header: `https://app.example`. */
  readonly origins: readonly string[];
}

const LOCAL: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether a request names this server and comes from a page that may call it. A page that was rebound to this
 * machine by DNS calls it by a name of its own, so a host is an address or a name that is known; browsers send
 * `Origin`, other clients do not.
 */
function isServed(headers: IncomingHttpHeaders, allowed: AllowedOrigins): boolean {
  const host = hostname(`http://${headers.host ?? ''}`);
  if (host === null || !(LOCAL.has(host) || isAddress(host) || allowed.hosts.includes(host))) return false;
  const { origin } = headers;
  if (origin === undefined || allowed.origins.includes(origin)) return true;
  const page = hostname(origin);
  return page !== null && LOCAL.has(page);
}

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, '')) !== 0;
}

/** Lower case; IPv6 in brackets. Null where `url` is none, as the origin `null`. */
function hostname(url: string): string | null {
  try {
    const { protocol, hostname: name } = new URL(url);
    return (protocol === 'http:' || protocol === 'https:') && name !== '' ? name : null;
  } catch {
    return null;
  }
}

export interface McpOptions extends AllowedOrigins {
  /** The origin under which clients reach this server, such as `https://osl.example`; null: what `Host` says. */
  readonly publicUrl: string | null;
  /** Issuers of tokens, for clients that ask for one themselves. */
  readonly authorizationServers: readonly string[];
  readonly version: string;
  readonly maxBytes?: number;
}

const PATH = '/mcp';
const METADATA = `/.well-known/oauth-protected-resource${PATH}`;

/**
 * `POST /mcp`: MCP over streamable HTTP, without sessions. Each message is let in by the spine on its own token, and
 * recorded; what a tool then asks is a call of its own under the same token, and recorded as of this surface.
 */
export function mcpRoute(
  app: FastifyInstance,
  service: RestParts,
  inflight: Inflight,
  options: McpOptions,
): void {
  let loading: Promise<MessageHandler> | null = null;
  /** The protocol is a third of all modules, and most servers are never asked by it: it loads with its first message. */
  const handler = (): Promise<MessageHandler> => {
    loading ??= import('./message-handler.js').then((module) => module.messageHandler(service, options));
    return loading;
  };
  app.addHook('onClose', async () => (await loading)?.close());
  app.post(PATH, { schema: MCP_OPERATION }, async (request, reply) => {
    const call = await enter(service, request, reply, options);
    if (call === null) return reply;
    const engine = new LocalEngine(service, inflight, senderOf(call), reply.raw);
    const written = rawArguments(String(request.body));
    // What a tool runs ends by itself when the server stops or the client leaves: the message is told of the former.
    const response = await (await handler()).answer(webRequest(request), engine, written);
    reply.header('x-request-id', request.call.requestId).header('cache-control', 'no-store');
    return reply.send(response);
  });
  app.get(METADATA, { schema: MCP_METADATA_OPERATION }, (request, reply) => {
    service.probes.count('mcp_metadata', METADATA, 200, { ...request.call, surface: 'mcp' });
    reply.header('cache-control', 'public, max-age=3600');
    return reply.send({
      resource: `${originOf(request, options)}${PATH}`,
      authorization_servers: authorizationServers(service, options),
      bearer_methods_supported: ['header'],
      resource_name: 'OSL Gateway',
      ...loginOffer(service),
    });
  });
}

/** Those that the operator names, else the issuers whose tokens are exchanged here. */
function authorizationServers(service: RestParts, { authorizationServers }: McpOptions): readonly string[] {
  return authorizationServers.length > 0
    ? authorizationServers
    : service.logins().map(({ issuer }) => issuer);
}

/** With whom `osl login` logs in: the first issuer that says so. */
function loginOffer(service: RestParts): object {
  const found = service.logins().find(({ login }) => login !== null);
  if (found?.login === undefined || found.login === null) return {};
  const { clientId: client_id, scopes } = found.login;
  return { osl_login: { issuer: found.issuer, client_id, scopes } };
}

function senderOf({ credentials, origin }: RequestCall): Pick<RequestCall, 'credentials' | 'origin'> {
  return { credentials, ...(origin !== undefined && { origin }) };
}

/** The call that a message is which is let in; null where it was refused and answered. */
async function enter(
  service: RestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  options: McpOptions,
): Promise<RequestCall | null> {
  const call: RequestCall = { ...request.call, surface: 'mcp' };
  if (!isServed(request.headers, options)) {
    throw await turnAway(service, call, 'mcp', queryError('foreignOrigin', {}), 'anyone');
  }
  try {
    const fault = faultIn(request.body);
    if (fault !== null) throw await turnAway(service, call, 'mcp', fault, 'identified');
    await admit(service, call, 'mcp', 'catalog');
  } catch (error) {
    const told = publicError(service, call.requestId, error);
    if (told.entry !== 'missingToken' && told.entry !== 'invalidToken') throw told;
    challenge(reply, told, request, options);
    return null;
  }
  return call;
}

/** What is no JSON at all the protocol has an error of its own for. */
function faultIn(body: unknown): QueryError | null {
  if (!(body instanceof Buffer)) return null;
  const text = body.toString('utf8');
  try {
    requirePlain(text);
    JSON.parse(text);
  } catch (error) {
    return error instanceof QueryError ? error : null;
  }
  return ambiguityOf(text);
}

/** 401 for no token too, and where to learn how to get one. Source: MCP, Authorization; RFC 9728, 5.1. */
function challenge(
  reply: FastifyReply,
  error: QueryError,
  request: FastifyRequest,
  options: McpOptions,
): void {
  const { requestId } = request.call;
  const fault = error.entry === 'invalidToken' ? 'error="invalid_token", ' : '';
  const metadata = `${originOf(request, options)}${METADATA}`;
  reply
    .code(401)
    .headers({
      ...problemHeaders(error, requestId),
      'www-authenticate': `Bearer ${fault}resource_metadata="${metadata}"`,
    })
    .send(Buffer.from(JSON.stringify({ ...problemOf(error, requestId), status: 401 })));
}

/** What the client calls this server by; `Host` was looked at before it comes here, or is only handed back. */
function originOf(request: FastifyRequest, { publicUrl }: McpOptions): string {
  const scheme = request.raw.socket instanceof TLSSocket ? 'https' : 'http';
  return publicUrl ?? `${scheme}://${/^[\w.:[\]-]+$/.exec(request.headers.host ?? '')?.[0] ?? 'localhost'}`;
}

/** The request as the handler takes it: what the protocol reads of it, without the token. */
function webRequest(request: FastifyRequest): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    const read = name === 'accept' || name === 'content-type' || name.startsWith('mcp-');
    if (read && typeof value === 'string') headers.set(name, value);
  }
  const { body } = request;
  return new Request(`http://localhost${PATH}`, {
    method: 'POST',
    headers,
    body: body instanceof Buffer ? new Uint8Array(body) : '',
  });
}
