import { randomBytes } from 'node:crypto';
import t from 'tap';
import { Frontier, RecentTree } from '../../audit/frontier.js';
import { RunningRoot, rootFromPath } from '../../audit/tree.js';

/** Proofs of recent records, checked with the verifier's own code. */

t.test('every kept leaf is proved in every later tree, and none before them', async (t) => {
  for (const before of [0, 1, 2, 3, 7, 8, 13, 100, 1_023]) {
    const leaves = Array.from({ length: before + 90 }, () => randomBytes(32));
    const frontier = Frontier.empty();
    const whole = new RunningRoot();
    const roots: Buffer[] = [];
    for (const leaf of leaves) {
      whole.add(leaf);
      roots.push(whole.root());
    }
    for (const leaf of leaves.slice(0, before)) frontier.push(leaf.toString('latin1'));
    const tree = new RecentTree(frontier, 16);
    const wrong: string[] = [];
    let first = before;
    for (const leaf of leaves.slice(before)) {
      tree.push(leaf.toString('latin1'));
      while (tree.leaf(first) === null) first += 1;
      for (let index = first; index < tree.size; index++)
        for (let size = index + 1; size <= tree.size; size++) {
          const path = tree.pathOf(index, size) ?? [];
          const root = rootFromPath(index, size, leaves[index] ?? leaf, path);
          if (!root?.equals(roots[size - 1] ?? leaf) || !tree.rootAt(size).equals(root))
            wrong.push(`${index} of ${size}`);
          if (!tree.leaf(index)?.equals(leaves[index] ?? leaf)) wrong.push(`leaf ${index}`);
        }
      t.equal(tree.pathOf(first - 1, tree.size), null);
      t.ok(tree.root().equals(roots[tree.size - 1] ?? leaf));
    }
    t.strictSame(wrong, [], `after ${before} leaves`);
    const kept = tree.size - first;
    t.ok(kept >= 16 && kept <= 33, `${kept} of ${tree.size} are kept`);
  }
});

t.test('what is not there is not proved', async (t) => {
  const tree = new RecentTree(Frontier.empty(), 4);
  t.equal(tree.pathOf(0, 1), null);
  tree.push('a'.repeat(32));
  t.strictSame(tree.pathOf(0, 1), []);
  t.equal(tree.pathOf(1, 2), null);
  t.equal(tree.pathOf(0, 2), null);
  t.equal(tree.leaf(1), null);
});
