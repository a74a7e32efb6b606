import t from 'tap';
import { meaningBy, packagePath, readWords } from '../../src/content/embed/offline/words.js';
import { cosine } from '../../src/content/index.js';

/** A file in the format of the package, with words of every kind of sign, and numbers that one can reckon with. */
const WORDS = ['the', ']', '"', 'a:b', 'dog', 'puppy', 'bank', 'grüße'];
const numbers = (i: number): number[] =>
  Array.from({ length: 102 }, (_, d) => (d === 4 && i === 5 ? 0.9 : d === i ? 1 : 0.1));
const FILE = JSON.stringify({
  precision: 8,
  words: WORDS,
  vectors: Object.fromEntries(WORDS.map((word, i) => [word, numbers(i)])),
});

async function* pieces(of: number): AsyncGenerator<string> {
  for (let at = 0; at < FILE.length; at += of) yield FILE.slice(at, at + of);
}

t.test('a file is read in pieces of any length', async (t) => {
  for (const length of [1, 7, 64, 1_000_000]) {
    const words = await readWords(pieces(length));
    t.same(
      [...words.keys()],
      WORDS.filter((word) => word !== 'a":[b'),
      `${length}`,
    );
    t.same(words.get('dog'), Float32Array.from(numbers(4).slice(0, 100)));
  }
});

t.test('texts of kindred words are near, and one without any has no meaning', async (t) => {
  const meaning = meaningBy(await readWords(pieces(64)));
  const near = (a: string, b: string): number => cosine(meaning(a), meaning(b));
  t.ok(near('The dog', 'a PUPPY') > near('The dog', 'the bank') + 0.2, `${near('The dog', 'a PUPPY')}`);
  t.equal(
    Math.round(near('grüße', 'GRÜSSE grüße') * 1e6) / 1e6,
    1,
    'a word that is not known counts nothing',
  );
  t.ok(meaning('unknown words').every((x) => x === 0));
});

t.test('a package that is not installed is named, with what to do', (t) => {
  t.throws(() => packagePath('no-such-package-of-vectors', 'package.json'), {
    code: 'notInstalled',
    message: 'no-such-package-of-vectors is not installed',
    hint: 'install it with `npm install no-such-package-of-vectors`, or use another embedding model',
  });
  t.end();
});
