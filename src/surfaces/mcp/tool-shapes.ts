import { fromJsonSchema } from '@modelcontextprotocol/server';
import { METRICS_MEMBERS } from '../rest/bodies/metrics.js';
import type { Question } from './engine.js';
import { PARTS, type Part } from './excerpt.js';

/** Of the metrics body, one spelling of each member. */
const { metrics, group_by, where, order_by, limit, time_constraint } = METRICS_MEMBERS;

export const QUESTION = fromJsonSchema<Question>({
  type: 'object',
  properties: {
    osql: { type: 'string', minLength: 1, description: 'One SELECT in OSL-SQL.' },
    sql: {
      type: 'string',
      minLength: 1,
      description:
        'Instead of `osql`: one SELECT over the tables that the manifest allows, by their own names.',
    },
    parameters: {
      type: 'array',
      items: { type: ['string', 'number', 'boolean', 'null'] },
      description: 'Values of $1, $2, …, for `osql` and `sql`.',
    },
    metrics: { ...metrics, description: 'Instead of `osql`: metrics by name. The members below go with it.' },
    group_by,
    where,
    order_by,
    limit,
    time_constraint,
  },
  // That exactly one of `osql`, `sql` and `metrics` is there is said by the engine: many clients take no `oneOf` here.
  minProperties: 1,
  additionalProperties: false,
});

export interface SchemaWish {
  readonly names?: readonly string[];
  readonly parts?: readonly Part[];
}

export const SCHEMA_WISH = fromJsonSchema<SchemaWish>({
  type: 'object',
  properties: {
    names: {
      type: 'array',
      items: { type: 'string' },
      description: 'Only entities, facets, metrics and relationships of these names.',
    },
    parts: { type: 'array', items: { enum: [...PARTS] }, description: 'Only these lists of the schema.' },
  },
  additionalProperties: false,
});

const HEAD = {
  request_id: { type: ['string', 'null'], description: 'The call in the audit log.' },
  row_count: { type: 'integer' },
  truncated: { type: 'boolean', description: 'Something was left out; `hint` says how to ask for less.' },
  hint: { type: 'string' },
} as const;

function output(properties: Readonly<Record<string, unknown>>) {
  return fromJsonSchema<Record<string, unknown>>({
    type: 'object',
    properties: { ...HEAD, ...properties },
    required: ['request_id', 'row_count', 'truncated'],
  });
}

export const ROWS = output({
  form: { type: 'string' },
  columns: { type: 'array', items: { type: 'object' } },
  rows: { type: 'array', items: { type: 'object' } },
  available_rows: {
    type: 'integer',
    description: 'Rows that the engine answered, of which `rows` has what fits.',
  },
});
export const PLAN = output({
  plan: { type: 'object' },
  columns: { type: 'array' },
  objects: { type: 'array' },
});
export const SCHEMA = output({ schema: { type: 'object' } });
