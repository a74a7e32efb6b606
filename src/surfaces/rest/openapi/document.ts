import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { HealthParts } from '../parts.js';
import { type JsonShape, ref } from '../shape.js';
import { COMPONENTS } from './components.js';
import { type MethodOperations, REST_ROUTES } from './operations.js';
import { DOCUMENT_OPERATION, SERVICE_ROUTES } from './service-operations.js';

const PATH = '/openapi.json';

export interface DocumentInfo {
  readonly title: string;
  readonly description: string;
  readonly components: ReadonlyMap<string, JsonShape>;
}

const REST: DocumentInfo = {
  title: 'OSL Gateway',
  description: 'Governed queries over a semantic graph. `/osl/` is the root of v1.',
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
  const names = new Map<unknown, string>([...components].map(([name, shape]) => [shape, name]));
  for (const [name, shape] of components)
    app.addSchema({ $id: name, ...mapMembers(shape, (part) => withReferences(part, names)) });
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
            description: 'Actor token, version 2.',
          },
        },
      },
    },
    exposeHeadRoutes: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema${i}`) },
  });
}

/** Replaces each part that is a component of the document with a reference to the component. */
function withReferences(part: unknown, names: ReadonlyMap<unknown, string>): unknown {
  const name = names.get(part);
  if (name !== undefined) return ref(name);
  if (Array.isArray(part)) return part.map((item) => withReferences(item, names));
  return typeof part === 'object' && part !== null
    ? mapMembers(part, (member) => withReferences(member, names))
    : part;
}

function mapMembers(object: object, map: (member: unknown) => unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(object).map(([key, member]) => [key, map(member)]));
}

/**
 * `GET /openapi.json`. The document contains nothing tenant-specific, so no token is needed; as for `/health`,
 * requests are only counted in the log.
 */
export function documentRoute(app: FastifyInstance, service: Pick<HealthParts, 'probes'>): void {
  let bytes: Buffer | null = null;
  app.get(PATH, { schema: DOCUMENT_OPERATION }, async ({ call }, reply) => {
    service.probes.count('openapi', PATH, 200, call);
    bytes ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply
      .headers({ 'cache-control': 'public, max-age=3600', 'content-type': 'application/json' })
      .send(bytes);
  });
}

/** All paths of the REST surface as written in the document, with an operation per method. */
export const ROUTES: ReadonlyMap<string, MethodOperations> = new Map([...REST_ROUTES, ...SERVICE_ROUTES]);

export const METHODS: ReadonlyMap<string, string> = new Map(
  [...ROUTES].map(([path, operations]) => [
    path,
    Object.keys(operations)
      .map((method) => (method === 'GET' ? 'GET, HEAD' : method))
      .join(', '),
  ]),
);
