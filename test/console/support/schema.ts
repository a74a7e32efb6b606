import { ALL_FEATURES } from 'osl-compiler';
import type { Schema } from '../../../clients/typescript/types.js';

type Entity = Schema['entities'][number];
type Relationship = Schema['relationships'][number];
type Column = Entity['columns'][number];

/** A column as a schema has it. */
export function column(name: string, over: Partial<Column> = {}): Column {
  return {
    name,
    type: 'text',
    description: null,
    nullable: true,
    masked: 'none',
    use: 'rows',
    synonyms: [],
    ...over,
  };
}

/** An entity whose key is `id`, and whose other columns are these. */
export function entity(name: string, columns: readonly Column[], over: Partial<Entity> = {}): Entity {
  return {
    name,
    description: null,
    deprecated: null,
    fqn: `osl.entities.${name}`,
    composition: 'structured',
    primary_key: ['id'],
    entity_key_columns: ['id'],
    time_dimension: null,
    columns: [column('id', { type: 'int4', nullable: false }), ...columns],
    derived: [],
    minimum_group_size: null,
    facets: [],
    metrics: [],
    synonyms: [],
    examples: [],
    ...over,
  };
}

/** `order.customer_id = customer.id`, or through a bridge. */
export function relationship(
  name: string,
  from: string,
  to: string,
  bridge: string | null = null,
): Relationship {
  return {
    name,
    description: null,
    deprecated: null,
    kind: bridge === null ? 'many_to_one' : 'many_to_many',
    from: { entity: from, columns: bridge === null ? [`${to}_id`] : ['id'] },
    to: { entity: to, columns: ['id'] },
    bridge: bridge === null ? null : { name: bridge, columns: [column('a'), column('b')] },
    examples: [],
  };
}

export function metric(name: string, of: string | null): Schema['metrics'][number] {
  return {
    name,
    description: null,
    deprecated: null,
    fqn: `osl.metrics.${name}`,
    entity: of,
    kind: of === null ? 'derived' : 'simple',
    type: 'numeric',
    format: null,
    measurable: of !== null,
    synonyms: [],
    examples: [],
  };
}

/** A governed schema of these members and no language. */
export function schema(members: Partial<Schema>): Schema {
  return {
    version: 'v',
    etag: 'e',
    entities: [],
    facets: [],
    metrics: [],
    relationships: [],
    functions: [],
    operators: [],
    forms: [],
    features: { ...ALL_FEATURES, joins: 'declared' },
    ...members,
  };
}
