import type { Schema } from '../../../../../clients/typescript/types.js';
import {
  type Fact,
  type Graph,
  graphOf,
  idOf,
  type Thing,
  type ThingColumn,
  type Tie,
  type Visibility,
} from './model.js';

type EntityOfSchema = Schema['entities'][number];
type FacetOfSchema = Schema['facets'][number];
type MetricOfSchema = Schema['metrics'][number];
type RelationshipOfSchema = Schema['relationships'][number];
type BridgeOfSchema = NonNullable<RelationshipOfSchema['bridge']>;
/** The response contains `from_columns` and some other members that the generated type lacks. */
type ColumnOfSchema = EntityOfSchema['columns'][number];

/** Graph of a governed schema, which contains only what the caller may see. */
export function graphOfSchema(schema: Schema): Graph {
  const bridges = new Map(
    schema.relationships.flatMap((r) =>
      r.bridge === null ? [] : [[r.bridge.name, { ...r, bridge: r.bridge }]],
    ),
  );
  const things: readonly Thing[] = [
    ...schema.entities.map(entityThing),
    ...[...bridges.values()].map((r) => bridgeThing(r, r.bridge)),
    ...schema.facets.map(facetThing),
    ...schema.metrics.map(metricThing),
  ];
  const ties: readonly Tie[] = [
    ...schema.relationships.flatMap(relationshipTies),
    ...schema.facets.map((f) => ownTie('text', idOf('facet', f.name), f.entity)),
    ...schema.metrics.flatMap((m) =>
      m.entity === null ? [] : [ownTie('figure', idOf('metric', m.name), m.entity)],
    ),
  ];
  return graphOf(schema.version, things, ties);
}

function entityThing(entity: EntityOfSchema): Thing {
  const { name, fqn, description, deprecated, synonyms, examples, derived } = entity;
  return {
    id: idOf('entity', name),
    kind: 'entity',
    name,
    fqn,
    description,
    deprecated,
    columns: entity.columns.map((c) => columnOf(c, entity.primary_key, entity.entity_key_columns)),
    derived,
    synonyms,
    examples,
    facts: [
      ...fact('primary key', entity.primary_key.join(', ')),
      ...fact('joins use', entity.entity_key_columns.join(', ')),
      ...fact('smallest group in aggregates', entity.minimum_group_size),
      ...fact('holds', entity.composition === 'structured' ? null : entity.composition.replace('+', ' and ')),
    ],
  };
}

function bridgeThing(
  { name: label, description, deprecated, examples }: RelationshipOfSchema,
  bridge: BridgeOfSchema,
): Thing {
  const { name } = bridge;
  return {
    id: idOf('bridge', name),
    kind: 'bridge',
    name,
    fqn: `osl.entities.${name}`,
    description,
    deprecated,
    columns: bridge.columns.map((c) => columnOf(c, [], [])),
    derived: [],
    synonyms: [],
    examples,
    facts: label === name ? [] : [{ what: 'relationship', value: label }],
  };
}

function facetThing(facet: FacetOfSchema): Thing {
  const { name, fqn, description, deprecated, synonyms, examples, retrieval } = facet;
  return {
    id: idOf('facet', name),
    kind: 'facet',
    name,
    fqn,
    description,
    deprecated,
    columns: facet.columns.map((c) => columnOf(c, [], facet.scalar_indexed)),
    derived: [],
    synonyms,
    examples,
    facts: [
      ...fact('text about', facet.entity),
      ...fact('searched by', retrieval.modes.join(', ')),
      ...fact('most passages', retrieval.max_top_k),
      ...fact('embedding model', facet.embedding_model),
      ...fact('text last read', facet.indexed_at),
    ],
  };
}

function metricThing(metric: MetricOfSchema): Thing {
  const { name, fqn, description, deprecated, synonyms, examples } = metric;
  return {
    id: idOf('metric', name),
    kind: 'metric',
    name,
    fqn,
    description,
    deprecated,
    columns: [],
    derived: [],
    synonyms,
    examples,
    facts: [
      ...fact('kind', metric.kind),
      ...fact('type', metric.type),
      ...fact('rows of', metric.entity ?? 'several entities'),
    ],
  };
}

function fact(what: string, value: string | number | null): readonly Fact[] {
  return value === null || value === '' ? [] : [{ what, value: String(value) }];
}

function columnOf(column: ColumnOfSchema, key: readonly string[], joinable: readonly string[]): ThingColumn {
  const { name, type, description, nullable, synonyms } = column;
  const isKey = key.includes(name);
  return {
    name,
    type,
    description,
    nullable,
    synonyms,
    isKey,
    joins: joinable.includes(name),
    sight: sightOf(column),
  };
}

function sightOf({ masked, use }: ColumnOfSchema): Visibility {
  if (use === 'aggregates') return 'aggregates';
  switch (masked) {
    case 'none':
      return 'clear';
    case 'some':
      return 'partly_masked';
    case 'all':
      return 'masked';
    default: {
      const unknown: never = masked;
      return unknown;
    }
  }
}

function relationshipTies(relationship: RelationshipOfSchema): readonly Tie[] {
  const { name, kind, description, deprecated, from, to, bridge } = relationship;
  const source = idOf('entity', from.entity);
  const target = idOf('entity', to.entity);
  const told = { label: name, description, deprecated };
  if (bridge === null) {
    const tie = kind === 'one_to_one' ? ('one_to_one' as const) : ('to_one' as const);
    const on = `${from.columns.join(', ')} = ${to.columns.join(', ')}`;
    return [{ id: `${name}~${from.entity}:${to.entity}`, kind: tie, source, target, on, ...told }];
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

function ownTie(kind: 'text' | 'figure', id: string, entity: string): Tie {
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
