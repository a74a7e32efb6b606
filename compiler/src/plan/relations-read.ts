import type { Relation } from '../catalog/catalog.js';
import type { Query } from './plan.js';
import { allQueries, leavesOf } from './walk.js';

/** The relations that a governed query scans itself; those of its steps are theirs. */
export function relationsRead(query: Query): readonly Relation[] {
  const found = new Map<string, Relation>();
  for (const each of allQueries(query)) {
    if (each.kind !== 'select') continue;
    for (const leaf of leavesOf(each.from))
      if (leaf.kind === 'governed') found.set(leaf.relation.name, leaf.relation);
  }
  return [...found.values()];
}
