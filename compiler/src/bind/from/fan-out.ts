import type { Relation } from '../../catalog/catalog.js';
import type { FromItem, SourceId } from '../../plan/plan.js';
import { leavesOf } from '../../plan/walk.js';

/** Names of two FROM items: a row of `of` may match several rows of `by`. */
export interface FanOut {
  readonly of: string;
  readonly by: string;
}

/**
 * Finds the join in `from` that could repeat a row of `source`, which would inflate sums over it; null if there is
 * none. A join repeats no rows if its ON covers the primary key of the added item.
 */
export function fanOutOf(from: FromItem, source: SourceId): FanOut | null {
  if (from.kind !== 'join') return null;
  const inLeft = leavesOf(from.left).some((l) => l.id === source);
  const [mine, other] = inLeft ? [from.left, from.right] : [from.right, from.left];
  const below = fanOutOf(mine, source);
  if (below !== null) return below;
  const keyed = leavesOf(other).find(
    (leaf) => leaf.kind === 'entity' && keyIsJoined(leaf.id, leaf.relation, from),
  );
  if (keyed === undefined)
    return { of: nameOf(mine, source), by: nameOf(other, leavesOf(other)[0]?.id ?? source) };
  return fanOutOf(other, keyed.id);
}

/** Returns the FROM items with at most one row for each row of `source`, including `source` itself. */
export function itemsMetOnce(from: FromItem, source: SourceId): ReadonlySet<SourceId> {
  if (from.kind !== 'join') return new Set([source]);
  const inLeft = leavesOf(from.left).some((l) => l.id === source);
  const [mine, other] = inLeft ? [from.left, from.right] : [from.right, from.left];
  const met = new Set(itemsMetOnce(mine, source));
  for (const leaf of leavesOf(other)) {
    if (leaf.kind !== 'entity' || met.has(leaf.id) || !keyIsJoined(leaf.id, leaf.relation, from, met))
      continue;
    for (const id of itemsMetOnce(other, leaf.id)) met.add(id);
  }
  return met;
}

/** True if an outer join may replace rows of `source` with NULLs. */
export function mayBeMissing(from: FromItem | undefined, source: SourceId): boolean {
  if (from?.kind !== 'join') return false;
  const inRight = leavesOf(from.right).some((l) => l.id === source);
  if (from.type === 'full' || (inRight && from.type === 'left')) return true;
  return mayBeMissing(inRight ? from.right : from.left, source);
}

/** @param partners if set, only comparisons with these items are considered */
function keyIsJoined(
  source: SourceId,
  relation: Relation,
  join: Extract<FromItem, { kind: 'join' }>,
  partners?: ReadonlySet<SourceId>,
): boolean {
  const joined = new Set<string>();
  for (const e of join.on) {
    if (e.kind !== 'operation' || e.definition.name !== '=') continue;
    for (const [key, partner] of [
      [e.left, e.right],
      [e.right, e.left],
    ] as const) {
      if (key?.kind !== 'column' || key.source !== source) continue;
      if (partners === undefined || (partner?.kind === 'column' && partners.has(partner.source)))
        joined.add(key.name);
    }
  }
  return relation.primaryKey.length > 0 && relation.primaryKey.every((k) => joined.has(k));
}

function nameOf(item: FromItem, source: SourceId): string {
  const leaf = leavesOf(item).find((l) => l.id === source);
  if (leaf?.kind === 'rows') return `rows of ${leaf.definition.name}`;
  return leaf?.kind === 'entity' ? leaf.relation.name : 'a derived table';
}
