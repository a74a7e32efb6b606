import { createHash } from 'node:crypto';
import {
  type Catalog,
  columnLineage,
  columnOf,
  compileMetrics,
  type GovernedPlan,
  type Influence,
  QueryError,
  type ReadColumn,
  type Relation,
  type Transformation,
} from 'osl-compiler';
import { everythingIn, type Facet, type Manifest } from '../../model/manifest/index.js';

/** An object of the semantic graph as a dataset, with its column lineage. Plain data, since a thread receives it. */
export interface DatasetDescription {
  /** `osl.entities.<name>`, `osl.facets.<name>` or `osl.metrics.<name>`. */
  readonly name: string;
  readonly description: string | null;
  readonly fields: readonly {
    readonly name: string;
    readonly type: string;
    readonly description: string | null;
    readonly sensitivity: string | null;
  }[];
  readonly columns: readonly { readonly name: string; readonly inputs: readonly LineageInput[] }[];
}

interface LineageInput {
  readonly namespace: string;
  readonly name: string;
  readonly field: string;
  readonly transformations: readonly Transformation[];
}

/** Name of a database in events. */
export interface DatabaseName {
  readonly namespace: string;
  /** Prefix of `schema.table`; null means no prefix. */
  readonly database: string | null;
}

const IDENTITY: Transformation = { type: 'DIRECT', subtype: 'IDENTITY', masking: false };
const COMPUTED: Transformation = { type: 'DIRECT', subtype: 'TRANSFORMATION', masking: false };
const REDACTED: Transformation = { type: 'DIRECT', subtype: 'TRANSFORMATION', masking: true };

/** Returns the datasets of a manifest: entities, bridges, facets and metrics, sorted by name. */
export function datasetsOf(
  manifest: Manifest,
  namespace: string,
  databaseOf: (connector: string) => DatabaseName,
): readonly DatasetDescription[] {
  const ownInput = (object: string, field: string, transformation: Transformation): LineageInput => {
    return { namespace, name: datasetName(object), field, transformations: [transformation] };
  };
  const { catalog, facets } = manifest;
  const all = [
    ...[...catalog.relations.values()]
      .filter((r) => r.kind !== 'facet')
      .map((r) => entityDataset(r, facetsOf(r.name, facets), catalog, databaseOf, ownInput)),
    ...[...facets.values()].map((f) => facetDataset(f, databaseOf(f.connector))),
    ...[...catalog.metrics.keys()].map((m) => metricDataset(m, manifest, namespace)),
  ];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns a fingerprint of a dataset. It does not include versions, so it changes only when the description does. */
export function datasetFingerprint(dataset: DatasetDescription): string {
  return createHash('sha256').update(JSON.stringify(dataset)).digest('base64url').slice(0, 22);
}

function facetsOf(entity: string, facets: Manifest['facets']): readonly Facet[] {
  return [...facets.values()].filter((f) => f.entity === entity);
}

function entityDataset(
  relation: Relation,
  facets: readonly Facet[],
  { relations }: Catalog,
  databaseOf: (connector: string) => DatabaseName,
  ownInput: (object: string, field: string, transformation: Transformation) => LineageInput,
): DatasetDescription {
  const derived = facets.flatMap((f) => f.derived.map((d) => ({ ...d, facet: f.name })));
  const { name, description, columns, computed = [] } = relation;
  const storedInput = (
    { connector, schema, table }: Relation,
    physical: string,
    transformation: Transformation,
  ): LineageInput => upstream(databaseOf(connector), schema, table, physical, transformation);
  const readInputs = (
    { relation: relationName, column }: ReadColumn,
    transformation: Transformation,
  ): readonly LineageInput[] => {
    const owner = relations.get(relationName);
    const physical = owner === undefined ? undefined : columnOf(owner, column)?.physical;
    return owner === undefined || physical === undefined
      ? []
      : [storedInput(owner, physical, transformation)];
  };
  return {
    name: `osl.entities.${name}`,
    description,
    fields: [
      ...[...columns, ...computed].map((c) => ({
        name: c.name,
        type: c.type,
        description: c.description,
        sensitivity: c.sensitivity,
      })),
      ...derived.map((d) => ({
        name: d.name,
        type: d.operator === 'TAG' ? 'text[]' : 'text',
        description: d.description,
        sensitivity: null,
      })),
    ],
    columns: [
      ...columns.map((c) => ({
        name: c.name,
        inputs: [storedInput(relation, c.physical, IDENTITY)],
      })),
      ...computed.map((c) => ({ name: c.name, inputs: c.reads.flatMap((r) => readInputs(r, COMPUTED)) })),
      ...derived.map((d) => ({
        name: d.name,
        inputs: [ownInput(`osl.facets.${d.facet}`, 'text', COMPUTED)],
      })),
    ],
  };
}

function facetDataset(facet: Facet, database: DatabaseName): DatasetDescription {
  const { name, description, schema, table, text, entityKey, metadata, versions } = facet;
  const redacts = [...versions.values()].some((v) => v.redact.length + v.detectors.length > 0);
  const columns = [entityKey, ...metadata.filter((m) => m.name !== entityKey.name)];
  const storedInput = (physical: string, transformation: Transformation): LineageInput =>
    upstream(database, schema, table, physical, transformation);
  return {
    name: `osl.facets.${name}`,
    description,
    fields: [
      { name: 'text', type: 'text', description: null, sensitivity: null },
      { name: 'cite', type: 'jsonb', description: null, sensitivity: null },
      ...columns.map((c) => ({
        name: c.name,
        type: c.type,
        description: c.description,
        sensitivity: c.sensitivity,
      })),
    ],
    columns: [
      { name: 'text', inputs: [storedInput(text.physical, redacts ? REDACTED : COMPUTED)] },
      {
        name: 'cite',
        inputs: [...new Set([facet.documentId.physical, text.physical])].map((c) => storedInput(c, COMPUTED)),
      },
      ...columns.map((c) => ({ name: c.name, inputs: [storedInput(c.physical, IDENTITY)] })),
    ],
  };
}

function upstream(
  { namespace, database }: DatabaseName,
  schema: string,
  table: string,
  field: string,
  transformation: Transformation,
): LineageInput {
  const name = [...(database === null ? [] : [database]), schema, table].join('.');
  return { namespace, name, field, transformations: [transformation] };
}

/** Describes a metric as a dataset. Its inputs are those of the metric's plan under full access. */
function metricDataset(name: string, manifest: Manifest, namespace: string): DatasetDescription {
  const { description = null } = manifest.catalog.metrics.get(name) ?? {};
  const request = {
    metrics: [{ name, alias: null }],
    groupBy: [],
    where: [],
    orderBy: [],
    limit: null,
    timeConstraint: null,
    grain: null,
  };
  const inputs = planInputs(() => compileMetrics(request, manifest.catalog, everythingIn(manifest.catalog)));
  return {
    name: `osl.metrics.${name}`,
    description,
    fields: [{ name, type: 'numeric', description, sensitivity: null }],
    columns: [
      {
        name,
        inputs: inputs.map(({ object, column, transformations }) => {
          return { namespace, name: datasetName(object), field: column, transformations };
        }),
      },
    ],
  };
}

/** Returns the inputs of a metric's plan; empty if the metric cannot be queried alone. */
function planInputs(planOf: () => GovernedPlan): readonly Influence[] {
  try {
    const { outputs, rows } = columnLineage(planOf());
    const inputs = outputs[0]?.inputs ?? [];
    return [...inputs, ...rows.filter((r) => !inputs.some((i) => isSameInput(i, r)))];
  } catch (error) {
    if (error instanceof QueryError) return [];
    throw error;
  }
}

function isSameInput(a: Influence, b: Influence): boolean {
  return a.object === b.object && a.column === b.column;
}

/** Returns the dataset name of an audited object. Older records contain `metric:revenue` for `osl.metrics.revenue`. */
export function datasetName(object: string): string {
  return object.replace(/^metric:/, 'osl.metrics.');
}
