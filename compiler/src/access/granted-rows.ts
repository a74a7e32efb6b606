import { fingerprint } from '../plan/fingerprint.js';
import type { Expr } from '../plan/plan.js';
import type { RelationGrant } from './access.js';

/** The distinct filters of `grants`, or null where one of them lets every row through. */
export function filtersOf(grants: readonly RelationGrant[]): readonly Expr[] | null {
  const distinct = new Map<string, Expr>();
  for (const { filter } of grants) {
    if (filter === null) return null;
    distinct.set(fingerprint(filter), filter);
  }
  return [...distinct.values()];
}

/** Whether some of `grants` lets every row through that any of `all` does, judged by their texts. */
export function sameRows(grants: readonly RelationGrant[], all: readonly RelationGrant[]): boolean {
  if (grants.length === 0) return false;
  const mine = filtersOf(grants);
  if (mine === null) return true;
  const theirs = filtersOf(all);
  if (theirs === null) return false;
  const have = new Set(mine.map(fingerprint));
  return theirs.every((f) => have.has(fingerprint(f)));
}
