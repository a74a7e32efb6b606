import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The shape of our events, written from OpenLineage's specification: 2-0-2 and its facets, as far as we use them. */

const FACET = {
  type: 'object',
  required: ['_producer', '_schemaURL'],
  properties: { _producer: { type: 'string', format: 'uri' }, _schemaURL: { type: 'string', format: 'uri' } },
} as const;

const facets = (known: object): object => ({
  type: 'object',
  properties: known,
  additionalProperties: FACET,
});

const TRANSFORMATION = {
  type: 'object',
  required: ['type'],
  properties: {
    type: { enum: ['DIRECT', 'INDIRECT'] },
    subtype: {
      enum: [
        'IDENTITY',
        'TRANSFORMATION',
        'AGGREGATION',
        'JOIN',
        'GROUP_BY',
        'FILTER',
        'SORT',
        'WINDOW',
        'CONDITIONAL',
      ],
    },
    description: { type: 'string' },
    masking: { type: 'boolean' },
  },
} as const;

const INPUT_FIELD = {
  type: 'object',
  required: ['namespace', 'name', 'field'],
  properties: {
    namespace: { type: 'string' },
    name: { type: 'string' },
    field: { type: 'string' },
    transformations: { type: 'array', items: TRANSFORMATION },
  },
} as const;

const COLUMN_LINEAGE = {
  ...FACET,
  required: [...FACET.required, 'fields'],
  properties: {
    ...FACET.properties,
    fields: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['inputFields'],
        properties: { inputFields: { type: 'array', items: INPUT_FIELD } },
      },
    },
    dataset: { type: 'array', items: INPUT_FIELD },
  },
} as const;

const SCHEMA = {
  ...FACET,
  properties: {
    ...FACET.properties,
    fields: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, type: { type: 'string' }, description: { type: 'string' } },
      },
    },
  },
} as const;

const TAGS = {
  ...FACET,
  properties: {
    ...FACET.properties,
    tags: {
      type: 'array',
      items: {
        type: 'object',
        required: ['key', 'value'],
        additionalProperties: { type: 'string' },
      },
    },
  },
} as const;

const LIFECYCLE = {
  ...FACET,
  required: [...FACET.required, 'lifecycleStateChange'],
  properties: {
    ...FACET.properties,
    lifecycleStateChange: { enum: ['ALTER', 'CREATE', 'DROP', 'OVERWRITE', 'RENAME', 'TRUNCATE'] },
  },
} as const;

const DATASET = {
  type: 'object',
  required: ['namespace', 'name'],
  properties: {
    namespace: { type: 'string' },
    name: { type: 'string' },
    facets: facets({
      columnLineage: COLUMN_LINEAGE,
      schema: SCHEMA,
      tags: TAGS,
      lifecycleStateChange: LIFECYCLE,
      version: { ...FACET, required: [...FACET.required, 'datasetVersion'] },
      documentation: { ...FACET, required: [...FACET.required, 'description'] },
    }),
  },
} as const;

const BASE = {
  eventTime: { type: 'string', format: 'date-time' },
  producer: { type: 'string', format: 'uri' },
} as const;

const RUN_EVENT = {
  type: 'object',
  required: ['eventTime', 'producer', 'schemaURL', 'run', 'job'],
  not: { required: ['dataset'] },
  properties: {
    ...BASE,
    schemaURL: { const: 'https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent' },
    eventType: { enum: ['START', 'RUNNING', 'COMPLETE', 'ABORT', 'FAIL', 'OTHER'] },
    run: {
      type: 'object',
      required: ['runId'],
      properties: {
        runId: { type: 'string', format: 'uuid' },
        facets: facets({
          nominalTime: {
            ...FACET,
            required: [...FACET.required, 'nominalStartTime'],
            properties: {
              ...FACET.properties,
              nominalStartTime: { type: 'string', format: 'date-time' },
              nominalEndTime: { type: 'string', format: 'date-time' },
            },
          },
        }),
      },
    },
    job: {
      type: 'object',
      required: ['namespace', 'name'],
      properties: { namespace: { type: 'string' }, name: { type: 'string' }, facets: facets({}) },
    },
    inputs: { type: 'array', items: DATASET },
    outputs: { type: 'array', items: DATASET },
  },
} as const;

const DATASET_EVENT = {
  type: 'object',
  required: ['eventTime', 'producer', 'schemaURL', 'dataset'],
  not: { anyOf: [{ required: ['job'] }, { required: ['run'] }] },
  properties: {
    ...BASE,
    schemaURL: { const: 'https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent' },
    dataset: DATASET,
  },
} as const;

const ajv = new Ajv2020({ allErrors: true, strict: false });
addFormats.default(ajv);
const run = ajv.compile(RUN_EVENT);
const dataset = ajv.compile(DATASET_EVENT);

/** What is wrong with an event; nothing where it is one. */
export function openLineageProblems(event: unknown): readonly string[] {
  const check = String(memberIn(event, 'schemaURL')).endsWith('RunEvent') ? run : dataset;
  if (check(event)) return [];
  return (check.errors ?? []).map((e) => `${e.instancePath} ${e.message}`);
}

/** The member at `path` of a JSON value; undefined where there is none. */
export function memberIn(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, key) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, key)
        ? (at as Readonly<Record<string, unknown>>)[key] // just looked at
        : undefined,
    value,
  );
}
