import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { StandingParts } from '../parts.js';
import type { JsonShape } from '../shape.js';
import { COMPONENTS } from './components.js';
import { DOCUMENT_OPERATION } from './service-operations.js';

const PATH = '/openapi.json';

/** Head and components of an OpenAPI document. */
export interface DocumentInfo {
  readonly title: string;
  readonly description: string;
  readonly components: ReadonlyMap<string, JsonShape>;
}

const REST: DocumentInfo = {
  title: 'OSL Gateway',
  description: 'Governed questions about a semantic graph. `/osl/` is the root of v1.',
  components: COMPONENTS,
};

/**
 * Registers OpenAPI generation for all routes added afterwards. Schemas are documentation only: routes read requests
 * and write responses themselves, so that errors come from the catalogue and need a valid token.
 */
export async function documentRoutes(
  app: FastifyInstance,
  version: string,
  { title, description, components }: DocumentInfo = REST,
): Promise<void> {
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  for (const [name, shape] of components) app.addSchema({ $id: name, ...shape });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version,
        description,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'An actor token, version 2.',
          },
        },
      },
    },
    exposeHeadRoutes: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema${i}`) },
  });
}

/**
 * `GET /openapi.json`. It contains nothing tenant-specific, so no token is needed; requests are counted in the log,
 * as for `/health`.
 */
export function documentRoute(app: FastifyInstance, service: Pick<StandingParts, 'probes'>): void {
  let bytes: Buffer | null = null;
  app.get(PATH, { schema: DOCUMENT_OPERATION }, async ({ call }, reply) => {
    service.probes.count('openapi', PATH, 200, call);
    bytes ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply
      .headers({ 'cache-control': 'public, max-age=3600', 'content-type': 'application/json' })
      .send(bytes);
  });
}
