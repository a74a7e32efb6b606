import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { QueryError, queryError } from 'osl-compiler';
import { publicError, type RequestCall } from '../../ask/index.js';
import { admitCall, refuseCall } from '../../ask/request/calls-without-data.js';
import { findAmbiguity, requireExactNumbers, requireFewValues } from '../rest/bodies/json.js';
import { LOCAL_HOSTS } from '../rest/call.js';
import type { Inflight } from '../rest/inflight.js';
import { MCP_METADATA_OPERATION, MCP_OPERATION } from '../rest/openapi/service-operations.js';
import type { RestParts } from '../rest/parts.js';
import { problemHeaders, problemOf } from '../rest/problem.js';
import { LocalEngine } from './local-engine.js';
import type { MessageHandler } from './message-handler.js';
import { rawArguments } from './raw-arguments.js';

/** Allowed hosts and origins, in addition to this machine. Hosts have no port. */
interface AllowedOrigins {
  readonly hosts: readonly string[];
  /** Values of the `Origin` header, such as `https://app.example`. */
  readonly origins: readonly string[];
}

/**
 * True if the request addresses this server and comes from an allowed page. Guards against DNS rebinding: the host
 * must be an address or a known name. Only browsers send `Origin`.
 */
function isAllowed(headers: IncomingHttpHeaders, allowed: AllowedOrigins): boolean {
  const host = hostname(`http://${headers.host ?? ''}`);
  if (host === null || !(LOCAL_HOSTS.has(host) || isAddress(host) || allowed.hosts.includes(host)))
    return false;
  const { origin } = headers;
  if (origin === undefined || allowed.origins.includes(origin)) return true;
  const page = hostname(origin);
  return page !== null && LOCAL_HOSTS.has(page);
}

function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, '')) !== 0;
}

/**
 * Host name of `url` in lower case, with IPv6 addresses in brackets. Null if `url` is not an HTTP URL, such as the
 * origin `null`.
 */
function hostname(url: string): string | null {
  try {
    const { protocol, hostname: name } = new URL(url);
    return (protocol === 'http:' || protocol === 'https:') && name !== '' ? name : null;
  } catch {
    return null;
  }
}

export interface McpOptions extends AllowedOrigins {
  /** Public origin of this server, such as `https://osl.example`; null to derive it from `Host`. */
  readonly publicUrl: string | null;
  /** Token issuers for clients that obtain tokens themselves; if empty, the issuers of identity tokens. */
  readonly authorizationServers: readonly string[];
  readonly version: string;
  readonly maxBytes?: number;
}

const PATH = '/mcp';
const METADATA = `/.well-known/oauth-protected-resource${PATH}`;

/**
 * `POST /mcp`: MCP over streamable HTTP, without sessions. Each message is authenticated and recorded; each tool call
 * is a separate request with the same token, recorded under surface `mcp`.
 */
export function mcpRoute(
  app: FastifyInstance,
  service: RestParts,
  inflight: Inflight,
  options: McpOptions,
): void {
  let loading: Promise<MessageHandler> | null = null;
  /** The protocol library is a third of all modules and rarely used, so it is loaded with the first message. */
  const handler = (): Promise<MessageHandler> => {
    loading ??= import('./message-handler.js').then((module) => module.messageHandler(service, options));
    return loading;
  };
  app.addHook('onClose', async () => (await loading)?.close());
  app.post(PATH, { schema: MCP_OPERATION }, async (request, reply) => {
    const message = await admit(service, request, reply, options);
    if (message === null) return reply;
    const { call, text, parsed } = message;
    const engine = new LocalEngine(service, inflight, senderOf(call), reply.raw);
    // No cleanup needed: executions are aborted if the server stops or the client disconnects.
    const response = await (await handler()).answer(webRequest(request), parsed, engine, rawArguments(text));
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
      ...loginMember(service),
    });
  });
}

function authorizationServers(service: RestParts, { authorizationServers }: McpOptions): readonly string[] {
  return authorizationServers.length > 0
    ? authorizationServers
    : service.logins().map(({ issuer }) => issuer);
}

function loginMember(service: RestParts): object {
  const provider = service.logins().find(({ login }) => login !== null);
  if (provider?.login === undefined || provider.login === null) return {};
  const { clientId: client_id, scopes } = provider.login;
  return { osl_login: { issuer: provider.issuer, client_id, scopes } };
}

function senderOf({ credentials, origin }: RequestCall): Pick<RequestCall, 'credentials' | 'origin'> {
  return { credentials, ...(origin !== undefined && { origin }) };
}

interface Message {
  readonly text: string;
  /** Undefined if the text is not JSON, which MCP reports itself. */
  readonly parsed: unknown;
}

/** Returns the message if it is admitted; null if its token is missing or invalid and a 401 has been sent. */
async function admit(
  service: RestParts,
  request: FastifyRequest,
  reply: FastifyReply,
  options: McpOptions,
): Promise<(Message & { readonly call: RequestCall }) | null> {
  const call: RequestCall = { ...request.call, surface: 'mcp' };
  if (!isAllowed(request.headers, options)) {
    throw await refuseCall(service, call, 'mcp', queryError('foreignOrigin', {}), 'anyone');
  }
  try {
    const message = readMessage(request.body);
    if (message instanceof QueryError) throw await refuseCall(service, call, 'mcp', message, 'identified');
    await admitCall(service, call, 'mcp', 'catalog');
    return { ...message, call };
  } catch (error) {
    const refusal = publicError(service, call.requestId, error);
    if (refusal.entry !== 'missingToken' && refusal.entry !== 'invalidToken') throw refusal;
    challenge(reply, refusal, request, options);
    return null;
  }
}

/**
 * Parses a message, once; returns an error if it has a fault, such as a duplicate key. A batch may contain no number
 * that JSON parsers would round: `rawArguments` only reads the arguments of one message.
 */
function readMessage(body: unknown): Message | QueryError {
  const text = body instanceof Buffer ? body.toString('utf8') : '';
  let parsed: unknown;
  try {
    requireFewValues(text);
    parsed = JSON.parse(text);
    if (Array.isArray(parsed)) requireExactNumbers(text);
  } catch (error) {
    return error instanceof QueryError ? error : { text, parsed: undefined };
  }
  return findAmbiguity(text) ?? { text, parsed };
}

/** Responds 401 with the metadata URL, even if no token was sent. Source: MCP, Authorization; RFC 9728, 5.1. */
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

/** Origin of this server as seen by the client. `Host` either has been checked or is only echoed back. */
function originOf(request: FastifyRequest, { publicUrl }: McpOptions): string {
  const scheme = request.raw.socket instanceof TLSSocket ? 'https' : 'http';
  return publicUrl ?? `${scheme}://${/^[\w.:[\]-]+$/.exec(request.headers.host ?? '')?.[0] ?? 'localhost'}`;
}

/** Builds the protocol library's request, with only the headers it reads and without the token. */
function webRequest(request: FastifyRequest): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    const isForwarded = name === 'accept' || name === 'content-type' || name.startsWith('mcp-');
    if (isForwarded && typeof value === 'string') headers.set(name, value);
  }
  const { body } = request;
  return new Request(`http://localhost${PATH}`, {
    method: 'POST',
    headers,
    body: body instanceof Buffer ? new Uint8Array(body) : '',
  });
}
