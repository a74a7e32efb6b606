import t from 'tap';
import type * as Text from '../../../compiler/src/text/text.js';
import { compiled } from '../../proof/oracle/internals.js';
import { fc } from '../../support/fast-check.js';

/** Bytes, UTF-16 code units and characters of a text are converted into each other as an encoder counts them. */

const { bytesBetween, charactersBefore, indexOfByte, indexOfCharacter } = (await compiled(
  'text/text.js',
)) as typeof Text;

const CHARACTER = fc.constantFrom(
  'a',
  '\n',
  '\u007f',
  '\u0080',
  'ß',
  '\u07ff',
  '\u0800',
  '€',
  '\uffff',
  '\u{1F600}',
);

t.test('any text, up to any character', async () => {
  fc.assert(
    fc.property(fc.array(CHARACTER, { maxLength: 40 }), fc.nat(40), fc.nat(40), (characters, a, b) => {
      const [from, to] = [Math.min(a, b, characters.length), Math.min(Math.max(a, b), characters.length)];
      const text = characters.join('');
      const before = characters.slice(0, from).join('');
      const between = characters.slice(from, to).join('');
      const bytes = Buffer.byteLength(before);
      const end = before.length + between.length;
      return (
        bytesBetween(text, before.length, end) === Buffer.byteLength(between) &&
        indexOfByte(text, bytes) === before.length &&
        indexOfByte(text, bytes + Buffer.byteLength(between), before.length, bytes) === end &&
        indexOfCharacter(text, from) === before.length &&
        charactersBefore(text, before.length) === from
      );
    }),
    { numRuns: 2_000 },
  );
});

t.test('an offset before the text is its beginning, and one behind it its end', async (t) => {
  for (const text of ['', 'abc', 'aß€']) {
    t.equal(indexOfByte(text, -1), 0);
    t.equal(indexOfByte(text, 100), text.length);
    t.equal(indexOfCharacter(text, -1), 0);
    t.equal(indexOfCharacter(text, 100), text.length);
    t.equal(bytesBetween(text, 2, 1), 0);
    t.equal(charactersBefore(text, -1), 0);
  }
});
