import { type Access, type Catalog, labelsOf, type Relation, type RelationAccess } from 'osl-compiler';

/** The access that sees all of `catalog` in the clear. It describes the graph to an admin; nothing is asked with it. */
export function everythingIn(catalog: Catalog): Access {
  return Object.freeze({
    signature: 'everything',
    policyVersion: '',
    chainLength: 1,
    relations: new Map([...catalog.relations].map(([name, relation]) => [name, all(relation)])),
  });
}

function all(relation: Relation): RelationAccess {
  const columns = new Set(relation.columns.map((c) => c.name));
  const unmask = labelsOf(relation);
  return Object.freeze({
    grants: [{ id: 'everything', columns, unmask, filter: null }],
    masks: new Map(),
    denied: new Set<string>(),
  });
}
