import type { Access, Catalog, Column, Relation, RelationAccess, RelationGrant } from 'osl-compiler';

/** A catalog of `entities` similar relations, and access to all of them through `grants` grants in total. */
export function syntheticModel(entities: number, grants: number): { catalog: Catalog; access: Access } {
  const relations = new Map<string, Relation>();
  for (let i = 0; i < entities; i++) {
    const name = i === 0 ? 'orders' : `orders_${i}`;
    relations.set(name, relationOf(name));
  }
  const perRelation = Math.max(1, Math.round(grants / entities));
  const access = new Map<string, RelationAccess>();
  for (const relation of relations.values()) {
    access.set(relation.name, {
      grants: Array.from({ length: perRelation }, (_, i) => grantOf(relation, i)),
      masks: new Map([['pii', 'redact' as const]]),
      denied: new Set(),
    });
  }
  return {
    catalog: {
      version: `synthetic ${entities}`,
      relations,
      metrics: new Map(),
      facets: new Map(),
      edges: [],
    },
    access: {
      signature: `synthetic ${entities} ${grants}`,
      policyVersion: 'bench',
      chainLength: 1,
      relations: access,
    },
  };
}

function relationOf(name: string): Relation {
  const column = (column: string, type: Column['type'], sensitivity: string | null = null): Column => ({
    name: column,
    physical: column,
    type,
    description: null,
    nullable: true,
    sensitivity,
    keyDomain: null,
  });
  return {
    kind: 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 'shop',
    table: name,
    columns: [
      column('id', 'int8'),
      column('customer_id', 'int8'),
      column('status', 'text'),
      column('region', 'text'),
      column('email', 'text', 'pii'),
      column('amount', 'numeric'),
      column('created_at', 'timestamp'),
    ],
    primaryKey: ['id'],
    sealedKeys: ['id', 'customer_id'],
  };
}

function grantOf(relation: Relation, index: number): RelationGrant {
  return {
    id: `g${index}`,
    columns: new Set(relation.columns.map((c) => c.name)),
    unmask: new Set(),
    filter: {
      kind: 'attribute_match',
      arg: { kind: 'base', column: 'region', type: 'text' },
      equality: { name: '=', left: 'text', right: 'text', result: 'bool', leakproof: true },
      attribute: `region_${index}`,
      subject: { index: 0, values: 'one' },
      type: 'bool',
    },
  };
}
