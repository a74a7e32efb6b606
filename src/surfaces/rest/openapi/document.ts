import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { StandingParts } from '../parts.js';
import type { JsonShape } from '../shape.js';
import { COMPONENTS } from './components.js';
import { DOCUMENT_OPERATION } from './service-operations.js';

const PATH = '/openapi.json';

/** What a document says of the interface that it is of. */
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
 * Collects the schemas of all routes that come after, for `GET /openapi.json`. They describe and do nothing: routes
 * read their own requests, so that a fault is told by the catalogue and to those with a token only, and write their
 * own bytes.
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
 * `GET /openapi.json`: what the REST surface takes and answers. It names nothing of the tenant's, so anyone may read
 * it, and it is counted in the log, as `/health` is.
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
