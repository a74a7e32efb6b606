import type { Catalog, Column, Relation, TypeName } from 'osl-compiler';
import type { PolicyDocument } from '../../policy/document.js';

export function column(name: string, type: TypeName, sensitivity: string | null = null): Column {
  return { name, physical: name, type, description: null, nullable: true, sensitivity, keyDomain: null };
}

export function relation(
  name: string,
  columns: readonly Column[],
  kind: Relation['kind'] = 'entity',
): Relation {
  return {
    kind,
    name,
    description: null,
    connector: 'main',
    schema: 'sales',
    table: name,
    columns,
    primaryKey: ['id'],
    sealedKeys: ['id'],
  };
}

export function catalog(relations: readonly Relation[], version = 'catalog-1'): Catalog {
  return {
    version,
    relations: new Map(relations.map((r) => [r.name, r])),
    metrics: new Map(),
    facets: new Map(),
    edges: [],
  };
}

export const ORDER = relation('order', [
  column('id', 'int4'),
  column('region', 'text'),
  column('team', 'text'),
  column('quantity', 'int4'),
  column('email', 'text', 'pii'),
  column('ssn', 'text', 'secret'),
]);

const CUSTOMER = relation('customer', [column('id', 'int4'), column('name', 'text', 'pii')]);
const BRIDGE = relation('order_tag', [column('id', 'int4'), column('tag', 'text')], 'bridge');
export const CATALOG = catalog([ORDER, CUSTOMER, BRIDGE]);

const EMPTY_POLICY: PolicyDocument = {
  version: 1,
  tenant: 'acme',
  subjects: {},
  roles: {},
  masks: {},
};

export function policy(changes: Partial<PolicyDocument>): PolicyDocument {
  return { ...EMPTY_POLICY, ...changes };
}
