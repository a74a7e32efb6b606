import { parse, ready } from 'osl-compiler';
import t from 'tap';

await ready();

const LONG = 300;
const numbers = (last = LONG): string =>
  [...Array.from({ length: LONG - 1 }, (_, i) => String(i + 1)), String(last)].join(', ');
const strings = Array.from({ length: LONG }, (_, i) => `'v${i}'`).join(', ');

t.test('a long IN list of one kind of literals is one list for the parser', async (t) => {
  for (const [what, list, expected] of [
    ['int4', numbers(), [['int4', LONG]]],
    ['int8, as its last number needs it', numbers(2 ** 31), [['int8', LONG]]],
    ['int8, as its first number needs it', `${2 ** 31}, ${numbers()}`, [['int8', LONG + 1]]],
    ['strings', strings, [[null, LONG]]],
    ['a string behind numbers', `${numbers()}, 'x'`, []],
    ['a number behind strings', `${strings}, 1`, []],
    ['256 values', Array.from({ length: 256 }, (_, i) => i).join(', '), []],
    ['257 values', Array.from({ length: 257 }, (_, i) => i).join(', '), [['int4', 257]]],
  ] as const) {
    const { lists } = parse(`select id from customer where id in (${list}) and 1 = 1`);
    t.strictSame(
      [...lists.values()].map(({ type, items }) => [type, items.length]),
      expected,
      what,
    );
  }
});
