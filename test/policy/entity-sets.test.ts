import t from 'tap';
import { EntitySetBook, type SetAddition } from '../../policy/index.js';
import { fc } from '../support/fast-check.js';

/** The sets of entities that one process counts. */

const DAY = 86_400_000;

t.test('sets are added to together or not at all, and a window ends', async (t) => {
  const clock = { ms: 0 };
  const book = new EntitySetBook(() => clock.ms);
  const add = (...sets: readonly (readonly [key: string, most: number, members: string])[]) =>
    book.add(
      sets.map(([key, most, members]) => ({ key, windowMs: DAY, maxSize: most, members: [...members] })),
    );
  t.same(add(['a', 3, 'xy'], ['b', 2, 'x']), {
    refused: null,
    counts: [
      { used: 2, endsInMs: DAY },
      { used: 1, endsInMs: DAY },
    ],
  });
  clock.ms = DAY / 2;
  t.match(add(['a', 3, 'z'], ['b', 1, 'y']), { refused: 1, counts: [{ used: 2 }, { used: 1 }] });
  t.match(add(['a', 2, 'xy'], ['b', 0, 'x']), { refused: null }, 'what is in a set costs nothing');
  t.match(add(['a', 3, 'z']), { refused: null, counts: [{ used: 3, endsInMs: DAY / 2 }] });
  clock.ms = DAY;
  t.match(add(['a', 3, '']), { refused: null, counts: [{ used: 0 }] });
  t.match(add(['a', 3, 'uvw']), { refused: null, counts: [{ used: 3, endsInMs: DAY }] });
});

t.test('there is room for so many members, and ended windows make room', async (t) => {
  const clock = { ms: 0 };
  const book = new EntitySetBook(() => clock.ms, 4);
  const one = (key: string, members: string): SetAddition => ({
    key,
    windowMs: DAY,
    maxSize: 9,
    members: [...members],
  });
  book.add([one('a', 'xyz')]);
  t.throws(() => book.add([one('b', 'xy')]), { code: 'E5031' });
  clock.ms = DAY;
  t.match(book.add([one('b', 'wxyz')]), { refused: null });
});

t.test('no set has more members than its maximum, or fewer than it was given', async () => {
  const key = fc.constantFrom('a', 'b', 'c');
  const members = fc.uniqueArray(fc.constantFrom(...'stuvwxyz'), { maxLength: 4 });
  const most = { a: 3, b: 5, c: 8 } as const;
  fc.assert(
    fc.property(fc.array(fc.dictionary(key, members, { maxKeys: 3 }), { maxLength: 20 }), (batches) => {
      const book = new EntitySetBook(() => 0);
      const model = { a: new Set<string>(), b: new Set<string>(), c: new Set<string>() };
      for (const batch of batches) {
        const names = (['a', 'b', 'c'] as const).filter((name) => batch[name] !== undefined);
        const next = names.map((name) => new Set([...model[name], ...(batch[name] ?? [])]));
        const fits = names.every((name, i) => (next[i]?.size ?? 0) <= most[name]);
        const result = book.add(
          names.map((name) => ({
            key: name,
            windowMs: DAY,
            maxSize: most[name],
            members: batch[name] ?? [],
          })),
        );
        if ((result.refused === null) !== fits) throw new Error(JSON.stringify(batch));
        for (const [i, name] of names.entries()) {
          if (fits) model[name] = next[i] ?? new Set();
          if (result.counts[i]?.used !== model[name].size) throw new Error(JSON.stringify(result));
        }
      }
    }),
  );
});
