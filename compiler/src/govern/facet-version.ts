import { type Access, type RelationAccess, rowAccess, sameRows } from '../access/access.js';
import type { Catalog, FacetStore, FacetVersion, Relation } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import { columnRule } from './mask.js';

/**
 * Returns the version of `facet` to serve to this caller; null if the caller may see no passage: no grant applies, the
 * entity's key is not clear, or no version hides everything that the caller may not read.
 */
export function servedVersion(facet: FacetStore, catalog: Catalog, access: Access): FacetVersion | null {
  const relation = catalog.relations.get(facet.name);
  const entity = catalog.relations.get(facet.entity);
  const allowed = rowAccess(facet.name, access);
  if (relation === undefined || entity === undefined)
    throw new InternalError(`facet ${facet.name} is not in the catalog`);
  if (allowed === undefined) return null;
  const version = versionFor(facet, allowed);
  if (version === null) return null;
  const served = servedAccess(allowed, version);
  return keyIsClear(facet, relation, served, entity, access) ? version : null;
}

/** True if the caller may read the entity's key in the clear. Passages contain the key. */
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
 * Returns the version for the rights `allowed`: among those that redact every label the caller may not read, the one
 * with the fewest redactions. Null if no version redacts all these labels.
 *
 * A label is readable if the grants together show its values in the clear in every visible passage. An additional grant
 * therefore never shows less.
 */
export function versionFor(
  { versions }: Pick<FacetStore, 'versions'>,
  { grants }: Pick<RelationAccess, 'grants'>,
): FacetVersion | null {
  const labels = new Set(versions.flatMap((v) => [...v.redacts]));
  const columns = new Set(grants.flatMap((g) => [...g.columns]));
  const hidden = [...labels].filter((label) => {
    const clearing = grants.filter((g) => g.unmask.has(label) && [...columns].every((c) => g.columns.has(c)));
    return !sameRows(clearing, grants);
  });
  const fitting = versions.filter((v) => hidden.every((label) => v.redacts.has(label)));
  return fitting.reduce<FacetVersion | null>(
    (least, v) => (least !== null && least.redacts.size <= v.redacts.size ? least : v),
    null,
  );
}

const servedAccesses = new WeakMap<RelationAccess, Map<FacetVersion, RelationAccess>>();

/**
 * Returns the rights of `allowed` on the passages of `version`. No grant unmasks what the version redacts: the value is
 * not in the store, and a mask that computes on it would see the replacement word instead.
 */
export function servedAccess(allowed: RelationAccess, version: FacetVersion): RelationAccess {
  if (version.redacts.size === 0) return allowed;
  const known = servedAccesses.get(allowed) ?? new Map<FacetVersion, RelationAccess>();
  servedAccesses.set(allowed, known);
  const served = known.get(version) ?? withoutLabels(allowed, version.redacts);
  known.set(version, served);
  return served;
}

function withoutLabels(allowed: RelationAccess, redacts: ReadonlySet<string>): RelationAccess {
  const grants = allowed.grants.map((g) =>
    Object.freeze({ ...g, unmask: new Set([...g.unmask].filter((label) => !redacts.has(label))) }),
  );
  const masks = new Map(allowed.masks);
  for (const label of redacts) {
    const declared = masks.get(label) ?? 'deny';
    const isDenied = declared === 'deny' && !allowed.grants.some((g) => g.unmask.has(label));
    if (!isDenied && declared !== 'null') masks.set(label, 'redact');
  }
  return Object.freeze({ ...allowed, grants: Object.freeze(grants), masks });
}
