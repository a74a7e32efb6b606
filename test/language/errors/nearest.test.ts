import { nearest } from 'osl-compiler';
import { test } from 'tap';
import { fc } from '../../support/fast-check.js';

/** Edits between two texts, a swap of neighbours counted as one: by the book, without a bound. */
function edits(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : changed;
      row.push(Math.min(changed, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}

function byTheBook(name: string, names: readonly string[]): string | null {
  const most = Math.max(1, Math.floor(name.length / 3));
  const found = names
    .map((candidate) => ({ candidate, distance: edits(name, candidate) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance); // stable: the first of equals
  return found[0]?.candidate ?? null;
}

test('the nearest name is that of the fewest edits, and none where they are too many', async (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '_'), minLength: 1, maxLength: 14 });
  fc.assert(
    fc.property(word, fc.array(word, { maxLength: 12 }), (name, names) => {
      return nearest(name, names) === byTheBook(name, names);
    }),
    { numRuns: 5_000 },
  );
  t.equal(nearest('custmer', ['order', 'customer', 'custom']), 'customer');
  t.equal(nearest('Pakcage', ['package']), 'package', 'a swap is one edit, and letters have no case');
  t.equal(nearest('x'.repeat(65), ['x'.repeat(64)]), null, 'too long for a slip of the hand');
});
