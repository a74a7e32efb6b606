import type { Relation } from '../catalog.js';
import type { FromItem, SourceId } from '../plan.js';
import { leavesOf } from '../walk.js';

/** Two FROM items of which the second has several rows for one row of the first, by their names. */
export interface FanOut {
  readonly of: string;
  readonly by: string;
}

/**
 * What in `from` could repeat a row of `source`, so that a sum over it would be too large; null where nothing can.
 * A join repeats nothing if its ON covers the whole primary key of what it brings.
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

function keyIsJoined(
  source: SourceId,
  relation: Relation,
  join: Extract<FromItem, { kind: 'join' }>,
): boolean {
  const joined = new Set(
    join.on
      .flatMap((e) => (e.kind === 'operation' && e.definition.name === '=' ? [e.left, e.right] : []))
      .flatMap((e) => (e?.kind === 'column' && e.source === source ? [e.name] : [])),
  );
  return relation.primaryKey.length > 0 && relation.primaryKey.every((k) => joined.has(k));
}

function nameOf(item: FromItem, source: SourceId): string {
  const leaf = leavesOf(item).find((l) => l.id === source);
  return leaf?.kind === 'entity' ? leaf.relation.name : 'a derived table';
}
