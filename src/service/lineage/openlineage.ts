import { createHash } from 'node:crypto';
import type { Influence, Transformation } from 'osl-compiler';
import { type DatasetDescription, datasetName } from './datasets.js';
import type { AuditLeaf, StatementRuns } from './window.js';

/** Events of OpenLineage 2-0-2, as JSON values. */

const EVENT = 'https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs';
const FACET = 'https://openlineage.io/spec/facets';

export interface ProducerIdentity {
  /** A URI for this software version. */
  readonly producer: string;
  readonly namespace: string;
}

export function producerOf(version: string): string {
  return `urn:osl-gateway:${version}`;
}

function facet(identity: ProducerIdentity, schema: string, fields: object): object {
  return { _producer: identity.producer, _schemaURL: schema, ...fields };
}

function standardFacet(identity: ProducerIdentity, name: string, version: string, fields: object): object {
  return facet(identity, `${FACET}/${version}/${name}.json#/$defs/${name}`, fields);
}

function ownFacet(identity: ProducerIdentity, name: string, fields: object): object {
  return facet(identity, `urn:osl-gateway:facet:${name}:1`, fields);
}

/** Derives a UUID (version 8 of RFC 9562) from `parts`; the same parts give the same UUID. */
function uuidOf(...parts: readonly (string | number)[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Returns the RunEvent for the runs of a statement within a window. `writer` identifies the audit log. */
export function runEvent(
  runs: StatementRuns,
  writer: string,
  identity: ProducerIdentity,
): { readonly id: string; readonly event: object } {
  const { description, plan, manifest, policy, first, last } = runs;
  const runId = uuidOf(writer, plan, manifest ?? '', policy ?? '', first.seq);
  const datasets = new Set([
    ...(description?.objects ?? runs.objects),
    ...(description?.columns === null || description === null ? [] : inputObjects(description.columns)),
  ]);
  const event = {
    eventType: runs.end,
    eventTime: runs.lastTime,
    producer: identity.producer,
    schemaURL: `${EVENT}/RunEvent`,
    run: {
      runId,
      facets: {
        nominalTime: standardFacet(identity, 'NominalTimeRunFacet', '1-0-1', {
          nominalStartTime: runs.firstTime,
          nominalEndTime: runs.lastTime,
        }),
        osl_reads: ownFacet(identity, 'reads', {
          count: runs.count,
          rows: runs.rows,
          outcomes: runs.outcomes,
          surfaces: runs.surfaces,
        }),
        osl_governance: ownFacet(identity, 'governance', {
          manifestVersion: manifest,
          policyVersion: policy,
          maskedColumns: description?.masked ?? null,
        }),
        osl_audit: ownFacet(identity, 'audit', { writer, first: leafFields(first), last: leafFields(last) }),
      },
    },
    job: {
      namespace: identity.namespace,
      name: `read.${plan}`,
      facets: {
        jobType: standardFacet(identity, 'JobTypeJobFacet', '2-0-3', {
          processingType: 'BATCH',
          integration: 'OSL',
          jobType: 'QUERY',
        }),
        osl_form: ownFacet(identity, 'form', { form: description?.form ?? runs.form }),
      },
    },
    inputs: [...datasets].sort().map((name) => ({ namespace: identity.namespace, name: datasetName(name) })),
    outputs: description?.columns == null ? [] : [answerDataset(plan, description.columns, identity)],
  };
  return { id: `run_${runId}`, event };
}

function leafFields({ segment, seq, leaf }: AuditLeaf): object {
  return { segment, seq, leafHash: leaf };
}

type LineageColumns = NonNullable<NonNullable<StatementRuns['description']>['columns']>;

function inputObjects({ outputs, rows }: LineageColumns): readonly string[] {
  return [...outputs.flatMap((o) => o.inputs), ...rows].map((i) => i.object);
}

/** Describes a statement's result as a transient dataset with column lineage. */
function answerDataset(plan: string, { outputs, rows }: LineageColumns, identity: ProducerIdentity): object {
  return {
    namespace: identity.namespace,
    name: `answer.${plan}`,
    facets: { columnLineage: columnLineageFacet(outputs, rows, identity) },
  };
}

export function columnLineageFacet(
  outputs: LineageColumns['outputs'],
  rows: readonly Influence[],
  identity: ProducerIdentity,
): object {
  const fields = outputs.map(({ name, inputs }) => [
    name,
    { inputFields: inputs.map((i) => inputField(i, identity)) },
  ]);
  return standardFacet(identity, 'ColumnLineageDatasetFacet', '1-2-0', {
    fields: Object.fromEntries(fields),
    dataset: rows.map((i) => inputField(i, identity)),
  });
}

function inputField({ object, column, transformations }: Influence, identity: ProducerIdentity): object {
  return {
    namespace: identity.namespace,
    name: datasetName(object),
    field: column,
    transformations: transformations.map(transformationOf),
  };
}

function transformationOf(t: Transformation): object {
  if (t.type === 'DIRECT') return { type: t.type, subtype: t.subtype, masking: t.masking };
  return { type: t.type, subtype: t.subtype, masking: false, ...(t.policy && { description: 'policy' }) };
}

/** Returns the DatasetEvent for an object under a manifest version. */
export function datasetEvent(
  dataset: DatasetDescription,
  manifest: string,
  time: string,
  identity: ProducerIdentity,
): { readonly id: string; readonly event: object } {
  const { name, description, fields, columns } = dataset;
  const labels = fields.flatMap((f) =>
    f.sensitivity === null
      ? []
      : [{ key: 'sensitivity', value: f.sensitivity, source: 'OSL', field: f.name }],
  );
  const event = datasetEventOf(name, time, identity, {
    version: standardFacet(identity, 'DatasetVersionDatasetFacet', '1-0-1', { datasetVersion: manifest }),
    schema: standardFacet(identity, 'SchemaDatasetFacet', '1-2-0', {
      fields: fields.map((f) => ({
        name: f.name,
        type: f.type,
        ...(f.description !== null && { description: f.description }),
      })),
    }),
    ...(description !== null && {
      documentation: standardFacet(identity, 'DocumentationDatasetFacet', '1-1-0', { description }),
    }),
    ...(labels.length > 0 && {
      tags: standardFacet(identity, 'TagsDatasetFacet', '1-0-0', { tags: labels }),
    }),
    columnLineage: standardFacet(identity, 'ColumnLineageDatasetFacet', '1-2-0', {
      fields: Object.fromEntries(
        columns.map(({ name: field, inputs }) => [
          field,
          {
            inputFields: inputs.map(({ transformations, ...input }) => ({
              ...input,
              transformations: transformations.map(transformationOf),
            })),
          },
        ]),
      ),
      dataset: [],
    }),
  });
  return { id: datasetId(name, manifest, time, identity), event };
}

/** Returns the DatasetEvent for a removed object. */
export function droppedEvent(
  name: string,
  manifest: string,
  time: string,
  identity: ProducerIdentity,
): { readonly id: string; readonly event: object } {
  const event = datasetEventOf(name, time, identity, {
    version: standardFacet(identity, 'DatasetVersionDatasetFacet', '1-0-1', { datasetVersion: manifest }),
    lifecycleStateChange: standardFacet(identity, 'LifecycleStateChangeDatasetFacet', '1-0-1', {
      lifecycleStateChange: 'DROP',
    }),
  });
  return { id: datasetId(name, manifest, time, identity), event };
}

function datasetEventOf(name: string, time: string, identity: ProducerIdentity, facets: object): object {
  return {
    eventTime: time,
    producer: identity.producer,
    schemaURL: `${EVENT}/DatasetEvent`,
    dataset: { namespace: identity.namespace, name, facets },
  };
}

/** Returns the id of a dataset event. It includes the time, since a version that is served again is announced again. */
function datasetId(name: string, manifest: string, time: string, identity: ProducerIdentity): string {
  return `dataset_${uuidOf(identity.namespace, name, manifest, time)}`;
}
