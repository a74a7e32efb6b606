import { arrayText, compileTemplate, shapeOf as shapeOfText } from 'osl-compiler';
import { test } from 'tap';
import { shapeOf } from '../../../src/surfaces/rest/json-answer.js';
import { JsonBytes, PORTION_BYTES, valueWriter } from '../../../src/surfaces/rest/json-values.js';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { fc } from '../../support/fast-check.js';

type Nested = readonly (string | null | Nested)[];

function written(type: Parameters<typeof valueWriter>[0], text: string): string {
  const source = Buffer.from(`--${text}--`);
  const { write, portions } = valueWriter(type);
  const [out, inPortions] = [new JsonBytes(1), new JsonBytes(1)];
  write(source, 2, source.length - 2, out);
  for (const _ of portions(source, 2, source.length - 2, inPortions));
  const whole = out.take().toString('utf8');
  if (inPortions.take().toString('utf8') !== whole) throw new Error('in portions it is another value');
  return whole;
}

test('a large value of any type is the same in portions, whatever stands where one ends', async (t) => {
  const long = (text: string): string => text.repeat(Math.ceil((3 * PORTION_BYTES) / text.length));
  const texts = ['x', '\u0001"\\', 'ä€😀', '\n'].map(long);
  for (const text of texts) t.equal(JSON.parse(written('text', text)), text);
  for (const size of [PORTION_BYTES - 1, PORTION_BYTES, PORTION_BYTES + 1, 3 * PORTION_BYTES + 7]) {
    const bytes = Buffer.alloc(size, 'some bytes');
    const hex = `\\x${bytes.toString('hex')}`;
    t.equal(JSON.parse(written('bytea', hex)), bytes.toString('base64'));
    t.same(JSON.parse(written('bytea[]', arrayText([hex, null, hex]))), [
      bytes.toString('base64'),
      null,
      bytes.toString('base64'),
    ]);
  }
  const items = [...texts, null, 'short', '', ...texts];
  t.same(JSON.parse(written('text[]', arrayText(items))), items);
  const many = Array.from({ length: 50_000 }, (_, i) => (i % 7 === 0 ? null : `${i}`));
  t.same(
    JSON.parse(written('int4[]', arrayText(many))),
    many.map((n) => (n === null ? null : Number(n))),
  );
  const document = { text: long('a'), list: many };
  t.same(JSON.parse(written('jsonb', JSON.stringify(document))), document);
  t.same(JSON.parse(written('json', JSON.stringify(document, null, 1))), document);
  t.same(JSON.parse(written('jsonb[]', arrayText([JSON.stringify(document)]))), [document]);
  t.equal(JSON.parse(written('varbit', long('01'))), long('01'));
});

test('any text is written as JSON.parse reads it back', async (t) => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme', minLength: 100, maxLength: 9_000 }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      return JSON.parse(written('text', text)) === text;
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('an array of any texts and nulls survives, whatever needs quotes in it', async (t) => {
  const item = fc.option(fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(fc.array(item), (items) => {
      return JSON.stringify(JSON.parse(written('text[]', arrayText(items)))) === JSON.stringify(items);
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('arrays of arrays, lower bounds and unquoted elements', async (t) => {
  const cases: readonly [string, Nested | readonly unknown[]][] = [
    ['{}', []],
    ['{a,b c,NULL}', ['a', 'b c', null]],
    ['{"NULL","null",""}', ['NULL', 'null', '']],
    [
      '{{a,b},{c,NULL}}',
      [
        ['a', 'b'],
        ['c', null],
      ],
    ],
    ['[0:1]={x,y}', ['x', 'y']],
    [
      '[-1:0][2:3]={{1,2},{3,4}}',
      [
        ['1', '2'],
        ['3', '4'],
      ],
    ],
    ['{"a\\\\b","c\\"d","{}"}', ['a\\b', 'c"d', '{}']],
  ];
  for (const [text, value] of cases) t.same(JSON.parse(written('text[]', text)), value, text);
  t.throws(() => written('text[]', '{"open'), /ends inside/);
});

test('what was taken is not written over', async (t) => {
  const out = new JsonBytes(4);
  out.text('one');
  const first = out.take();
  out.text('two');
  t.equal(first.toString(), 'one');
  t.equal(out.take().toString(), 'two');
});

test('how rows are written is worked out once for texts that differ in their values', async (t) => {
  const access = CALLERS.get('owner')?.access;
  const [one, other] = [1, 2].map((id) => shapeOfText(`select id from customer where id = ${id}`) ?? null);
  if (access === undefined || one == null || other == null) throw new Error('no plain text of the owner');
  const text = 'select id from customer where id = 1';
  const { plan, template } = compileTemplate(text, one, CATALOG, access);
  const filled = template?.fill(other.literals) ?? null;
  if (filled === null) throw new Error('the template does not fit');
  t.not(filled, plan);
  t.equal(shapeOf(filled), shapeOf(plan));
});
