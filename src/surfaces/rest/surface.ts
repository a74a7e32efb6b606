import type { FastifyInstance } from 'fastify';
import type { Inflight } from './inflight.js';
import { documentRoute, documentRoutes } from './openapi/document.js';
import type { RestParts } from './parts.js';
import { accessRoutes } from './routes/access.js';
import { conformanceRoute } from './routes/conformance.js';
import { graphRoutes } from './routes/graph.js';
import { healthRoutes } from './routes/health.js';
import { authoringRoutes, objectsRoutes } from './routes/objects.js';
import { queryRoute } from './routes/query.js';
import { sampleRoute } from './routes/sample.js';

/**
 * Routes below `/osl`, `/health`, `/ready`, and their OpenAPI document. They only translate: requests go to
 * `src/ask`, errors come from the catalogue. The app must set each request's `call` and an error handler.
 */
export async function restRoutes(
  app: FastifyInstance,
  service: RestParts,
  inflight: Inflight,
  version: string,
): Promise<void> {
  await documentRoutes(app, version);
  queryRoute(app, service, inflight);
  sampleRoute(app, service, inflight);
  graphRoutes(app, service);
  accessRoutes(app, service, inflight);
  authoringRoutes(app, service);
  objectsRoutes(app, service);
  conformanceRoute(app, service);
  healthRoutes(app, service, inflight);
  documentRoute(app, service);
}
