import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import type { HealthParts } from '../parts.js';
import type { JsonShape } from '../shape.js';
import { COMPONENTS } from './components.js';
import {
  APPROVALS_OPERATION,
  CANDIDATES_OPERATION,
  CONFORMANCE_OPERATION,
  DASHBOARDS_OPERATION,
  DECIDE_APPROVAL_OPERATION,
  EXPLAIN_ACCESS_OPERATION,
  HEALTH_OPERATION,
  HEALTHZ_OPERATION,
  MAP_OPERATION,
  OBJECT_OPERATION,
  OBJECTS_OPERATION,
  PUBLISH_OPERATION,
  QUERY_OPERATION,
  READY_OPERATION,
  READYZ_OPERATION,
  RECEIPT_OPERATION,
  REQUEST_ACCESS_OPERATION,
  RESOLVE_OPERATION,
  SAMPLE_OPERATION,
  SCHEMA_OPERATION,
  SUBSCRIBE_OPERATION,
  SUGGEST_OPERATION,
  VALIDATE_OPERATION,
  WHY_OPERATION,
} from './operations.js';
import {
  DOCUMENT_OPERATION,
  MCP_METADATA_OPERATION,
  MCP_OPERATION,
  METRICS_OPERATION,
  TOKEN_OPERATION,
} from './service-operations.js';

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
            description: 'Actor token, version 2.',
          },
        },
      },
    },
    exposeHeadRoutes: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json['$id'] ?? `schema${i}`) },
  });
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

type MethodOperations = Readonly<Partial<Record<'GET' | 'POST', FastifySchema>>>;

/** All paths of the REST surface as written in the document, with an operation per method. */
export const ROUTES: ReadonlyMap<string, MethodOperations> = new Map<string, MethodOperations>([
  ['/osl/query', { POST: QUERY_OPERATION }],
  ['/osl/subscribe', { POST: SUBSCRIBE_OPERATION }],
  ['/osl/sample', { POST: SAMPLE_OPERATION }],
  ['/osl/schema', { GET: SCHEMA_OPERATION }],
  ['/osl/schema/resolve', { GET: RESOLVE_OPERATION }],
  ['/osl/domain-map', { GET: MAP_OPERATION }],
  ['/osl/why', { GET: WHY_OPERATION }],
  ['/osl/access-requests', { POST: REQUEST_ACCESS_OPERATION }],
  ['/osl/approvals', { GET: APPROVALS_OPERATION }],
  ['/osl/approvals/{id}', { POST: DECIDE_APPROVAL_OPERATION }],
  ['/osl/access/explain', { POST: EXPLAIN_ACCESS_OPERATION }],
  ['/osl/candidates', { GET: CANDIDATES_OPERATION }],
  ['/osl/suggest', { POST: SUGGEST_OPERATION }],
  ['/osl/validate', { POST: VALIDATE_OPERATION }],
  ['/osl/objects', { GET: OBJECTS_OPERATION, POST: PUBLISH_OPERATION }],
  ['/osl/objects/{id}', { GET: OBJECT_OPERATION }],
  ['/osl/receipts/{request_id}', { GET: RECEIPT_OPERATION }],
  ['/osl/dashboards', { GET: DASHBOARDS_OPERATION }],
  ['/osl/conformance', { GET: CONFORMANCE_OPERATION }],
  ['/oauth/token', { POST: TOKEN_OPERATION }],
  ['/mcp', { POST: MCP_OPERATION }],
  ['/.well-known/oauth-protected-resource/mcp', { GET: MCP_METADATA_OPERATION }],
  ['/openapi.json', { GET: DOCUMENT_OPERATION }],
  ['/health', { GET: HEALTH_OPERATION }],
  ['/healthz', { GET: HEALTHZ_OPERATION }],
  ['/ready', { GET: READY_OPERATION }],
  ['/readyz', { GET: READYZ_OPERATION }],
  ['/metrics', { GET: METRICS_OPERATION }],
]);

export const METHODS: ReadonlyMap<string, string> = new Map(
  [...ROUTES].map(([path, operations]) => [
    path,
    Object.keys(operations)
      .map((method) => (method === 'GET' ? 'GET, HEAD' : method))
      .join(', '),
  ]),
);
