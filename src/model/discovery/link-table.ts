import type { ForeignKey, UpstreamRelation } from './upstream.js';

/** A table whose rows link rows of others. */
export interface LinkTable {
  /** A bridge carries the link alone; an association says more of it, or links more than two. */
  readonly proposal: 'bridge' | 'association';
  readonly key: readonly string[];
  /** The foreign keys that make up the key, at least two. */
  readonly sides: readonly ForeignKey[];
  /** Columns beside the links that the database fills in. */
  readonly filled: readonly string[];
  /** Columns that somebody has to give: what is said of the link. */
  readonly payload: readonly string[];
}

/** Columns beside the links that a bridge may have, where the database fills them in: a row's number, its time. */
const MAX_FILLED = 2;

/**
 * Whether a relation links others: at least two of its foreign keys, together, are a key of it. The names of tables
 * and columns say nothing here.
 */
export function linkTableOf(relation: UpstreamRelation): LinkTable | null {
  const required = new Set(relation.columns.filter((c) => !c.nullable).map((c) => c.name));
  const keys = [
    ...(relation.primaryKey === null ? [] : [relation.primaryKey]),
    ...relation.uniqueKeys.filter((key) => key.every((c) => required.has(c))),
  ];
  for (const key of keys) {
    const sides = sidesOf(key, relation.foreignKeys);
    if (sides === null) continue;
    // A foreign key outside the key is something that the link refers to: a payload like any other.
    const others = relation.columns.filter((c) => !key.includes(c.name));
    const filled = others.filter((c) => c.filled).map((c) => c.name);
    const payload = others.filter((c) => !c.filled).map((c) => c.name);
    const bare = sides.length === 2 && payload.length === 0 && filled.length <= MAX_FILLED;
    return { proposal: bare ? 'bridge' : 'association', key, sides, filled, payload };
  }
  return null;
}

/** The foreign keys within `key`, each with columns of its own, if they are all of it; null otherwise. */
function sidesOf(key: readonly string[], links: readonly ForeignKey[]): readonly ForeignKey[] | null {
  const sides: ForeignKey[] = [];
  const covered = new Set<string>();
  for (const link of links) {
    if (!link.columns.every((c) => key.includes(c))) continue;
    // Two foreign keys over the same columns are one link that is declared twice.
    if (link.columns.every((c) => covered.has(c))) continue;
    sides.push(link);
    for (const column of link.columns) covered.add(column);
  }
  return sides.length >= 2 && covered.size === key.length ? sides : null;
}
