import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RequestParts } from '../../../ask/index.js';
import { admitCall } from '../../../ask/request/calls-without-data.js';
import { instant } from '../../../base/instant.js';
import { objectsOutOfService, unreachableNodes } from '../../../engine/index.js';
import { readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import {
  CONFORMANCE_OPERATION,
  HEALTH_OPERATION,
  HEALTHZ_OPERATION,
  READY_OPERATION,
  READYZ_OPERATION,
} from '../openapi/operations.js';
import { queryParameters } from '../parameters.js';
import type { HealthParts } from '../parts.js';
import { privateHeaders } from '../problem.js';

/** Conditions checked by `/ready`. Connectors are not named, since callers are not authenticated. */
interface Readiness {
  readonly engines: boolean;
  readonly policy: boolean;
  readonly audit: boolean;
  readonly accepting: boolean;
  readonly control: boolean;
  readonly clock: boolean;
  readonly limits: boolean;
  readonly issuers: boolean;
}

const HEALTH_CHECK_INTERVAL_MS = 1_000;

/**
 * `GET /health`: the process responds and can write its audit log. `GET /ready`: it can serve requests. Both are also
 * available at the paths that Kubernetes uses by convention. No token is needed; requests are only counted in the log.
 */
export function healthRoutes(app: FastifyInstance, service: HealthParts, inflight: Inflight): void {
  const enginesHealthy = throttled(HEALTH_CHECK_INTERVAL_MS, async () => {
    const reasons = await Promise.all(
      [...service.engines.values()].map((engine) => engine.unhealthyReason()),
    );
    return reasons.every((reason) => reason === null);
  });
  const health = async ({ call }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { failure } = service.audit.stats();
    const status = failure === null ? 200 : 503;
    service.probes.count('health', '/health', status, call);
    return reply
      .code(status)
      .headers(privateHeaders(call.requestId))
      .send(failure === null ? healthBody(service) : { status: 'failing', audit: failure.reason });
  };
  const ready = async ({ call }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { control, clock, limits, issuers } = service.servicesReached();
    const checks: Readiness = {
      engines: await enginesHealthy(),
      policy: service.model().snapshot !== null,
      audit: service.audit.stats().failure === null,
      accepting: !inflight.draining && service.acceptsRequests(),
      control,
      clock,
      limits,
      issuers: issuers !== 'none',
    };
    const outOfService = objectsOutOfService(service.engines);
    const unreachable = unreachableNodes(service.engines);
    const isReady = Object.values(checks).every((isMet) => isMet);
    const status = isReady ? 200 : 503;
    service.probes.count('ready', '/ready', status, call);
    return reply
      .code(status)
      .headers({ ...privateHeaders(call.requestId), ...(isReady ? {} : { 'retry-after': '1' }) })
      .send({
        status: isReady ? 'ready' : 'not_ready',
        checks,
        ...(outOfService > 0 && { objects_out_of_service: outOfService }),
        ...(unreachable > 0 && { data_nodes_unreachable: unreachable }),
        ...fallbackPolicyMember(service),
      });
  };
  app.get('/health', { schema: HEALTH_OPERATION }, health);
  app.get('/healthz', { schema: HEALTHZ_OPERATION }, health);
  app.get('/ready', { schema: READY_OPERATION }, ready);
  app.get('/readyz', { schema: READYZ_OPERATION }, ready);
}

/** Returns the state of the process for `/health`, as far as it is known without querying a database. */
function healthBody(service: HealthParts): object {
  const { control, clock, limits, issuers } = service.servicesReached();
  const sync = service.audit.stats().sync === 'kernel' ? { audit_sync: 'kernel' } : {};
  const engines = [...service.engines.values()].every(
    (engine) =>
      engine.reached && engine.pools().every((pool) => pool.purpose === 'system' || pool.reach !== 'lost'),
  );
  const parts = {
    engines,
    policy: service.model().snapshot !== null,
    control,
    clock,
    limits,
    issuers: issuers === 'all',
  };
  const missing = Object.entries(parts).flatMap(([part, isReached]) => (isReached ? [] : [part]));
  const fallback = fallbackPolicyMember(service);
  const details = { ...sync, ...fallback };
  if (missing.length === 0) return { status: 'kept_policy' in fallback ? 'degraded' : 'ok', ...details };
  return { status: 'degraded', waiting_for: missing, ...details };
}

function fallbackPolicyMember({ fallbackPolicy }: HealthParts): { readonly kept_policy?: object } {
  const policy = fallbackPolicy();
  if (policy === null) return {};
  const { since, until } = policy;
  const secondsLeft = Math.max(0, Math.ceil((until - Date.now()) / 1_000));
  return { kept_policy: { since: instant(since), until: instant(until), seconds_left: secondsLeft } };
}

/**
 * Returns a function that runs `check` at most once every `ms` milliseconds; concurrent callers share the result. A
 * failure counts as false.
 */
function throttled(ms: number, check: () => Promise<boolean>): () => Promise<boolean> {
  let last: Promise<boolean> | null = null;
  let until = 0;
  return () => {
    const now = performance.now();
    if (last === null || now >= until) {
      last = check().catch(() => false);
      until = now + ms;
    }
    return last;
  };
}

/**
 * Conformance levels that this server declares, generated by test/proof/conformance from the levels it proves; do not
 * edit.
 */
export const CONFORMANCE_LEVELS: readonly string[] = [
  'discovery',
  'query',
  'retrieval',
  'traversal',
  'metrics',
  'authoring',
  'mcp',
  'authentication',
  'errors',
  'limits',
  'versioning',
  'lineage',
  'columnar',
];

/**
 * `GET /osl/conformance`: the contract's levels that are fully met. Requires a valid token, with no particular rights.
 */
export function conformanceRoute(app: FastifyInstance, service: RequestParts): void {
  app.get('/osl/conformance', { schema: CONFORMANCE_OPERATION }, async (request, reply) => {
    const { call } = request;
    await readRequest(service, request.call, 'conformance', () => queryParameters(request, []));
    await admitCall(service, call, 'conformance', 'query');
    return reply.headers(privateHeaders(call.requestId)).send(CONFORMANCE_LEVELS);
  });
}
