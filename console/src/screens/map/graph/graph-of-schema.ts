import type { Schema, SchemaColumn } from '../../../../../clients/typescript/types.js';
import {
  type Connection,
  type Fact,
  type Graph,
  graphOf,
  idOf,
  type MapColumn,
  type MapObject,
  type MapObjectKind,
  type VisibleSight,
} from './model.js';

type EntityOfSchema = Schema['entities'][number];
type FacetOfSchema = Schema['facets'][number];
type MetricOfSchema = Schema['metrics'][number];
type RelationshipOfSchema = Schema['relationships'][number];
type BridgeOfSchema = NonNullable<RelationshipOfSchema['bridge']>;

/** Builds the graph of a governed schema, which contains only objects that the caller may see. */
export function graphOfSchema(schema: Schema): Graph {
  const bridges = new Map(
    schema.relationships.flatMap((r) =>
      r.bridge === null ? [] : [[r.bridge.name, { ...r, bridge: r.bridge }]],
    ),
  );
  const objects: readonly MapObject[] = [
    ...schema.entities.map(entityObject),
    ...[...bridges.values()].map((r) => bridgeObject(r, r.bridge)),
    ...schema.facets.map(facetObject),
    ...schema.metrics.map(metricObject),
  ];
  const connections: readonly Connection[] = [
    ...schema.relationships.flatMap(relationshipConnections),
    ...schema.facets.map((f) => ownConnection('text', idOf('facet', f.name), f.entity)),
    ...schema.metrics.flatMap((m) =>
      m.entity === null ? [] : [ownConnection('figure', idOf('metric', m.name), m.entity)],
    ),
  ];
  return graphOf(schema.version, objects, connections);
}

/** Creates an object. Lists that only some kinds of objects have are empty unless given. */
function objectOf(
  kind: MapObjectKind,
  { name, description, deprecated }: Pick<MapObject, 'name' | 'description' | 'deprecated'>,
  {
    fqn,
    examples,
    synonyms = [],
  }: Pick<MapObject, 'fqn' | 'examples'> & Partial<Pick<MapObject, 'synonyms'>>,
  own: Partial<Pick<MapObject, 'columns' | 'derived' | 'facts'>>,
): MapObject {
  const lists = { columns: [], derived: [], facts: [], ...own };
  return { id: idOf(kind, name), kind, name, fqn, description, deprecated, synonyms, examples, ...lists };
}

function entityObject(entity: EntityOfSchema): MapObject {
  const { primary_key: key, entity_key_columns: joined, composition, derived } = entity;
  return objectOf('entity', entity, entity, {
    columns: entity.columns.map((c) => columnOf(c, key, joined)),
    derived,
    facts: [
      ...fact('primary key', key.join(', ')),
      ...fact('joins use', joined.join(', ')),
      ...fact('smallest group in aggregates', entity.minimum_group_size),
      ...fact('holds', composition === 'structured' ? null : composition.replace('+', ' and ')),
    ],
  });
}

function bridgeObject(relationship: RelationshipOfSchema, { name, columns }: BridgeOfSchema): MapObject {
  const { name: label, examples } = relationship;
  const fqn = `osl.entities.${name}`;
  return objectOf(
    'bridge',
    { ...relationship, name },
    { fqn, examples },
    {
      columns: columns.map((c) => columnOf(c, [], [])),
      facts: label === name ? [] : [{ what: 'relationship', value: label }],
    },
  );
}

function facetObject(facet: FacetOfSchema): MapObject {
  return objectOf('facet', facet, facet, {
    columns: facet.columns.map((c) => columnOf(c, [], facet.scalar_indexed)),
    facts: [
      ...fact('text about', facet.entity),
      ...fact('searched by', facet.retrieval.modes.join(', ')),
      ...fact('most passages', facet.retrieval.max_top_k),
      ...fact('embedding model', facet.embedding_model),
      ...fact('text last read', facet.indexed_at),
    ],
  });
}

function metricObject(metric: MetricOfSchema): MapObject {
  return objectOf('metric', metric, metric, {
    facts: [
      ...fact('kind', metric.kind),
      ...fact('type', metric.type),
      ...fact('rows of', metric.entity ?? 'several entities'),
    ],
  });
}

function fact(what: string, value: string | number | null): readonly Fact[] {
  return value === null || value === '' ? [] : [{ what, value: String(value) }];
}

function columnOf(column: SchemaColumn, key: readonly string[], joinable: readonly string[]): MapColumn {
  const { name, type, description, nullable, synonyms } = column;
  const [isKey, joins] = [key.includes(name), joinable.includes(name)];
  return { name, type, description, nullable, synonyms, isKey, joins, sight: sightOf(column) };
}

const SIGHTS = { none: 'clear', some: 'partly_masked', all: 'masked' } as const;

function sightOf({ masked, use }: SchemaColumn): VisibleSight {
  return use === 'aggregates' ? 'aggregates' : SIGHTS[masked];
}

function relationshipConnections(relationship: RelationshipOfSchema): readonly Connection[] {
  const { name, kind, description, deprecated, from, to, bridge } = relationship;
  const source = idOf('entity', from.entity);
  const target = idOf('entity', to.entity);
  const told = { label: name, description, deprecated };
  if (bridge === null) {
    const joinKind = kind === 'one_to_one' ? ('one_to_one' as const) : ('to_one' as const);
    const on = `${from.columns.join(', ')} = ${to.columns.join(', ')}`;
    return [{ id: `${name}~${from.entity}:${to.entity}`, kind: joinKind, source, target, on, ...told }];
  }
  const middle = idOf('bridge', bridge.name);
  const sides = [
    ['left', source, from.columns],
    ['right', target, to.columns],
  ] as const;
  return sides.map(([side, end, columns]) => ({
    id: `${name}~${side}`,
    kind: 'across' as const,
    source: end,
    target: middle,
    on: columns.join(', '),
    ...told,
  }));
}

function ownConnection(kind: 'text' | 'figure', id: string, entity: string): Connection {
  const label = kind === 'text' ? 'text about' : 'counts rows of';
  return {
    id,
    kind,
    source: id,
    target: idOf('entity', entity),
    label,
    description: null,
    deprecated: null,
    on: '',
  };
}
