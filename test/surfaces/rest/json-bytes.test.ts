import { arrayText, compileTemplate, shapeOf as shapeOfText } from 'osl-compiler';
import { test } from 'tap';
import { JsonBytes } from '../../../src/surfaces/rest/json-bytes.js';
import { shapeOf } from '../../../src/surfaces/rest/rows.js';
import { valueWriter } from '../../../src/surfaces/rest/values.js';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { fc } from '../../support/fast-check.js';

type Nested = readonly (string | null | Nested)[];

function written(type: Parameters<typeof valueWriter>[0], text: string): string {
  const out = new JsonBytes(1);
  const source = Buffer.from(`--${text}--`);
  valueWriter(type)(source, 2, source.length - 2, out);
  return out.take().toString('utf8');
}

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
