import { type Access, type RelationAccess, rowAccess } from '../access.js';
import type { Catalog, FacetStore, FacetVersion, Relation } from '../catalog.js';
import { InternalError } from '../errors.js';
import { columnRule } from './mask.js';

/**
 * The version of `facet` that this caller is served. Null where it gets no passage: there is no grant, it may not
 * read the entity's key in the clear, or no version fits exactly.
 */
export function versionDue(facet: FacetStore, catalog: Catalog, access: Access): FacetVersion | null {
  const relation = catalog.relations.get(facet.name);
  const entity = catalog.relations.get(facet.entity);
  const allowed = rowAccess(facet.name, access);
  if (relation === undefined || entity === undefined)
    throw new InternalError(`facet ${facet.name} is not in the catalog`);
  if (allowed === undefined || !keyIsClear(facet, relation, allowed, entity, access)) return null;
  return versionFor(facet, allowed);
}

/** Passages carry the key, so a caller who may not read it in the clear gets none. */
function keyIsClear(
  facet: FacetStore,
  relation: Relation,
  allowed: RelationAccess,
  entity: Relation,
  access: Access,
): boolean {
  const ofEntity = rowAccess(entity.name, access);
  const reads = (r: Relation, name: string, a: RelationAccess): boolean =>
    a.grants.some((g) => g.columns.has(name)) &&
    !a.denied.has(name) &&
    columnRule(r, name, a).masked === 'none';
  return (
    ofEntity !== undefined &&
    reads(entity, facet.keyOfEntity, ofEntity) &&
    reads(relation, facet.entityKey, allowed)
  );
}

/**
 * The version whose redactions are exactly the labels that the caller may not read in the clear. Where several
 * grants apply, a label counts as readable only if all of them say so.
 */
function versionFor(facet: FacetStore, allowed: RelationAccess): FacetVersion | null {
  const labels = new Set(facet.versions.flatMap((v) => [...v.redacts]));
  const hidden = [...labels].filter((label) => !allowed.grants.every((g) => g.unmask.has(label)));
  const exact = facet.versions.find(
    (v) => v.redacts.size === hidden.length && hidden.every((label) => v.redacts.has(label)),
  );
  return exact ?? null;
}
