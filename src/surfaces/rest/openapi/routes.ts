import type { FastifySchema } from 'fastify';
import { EXPLAIN_ACCESS_OPERATION, REQUEST_ACCESS_OPERATION, WHY_OPERATION } from './access-operations.js';
import {
  CANDIDATES_OPERATION,
  CONFORMANCE_OPERATION,
  HEALTH_OPERATION,
  HEALTHZ_OPERATION,
  MAP_OPERATION,
  QUERY_OPERATION,
  READY_OPERATION,
  READYZ_OPERATION,
  RESOLVE_OPERATION,
  SAMPLE_OPERATION,
  SCHEMA_OPERATION,
  SUGGEST_OPERATION,
  VALIDATE_OPERATION,
} from './operations.js';
import { OBJECT_OPERATION, OBJECTS_OPERATION, PUBLISH_OPERATION } from './publishing-operations.js';
import {
  DOCUMENT_OPERATION,
  MCP_METADATA_OPERATION,
  MCP_OPERATION,
  METRICS_OPERATION,
  TOKEN_OPERATION,
} from './service-operations.js';

type MethodOperations = Readonly<Partial<Record<'GET' | 'POST', FastifySchema>>>;

/** All paths of the REST surface, in document notation, with an operation per method. */
export const ROUTES: ReadonlyMap<string, MethodOperations> = new Map<string, MethodOperations>([
  ['/osl/query', { POST: QUERY_OPERATION }],
  ['/osl/sample', { POST: SAMPLE_OPERATION }],
  ['/osl/schema', { GET: SCHEMA_OPERATION }],
  ['/osl/schema/resolve', { GET: RESOLVE_OPERATION }],
  ['/osl/domain-map', { GET: MAP_OPERATION }],
  ['/osl/why', { GET: WHY_OPERATION }],
  ['/osl/access-requests', { POST: REQUEST_ACCESS_OPERATION }],
  ['/osl/access/explain', { POST: EXPLAIN_ACCESS_OPERATION }],
  ['/osl/candidates', { GET: CANDIDATES_OPERATION }],
  ['/osl/suggest', { POST: SUGGEST_OPERATION }],
  ['/osl/validate', { POST: VALIDATE_OPERATION }],
  ['/osl/objects', { GET: OBJECTS_OPERATION, POST: PUBLISH_OPERATION }],
  ['/osl/objects/{id}', { GET: OBJECT_OPERATION }],
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

/** Value of the `Allow` header for each path. */
export const METHODS: ReadonlyMap<string, string> = new Map(
  [...ROUTES].map(([path, operations]) => [
    path,
    Object.keys(operations)
      .map((method) => (method === 'GET' ? 'GET, HEAD' : method))
      .join(', '),
  ]),
);
