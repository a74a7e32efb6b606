import type { FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import type { Upstream } from '../../ask/data/explain.js';
import type { Body } from '../../ask/index.js';
import type { BoundValue } from '../../engine/index.js';
import { type Fields, jsonFields, malformed, noField } from './json-body.js';
import { METRICS_FIELDS, readMetricsRequest } from './metrics-body.js';
import { boundParameters } from './parameters.js';

/** What `POST /osl/query` asks for. */
export interface QueryRequest {
  readonly body: Body;
  readonly explain: boolean;
  readonly upstream: Upstream | null;
  readonly parameters: readonly BoundValue[];
}

/** What an admin may be shown of what goes to the database. */
export const UPSTREAM = ['statement', 'plan'] as const satisfies readonly Upstream[];

const SHAPES = ['osql', 'sql', 'metrics'] as const;
const WITH_ALL: ReadonlySet<string> = new Set(['explain', 'upstream', 'parameters']);

/**
 * Reads the body: exactly one of `{osql}`, `{sql}` and `{metrics, …}`, and what goes with it. Values of the body
 * are never shown, names of its fields are.
 *
 * @throws QueryError E4150, E0511, E0513
 */
export function readQueryRequest(request: FastifyRequest): QueryRequest {
  return queryRequestIn(jsonFields(request));
}

/** @throws QueryError E0511, E0513 */
export function queryRequestIn(fields: Fields): QueryRequest {
  const shape = shapeOf(fields);
  const explain = fields.get('explain') ?? false;
  if (typeof explain !== 'boolean') throw malformed('`explain` must be true or false');
  const upstream = upstreamOf(fields);
  if (upstream !== null && !explain) throw malformed('`upstream` goes with `explain` only');
  const parameters = fields.get('parameters');
  if (parameters !== undefined && shape === 'metrics')
    throw malformed('`parameters` go with `osql` and `sql` only');
  return {
    body: bodyOf(shape, fields),
    explain,
    upstream,
    parameters: parameters === undefined ? [] : boundParameters(parameters),
  };
}

function upstreamOf(fields: Fields): Upstream | null {
  const asked = fields.get('upstream');
  if (asked === undefined) return null;
  const upstream = UPSTREAM.find((u) => u === asked);
  if (upstream === undefined) throw malformed('`upstream` must be "statement" or "plan"');
  return upstream;
}

function shapeOf(fields: Fields): (typeof SHAPES)[number] {
  const [shape, ...others] = SHAPES.filter((s) => fields.has(s));
  if (others.length > 0) throw queryError('mixedBody', {});
  if (shape === undefined)
    throw malformed(`the body has none of ${SHAPES.map((s) => `\`${s}\``).join(', ')}`);
  for (const name of fields.keys()) {
    if (name === shape || WITH_ALL.has(name)) continue;
    if (!METRICS_FIELDS.has(name)) throw noField(name);
    if (shape !== 'metrics') throw queryError('mixedBody', {});
  }
  return shape;
}

function bodyOf(shape: (typeof SHAPES)[number], fields: Fields): Body {
  if (shape === 'metrics') {
    return { kind: 'metrics', request: readMetricsRequest(fields) };
  }
  const text = fields.get(shape);
  if (typeof text !== 'string') throw malformed(`\`${shape}\` must be a string`);
  return { kind: shape, text };
}
