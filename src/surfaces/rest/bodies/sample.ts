import type { FastifyRequest } from 'fastify';
import { plainName } from 'osl-compiler';
import type { SampleRequest } from '../../../ask/data/sample.js';
import { exactly, type JsonShape, oneOf, orNull, text } from '../shape.js';
import { jsonFields } from './json.js';
import { readerOf } from './reader.js';

/** Default limits from the contract. */
const DEFAULT_LIMITS: Readonly<Record<SampleRequest['kind'], number>> = { table: 8, facet: 5 };
const LIMIT: JsonShape<number> = {
  type: 'integer',
  minimum: 1,
  maximum: 100,
  description: 'Default: 8 rows, 5 chunks.',
};

export const SAMPLE_REQUEST = exactly({
  kind: oneOf('table', 'facet'),
  name: text(undefined, { minLength: 1 }),
  'limit?': orNull(LIMIT),
});

const read = readerOf(SAMPLE_REQUEST);

/** @throws QueryError E4150, E0511 */
export function readSampleRequest(request: FastifyRequest): SampleRequest {
  const { kind, name, limit } = read(jsonFields(request));
  const plain = plainName(kind === 'table' ? 'entities' : 'facets', name);
  return { kind, name: plain, limit: limit ?? DEFAULT_LIMITS[kind] };
}
