import type { Access, Catalog, Relation } from 'osl-compiler';
import { effectiveAccess, type IdentityClaims } from '../../../policy/index.js';
import { type CatalogName, isMore, type Visibility, widestVisibility } from '../../model/graph/index.js';
import type { Caller } from '../request/caller.js';

/** A subject of the chain without whom more would be seen. */
export interface TakenAway {
  readonly subject: string;
  /** How the others of the chain would see it without that subject. */
  readonly would_see: Visibility;
}

/** How a caller sees an object: of a relation, its best column. */
export function sees(object: CatalogName, relation: Relation, catalog: Catalog, access: Access): Visibility {
  return widestVisibility(relation, object.column, catalog, access);
}

/** Who of a chain takes something of an object away: without whom alone it would be seen better. */
export function takenAway(
  object: CatalogName,
  relation: Relation,
  catalog: Catalog,
  {
    identity,
    snapshot,
    circumstances,
  }: Pick<Caller, 'snapshot' | 'circumstances'> & { readonly identity: IdentityClaims },
): readonly TakenAway[] {
  const accessOf = (who: IdentityClaims): Access => effectiveAccess(who, snapshot, catalog, circumstances);
  const now = sees(object, relation, catalog, accessOf(identity));
  return withoutEach(identity).flatMap(({ subject, others }) => {
    const then = sees(object, relation, catalog, accessOf(others));
    return isMore(then, now) ? [{ subject, would_see: then }] : [];
  });
}

/** A chain without each of its subjects in turn; nobody is left of a chain of one. */
export function withoutEach(
  identity: IdentityClaims,
): readonly { readonly subject: string; readonly others: IdentityClaims }[] {
  const { chain } = identity;
  if (chain.length < 2) return [];
  return chain.map((subject) => {
    const left = Object.freeze(chain.filter((s) => s !== subject));
    return { subject, others: Object.freeze({ ...identity, chain: left, subject: left.at(-1) ?? '' }) };
  });
}
