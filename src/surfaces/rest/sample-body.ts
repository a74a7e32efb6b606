import type { FastifyRequest } from 'fastify';
import { plainName } from 'osl-compiler';
import type { SampleRequest } from '../../ask/data/sample.js';
import { jsonFields, malformed, noField } from './json-body.js';

/** Rows where the body does not say: the contract's. */
const DEFAULT_LIMITS: Readonly<Record<SampleRequest['kind'], number>> = { table: 8, facet: 5 };
const MAX_LIMIT = 100;
const FIELDS: ReadonlySet<string> = new Set(['kind', 'name', 'limit']);

/**
 * Reads `{kind: 'table' | 'facet', name, limit?}`.
 *
 * @throws QueryError E4150, E0511
 */
export function readSampleRequest(request: FastifyRequest): SampleRequest {
  const fields = jsonFields(request);
  for (const field of fields.keys()) if (!FIELDS.has(field)) throw noField(field);
  const kind = fields.get('kind');
  if (kind !== 'table' && kind !== 'facet') throw malformed("`kind` must be 'table' or 'facet'");
  const name = fields.get('name');
  if (typeof name !== 'string' || name === '') throw malformed('`name` must be a string, and not empty');
  const limit = fields.get('limit') ?? DEFAULT_LIMITS[kind];
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw malformed(`\`limit\` must be a whole number from 1 to ${MAX_LIMIT}`);
  }
  return { kind, name: plainName(kind === 'table' ? 'entities' : 'facets', name), limit };
}
