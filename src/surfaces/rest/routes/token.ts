import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { QueryError } from 'osl-compiler';
import type { ExchangeRequest, PresentedToken } from '../../../../policy/index.js';
import type { RequestCall, RequestParts } from '../../../ask/index.js';
import {
  type ExchangeAnswer,
  exchangeTokens,
  refuseExchangeRequest,
  type TokenExchange,
} from '../../../ask/request/token-exchange.js';
import { TOKEN_OPERATION } from '../openapi/service-operations.js';
import { privateHeaders, problemHeaders, problemOf } from '../problem.js';

export interface TokenParts extends RequestParts {
  readonly exchange: TokenExchange;
  /** Names by which `resource` and `audience` may refer to this service. */
  readonly resources: () => readonly string[];
  /** Issuers of identity tokens. `login` is the issuer's OAuth client for interactive login; null if it has none. */
  readonly logins: () => readonly {
    readonly issuer: string;
    readonly login: { readonly clientId: string; readonly scopes: readonly string[] } | null;
  }[];
}

const TOKEN_PATH = '/oauth/token';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPES: ReadonlyMap<string, PresentedToken['kind']> = new Map([
  ['urn:ietf:params:oauth:token-type:id_token', 'id_token'],
  ['urn:ietf:params:oauth:token-type:access_token', 'access_token'],
  ['urn:ietf:params:oauth:token-type:jwt', 'jwt'],
]);
const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt';
const ADMIN_SCOPE = 'admin';
/** Maximum body size in bytes, enough for two tokens and names. */
const MAX_BODY = 65_536;

/** `POST /oauth/token` (RFC 8693): exchanges issuers' tokens for actor tokens according to the policy. */
export function tokenRoute(app: FastifyInstance, service: TokenParts, publicUrl: string | null): void {
  app.post(TOKEN_PATH, { schema: TOKEN_OPERATION }, async (request, reply) => {
    const { call } = request;
    try {
      const parsed = readForm(request, [...service.resources(), ...resourceNames(request, publicUrl)]);
      if (parsed.kind === 'fault') {
        const refusal = await refuseExchangeRequest(service, call, parsed.description);
        return sendFault(
          reply,
          refusal,
          call,
          refusal.entry === 'malformedBody' ? parsed.error : oauthErrorCode(refusal),
        );
      }
      return sendToken(
        reply,
        call,
        await exchangeTokens(service, call, parsed.request),
        parsed.request.admin,
      );
    } catch (error) {
      if (error instanceof QueryError) return sendFault(reply, error, call, oauthErrorCode(error));
      throw error;
    }
  });
}

type TokenRouteRequest =
  | { readonly kind: 'exchange'; readonly request: ExchangeRequest }
  | { readonly kind: 'fault'; readonly error: string; readonly description: string };

function fault(error: string, description: string): TokenRouteRequest {
  return { kind: 'fault', error, description };
}

function readForm(request: FastifyRequest, resources: readonly string[]): TokenRouteRequest {
  const form = parseForm(request);
  if (typeof form === 'string') return fault('invalid_request', form);
  if (form.get('grant_type') !== GRANT) return fault('unsupported_grant_type', `grant_type must be ${GRANT}`);
  const requestedType = form.get('requested_token_type');
  if (requestedType !== undefined && TYPES.get(requestedType) === undefined)
    return fault('invalid_request', `requested_token_type must be ${JWT_TYPE}`);
  for (const name of ['resource', 'audience'])
    if (form.has(name) && !resources.includes((form.get(name) ?? '').replace(/\/$/, '')))
      return fault('invalid_target', `${name} does not name this service`);
  const scopes = (form.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
  if (scopes.some((scope) => scope !== ADMIN_SCOPE))
    return fault('invalid_scope', 'scope may be `admin`, or nothing');
  const subject = presentedToken(form, 'subject');
  const actor =
    form.has('actor_token') || form.has('actor_token_type') ? presentedToken(form, 'actor') : null;
  if (subject === null) return fault('invalid_request', tokenExpected('subject'));
  if (actor === null && form.has('actor_token')) return fault('invalid_request', tokenExpected('actor'));
  if (actor === null && form.has('actor_token_type')) return fault('invalid_request', tokenExpected('actor'));
  return { kind: 'exchange', request: { subject, actor, admin: scopes.includes(ADMIN_SCOPE) } };
}

function tokenExpected(party: 'subject' | 'actor'): string {
  return `${party}_token must be a token, and ${party}_token_type one of ${[...TYPES.keys()].join(', ')}`;
}

function presentedToken(
  form: ReadonlyMap<string, string>,
  party: 'subject' | 'actor',
): PresentedToken | null {
  const token = form.get(`${party}_token`) ?? '';
  const kind = TYPES.get(form.get(`${party}_token_type`) ?? '');
  return token === '' || kind === undefined ? null : { token, kind };
}

/** Returns the form parameters, or an error text. A parameter may not be repeated (RFC 6749, 3.2). */
function parseForm({ body, headers }: FastifyRequest): ReadonlyMap<string, string> | string {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded')
    return 'the body must be application/x-www-form-urlencoded';
  if (!(body instanceof Buffer)) return 'the body is empty';
  if (body.length > MAX_BODY) return `the body has more than ${MAX_BODY} bytes`;
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(body.toString('utf8'))) {
    if (form.has(name)) return `parameter ${/^\w{1,40}$/.test(name) ? name : ''} came twice`;
    form.set(name, value);
  }
  return form;
}

function resourceNames({ headers }: FastifyRequest, publicUrl: string | null): readonly string[] {
  const origins = publicUrl === null ? [`http://${headers.host}`, `https://${headers.host}`] : [publicUrl];
  return origins.flatMap((origin) => [origin, `${origin}/mcp`]);
}

function sendToken(
  reply: FastifyReply,
  call: RequestCall,
  { token, lifetime }: ExchangeAnswer,
  admin: boolean,
): FastifyReply {
  return reply.headers({ ...privateHeaders(call.requestId), pragma: 'no-cache' }).send({
    access_token: token,
    issued_token_type: JWT_TYPE,
    token_type: 'Bearer',
    expires_in: lifetime,
    ...(admin && { scope: ADMIN_SCOPE }),
  });
}

/** Sends an error response as in RFC 6749, 5.2, extended by the members of a problem. */
function sendFault(reply: FastifyReply, error: QueryError, call: RequestCall, code: string): FastifyReply {
  const status = error.http === 401 || error.http === 403 ? 400 : error.http;
  const { 'www-authenticate': _, ...headers } = problemHeaders(error, call.requestId) as Record<
    string,
    string
  >;
  const body = {
    error: code,
    error_description: error.message,
    ...problemOf(error, call.requestId),
    status,
  };
  return reply
    .code(status)
    .headers({ ...headers, 'content-type': 'application/json' })
    .send(Buffer.from(JSON.stringify(body)));
}

/** Returns the OAuth error code. By RFC 8693, section 2.2.2, an unacceptable token is an invalid request. */
function oauthErrorCode({ http }: QueryError): string {
  if (http === 429 || http === 503) return 'temporarily_unavailable';
  return http < 500 ? 'invalid_request' : 'server_error';
}
