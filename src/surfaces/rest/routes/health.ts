import type { FastifyInstance } from 'fastify';
import { objectsOutOfService, unreachableNodes } from '../../../engine/index.js';
import type { Inflight } from '../inflight.js';
import { HEALTH_OPERATION, READY_OPERATION } from '../openapi/operations.js';
import type { StandingParts } from '../parts.js';
import { privateHeaders } from '../problem.js';

/** What must hold before requests should be sent here. It names no connector: anyone may ask. */
interface Readiness {
  readonly engines: boolean;
  readonly policy: boolean;
  readonly audit: boolean;
  readonly accepting: boolean;
}

/** How long one look at the engines counts, so that asking often costs nothing. */
const LOOK_MS = 1_000;

/**
 * `GET /health`: the process answers, and can record what it answers. `GET /ready`: it can serve. Neither needs a token,
 * and both are counted in the log.
 */
export function healthRoutes(app: FastifyInstance, service: StandingParts, inflight: Inflight): void {
  const enginesAnswer = seldom(LOOK_MS, async () => {
    const answers = await Promise.all([...service.engines.values()].map((engine) => engine.ailment()));
    return answers.every((ailment) => ailment === null);
  });
  app.get('/health', { schema: HEALTH_OPERATION }, async ({ call }, reply) => {
    const { failure } = service.audit.stats();
    const status = failure === null ? 200 : 503;
    service.probes.count('health', '/health', status, call);
    return reply
      .code(status)
      .headers(privateHeaders(call.requestId))
      .send(failure === null ? { status: 'ok' } : { status: 'failing', audit: failure.reason });
  });
  app.get('/ready', { schema: READY_OPERATION }, async ({ call }, reply) => {
    const checks: Readiness = {
      engines: await enginesAnswer(),
      policy: service.model().snapshot !== null,
      audit: service.audit.stats().failure === null,
      accepting: !inflight.draining && service.steady(),
    };
    const kept = service.keptPolicy();
    const outOfService = objectsOutOfService(service.engines);
    const silent = unreachableNodes(service.engines);
    const ready = Object.values(checks).every((holds) => holds);
    const status = ready ? 200 : 503;
    service.probes.count('ready', '/ready', status, call);
    return reply
      .code(status)
      .headers({ ...privateHeaders(call.requestId), ...(ready ? {} : { 'retry-after': '1' }) })
      .send({
        status: ready ? 'ready' : 'not_ready',
        checks,
        ...(outOfService > 0 && { objects_out_of_service: outOfService }),
        ...(silent > 0 && { data_nodes_unreachable: silent }),
        ...(kept !== null && { kept_policy: { since: instant(kept.since), until: instant(kept.until) } }),
      });
  });
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

/** `look` at most once in `ms`; whoever asks meanwhile gets the same answer. A look that fails is a no. */
function seldom(ms: number, look: () => Promise<boolean>): () => Promise<boolean> {
  let last: Promise<boolean> | null = null;
  let until = 0;
  return () => {
    const now = performance.now();
    if (last === null || now >= until) {
      last = look().catch(() => false);
      until = now + ms;
    }
    return last;
  };
}
