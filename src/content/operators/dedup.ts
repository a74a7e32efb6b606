import { inIdOrder, type OperatorPassage } from './passage.js';
import { Vectors } from './vectors.js';

export interface Duplicate {
  /** From 1, by the lowest chunk id of the group. */
  readonly group: number;
  readonly is_duplicate: boolean;
  /** Chunk id of the group's representative, the lowest; null for the representative itself. */
  readonly of: string | null;
}

/** Groups of passages that are linked by cosines of at least `threshold`. */
export function dedup(passages: readonly OperatorPassage[], threshold: number): readonly Duplicate[] {
  return inIdOrder(passages, (sorted) => {
    const parents = sorted.map((_, i) => i);
    const vectors = new Vectors(sorted.map((p) => p.vector));
    const cosines = new Float64Array(vectors.count);
    for (let i = 0; i < vectors.count; i++) {
      vectors.cosines(i, i + 1, cosines);
      for (let j = i + 1; j < vectors.count; j++) if ((cosines[j] ?? 0) >= threshold) join(parents, i, j);
    }
    return groupsOf(sorted, parents);
  });
}

/** INVARIANT: the root of a group is its lowest index. */
function join(parents: number[], i: number, j: number): void {
  const [a, b] = [rootOf(parents, i), rootOf(parents, j)];
  parents[Math.max(a, b)] = Math.min(a, b);
}

function rootOf(parents: readonly number[], i: number): number {
  let at = i;
  for (let up = parents[at] ?? at; up !== at; up = parents[at] ?? at) at = up;
  return at;
}

function groupsOf(sorted: readonly OperatorPassage[], parents: readonly number[]): readonly Duplicate[] {
  const numbers = new Map<number, number>();
  return sorted.map((_, i) => {
    const root = rootOf(parents, i);
    const group = numbers.get(root) ?? numbers.size + 1;
    numbers.set(root, group);
    return root === i
      ? { group, is_duplicate: false, of: null }
      : { group, is_duplicate: true, of: sorted[root]?.chunkId ?? null };
  });
}
