import { fromJsonSchema } from '@modelcontextprotocol/server';
import { METRICS_MEMBERS } from '../rest/bodies/metrics.js';
import { MOST_NAMES, SCHEMA_PARTS } from '../rest/schema-wish.js';
import { type JsonShape, text } from '../rest/shape.js';

type Properties = Readonly<Record<string, unknown>>;
type ToolArguments = Readonly<Record<string, unknown>>;

/** Keywords that some JSON Schema readers refuse or interpret differently; the engine checks them itself. */
const OWN = /^(?:pattern|title|x-.*)$/;

/** Removes keywords that not every reader of JSON Schema (2020-12) knows. */
function portable(shape: unknown): unknown {
  if (Array.isArray(shape)) return shape.map(portable);
  if (typeof shape !== 'object' || shape === null) return shape;
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, value]) =>
      name === 'properties'
        ? [
            [
              name,
              Object.fromEntries(Object.entries(Object(value)).map(([key, one]) => [key, portable(one)])),
            ],
          ]
        : OWN.test(name)
          ? []
          : [[name, portable(value)]],
    ),
  );
}

/** Input schema, for clients only: tools check their arguments themselves. */
function input(properties: Properties): ReturnType<typeof fromJsonSchema<ToolArguments>> {
  const schema = { type: 'object', properties: portable({ ...properties }), additionalProperties: false };
  const described = fromJsonSchema<ToolArguments>(schema as Parameters<typeof fromJsonSchema>[0]);
  const standard = described['~standard'];
  // The engine refuses invalid arguments, with error code, envelope and audit record.
  const validate = (value: unknown) => ({ value: value as ToolArguments }); // an object, by the protocol
  return { ...described, '~standard': { ...standard, validate } };
}

/** One spelling of each member. */
const { metrics, group_by, where, order_by, limit, time_constraint } = METRICS_MEMBERS;

const QUESTION_ARGUMENTS: Properties = {
  osql: text('One SELECT in OSL-SQL.'),
  sql: text('Instead of `osql`: one SELECT over the tables that the manifest allows, by their own names.'),
  parameters: {
    type: 'array',
    items: { type: ['string', 'number', 'boolean', 'null'] },
    description:
      'Values of $1, $2, …, for `osql` and `sql`. Numbers of more than 15 digits are sent as strings.',
  },
  metrics: { ...metrics, description: 'Instead of `osql`: metrics by name. The members below go with it.' },
  group_by,
  where,
  order_by,
  limit,
  time_constraint,
};

// The engine checks that exactly one of `osql`, `sql` and `metrics` is given: many clients do not support `oneOf`
// here.
export const QUESTION = input(QUESTION_ARGUMENTS);

const NAMES: JsonShape = { type: 'array', items: { type: 'string' }, maxItems: MOST_NAMES };
const SCHEMA_ARGUMENTS: Properties = {
  names: {
    ...NAMES,
    description: 'Only what has these names: entities, facets, metrics, relationships, functions, operators.',
  },
  parts: {
    ...NAMES,
    items: { type: 'string', enum: [...SCHEMA_PARTS] },
    description:
      'Only these lists. `functions` and `operators` are long; `forms` has the shapes of questions.',
  },
  from: {
    type: 'integer',
    minimum: 0,
    description: 'Without the others: the next page of the index, its `next`.',
  },
};

export const SCHEMA_WISH = input(SCHEMA_ARGUMENTS);

export const QUESTION_NAMES: readonly string[] = Object.keys(QUESTION_ARGUMENTS);
export const SCHEMA_NAMES: readonly string[] = Object.keys(SCHEMA_ARGUMENTS);

const HEAD = {
  request_id: { type: ['string', 'null'], description: 'The call in the audit log.' },
  row_count: { type: 'integer' },
  truncated: { type: 'boolean', description: 'Something was left out; `hint` says how to ask for less.' },
  hint: { type: 'string' },
} as const;

function output(properties: Properties) {
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
