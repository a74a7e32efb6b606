import { ready, shapeOf } from 'osl-compiler';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { literalTokens } from './tokens.js';

await ready();

/** The scanner must say of each text what the parser's own scanner says, or nothing. */
function agrees(text: string): string | null {
  const shaped = shapeOf(text);
  if (shaped === null) return null;
  const tokens = literalTokens(text);
  if (tokens === null) return `plain to us, out of lexis to the parser: ${text}`;
  const ours = shaped.literals.map(({ start, value }) => `${start} ${value}`);
  const theirs = tokens.map(({ start, value }) => `${start} ${value}`);
  return ours.join('\n') === theirs.join('\n')
    ? null
    : `${text}\nours:\n${ours.join('\n')}\ntheirs:\n${theirs.join('\n')}`;
}

const PLAIN = [
  "select 'it''s'",
  "select ''",
  "select ''''",
  'select 1.e5, 1., .5, 1.5e-3, 1E+5, t.5 from t',
  'select -1, - 1, 2-1, 2 - -1, a=-1, a@-1',
  'select $1, $2::int4',
  'select 007, 2147483647, 2147483648, 9223372036854775807, 9223372036854775808, 99999999999999999999',
  "select 'Élodie', 'x', 3 from t where a = 'ü' and b = 4",
  `select "a b".c, "Select" from "T" where x='1'and y=2`,
  "select interval '1 day', date '2026-01-01', timestamp '2026-01-01 00:00'",
  'select a$1, b$c from t',
  'select x[1], array[1,2], a::numeric(10,2)',
  "select 'a\nb', 'tab\t'",
  "select 'a' 'b'".replace(' ', '  ').replace("'a' 'b'", "'a', 'b'"),
  "select u & 'x'",
];

const OTHERS = [
  'select 1e',
  'select 1e+',
  'select 0x1F',
  'select 0b01',
  'select 1_000',
  'select 1..2',
  'select 1a',
  'select a--b',
  'select 1 --',
  'select 1 /* x */',
  'select a/*',
  "select U&'\\0041'",
  'select U&"a"',
  "select E'a\\n'",
  "select e'a'",
  "select b'01'",
  "select x'1F'",
  "select n'a'",
  "select 'a'\n'b'",
  "select 'a' 'b'",
  "select 'a\\b'",
  "select 'open",
  'select "open',
  'select "a""b"',
  'select ""',
  'select $$a$$',
  'select $a$b$a$',
  'select $1a',
  'select é',
  "select '\u{1F600}'",
  "select '\ud800'",
  'select 1\f',
  'select \u00a01',
  "select 'a\u0000b'",
  "select '\u0001s'",
];

t.test('plain texts have a shape, with the literals that the parser sees', async (t) => {
  for (const text of PLAIN) {
    t.not(shapeOf(text), null, text);
    t.equal(agrees(text), null);
  }
});

t.test('all others have none', async (t) => {
  for (const text of OTHERS) t.equal(shapeOf(text), null, JSON.stringify(text));
});

const PIECES = [
  ...["'", "''", '"', '$', '$1', '$$', '-', '--', '/*', '*/', '.', '..', 'e', 'E', 'u&', 'U&', 'b', 'x', 'N'],
  ...['0', '1', '42', '007', '2147483648', '1e5', '.5', '0x1F', '1_0', 'a', 'select', 'from', 'é', '\\'],
  ...[' ', '\n', '\t', '\r', '(', ')', ',', ';', ':', '=', '<', '>', '@', '~', '&', '|', '#', '%', '[', ']'],
  ...["'a'", "'it''s'", '"q"', '_', '\f', '?', '`', '{', '\u{1F600}', '+'],
];

t.test('on texts of any pieces the two scanners agree, or ours gives up', async (t) => {
  let plain = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }), (pieces) => {
      const text = `select ${pieces.join('')}`;
      if (shapeOf(text) !== null) plain++;
      const difference = agrees(text);
      if (difference !== null) throw new Error(difference);
    }),
    { numRuns: Number(process.env['OSL_SHAPE_RUNS'] ?? 10_000), seed: 20_260_101 },
  );
  t.ok(plain > 1_000, `${plain} of them were plain`);
});

t.test('texts that differ in class or in which literals are equal differ in shape', async (t) => {
  const shape = (text: string): string | undefined => shapeOf(text)?.shape;
  t.equal(shape("select 1, 'a'"), shape("select 20, 'bcd'"));
  t.not(shape('select 1, 2'), shape('select 1, 1'));
  t.equal(shape('select 3, 3'), shape('select 1, 1'));
  t.not(shape('select 1'), shape('select 2147483648'));
  t.not(shape('select 1'), shape('select 1.0'));
  t.not(shape('select 9223372036854775807'), shape('select 9223372036854775808'));
  t.not(shape("select '1'"), shape('select 1'));
  t.not(shape("select 5, '5'"), shape("select 5, '6'"));
});
