import type { FastifyRequest } from 'fastify';
import { type QueryError, queryError } from 'osl-compiler';
import { type RequestCall, type RequestParts, respond } from '../../ask/index.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';
import { isForwarded, LOCAL_HOSTS } from '../rest/call.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { privateHeaders } from '../rest/problem.js';
import type { DemoSignIn } from './route.js';

const LOOPBACK = /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/;

/**
 * True if the request comes from a page of this server in a browser on this machine. `Host` guards against DNS
 * rebinding, `Origin` and `Sec-Fetch-Site` against other origins; proxied requests are refused, since a proxy's
 * address does not identify the client.
 */
function isOwnPage(request: FastifyRequest): boolean {
  const { host, origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const page = parseUrl(`http://${host ?? ''}`);
  return (
    page !== null &&
    LOCAL_HOSTS.has(page.hostname) &&
    (origin === `http://${host}` || origin === `https://${host}`) &&
    (site === undefined || site === 'same-origin') &&
    LOOPBACK.test(request.socket.remoteAddress ?? '') &&
    !isForwarded(request)
  );
}

function parseUrl(url: string): URL | null {
  return URL.canParse(url) ? new URL(url) : null;
}

const PATH = '/console/demo-token';

/**
 * `POST /console/demo-token`: a token for one of `callers`, for pages of this server on this machine, without
 * authentication.
 *
 * INVARIANT: only `osl demo` imports this file (`test/ask/one-way.test.ts`), so no other server has the route.
 */
export function demoSignIn(
  callers: DemoSignIn['callers'],
  createToken: (chain: readonly string[]) => Promise<string>,
): DemoSignIn {
  return Object.freeze({
    callers,
    methods: new Map([[PATH, 'POST']]),
    add: (app, service) => {
      app.post(PATH, { schema: HIDDEN_OPERATION }, async (request, reply) => {
        const { call } = request;
        const refuse = async (reason: QueryError): Promise<never> => {
          throw await refuseCall(service, call, ACTION, reason, 'anyone');
        };
        if (!isOwnPage(request)) return refuse(queryError('notFound', {}));
        const chain = requestedChain(request);
        const caller = callers.find((candidate) => candidate.chain.join(' ') === chain?.join(' '));
        if (caller === undefined) {
          const detail = 'the body is {"chain": […]}, with one of the callers of the demo';
          return refuse(queryError('malformedBody', { detail }));
        }
        const token = await recordedToken(service, call, await createToken(caller.chain));
        return reply.headers(privateHeaders(call.requestId)).send({ token });
      });
    },
  } satisfies DemoSignIn);
}

const ACTION = 'demo_token';

/** Authenticates, rate limits and records a request made with `token`, then returns the token. @throws QueryError */
function recordedToken(service: RequestParts, call: RequestCall, token: string): Promise<string> {
  const address = call.credentials.kind === 'bearer' ? call.credentials.address : '';
  let detail: string | null = null;
  return respond<string, string>(
    service,
    { ...call, credentials: { kind: 'bearer', token, address } },
    {
      action: ACTION,
      bucket: 'catalog',
      decide: ({ identity: { tokenId, roles } }) => {
        detail = JSON.stringify({ token_id: tokenId, admin: roles.length > 0 });
        return token;
      },
      answer: (issued) => issued,
      detail: () => detail,
    },
  );
}

/**
 * Returns the requested chain, or null if the body is anything else. Pages of other origins cannot send this content
 * type without a preflight.
 */
function requestedChain({ body, headers }: FastifyRequest): readonly string[] | null {
  if (headers['content-type'] !== 'application/json' || !(body instanceof Buffer)) return null;
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    const chain = typeof parsed === 'object' && parsed !== null && 'chain' in parsed ? parsed.chain : null;
    return Array.isArray(chain) && chain.every((name) => typeof name === 'string') ? chain : null;
  } catch {
    return null;
  }
}
