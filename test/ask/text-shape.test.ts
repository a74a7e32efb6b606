import { shapeOf } from 'osl-compiler';
import t, { test } from 'tap';
import { redactStatement } from '../../src/ask/request/redacted-statement.js';
import { LiteralScan, TextShape } from '../../src/ask/routes/text-shape.js';
import { TRICKY } from '../language/compiler/shape-texts.js';
import { fc } from '../support/fast-check.js';
import { startTestService } from '../support/service.js';

/*
 * `TextShape` tells by bytes what `shapeOf` tells by tokens. What it takes for a text of a shape must be one, with these
 * literals; what it passes over costs time alone.
 */

function shapeOfText(text: string): TextShape | null {
  const shaped = shapeOf(text);
  return shaped === null ? null : TextShape.create(Buffer.from(text), shaped);
}

/** Returns the values that `shape` reads from the literals of `text`; null if it is not text of the shape. */
function taken(shape: TextShape, text: string): readonly string[] | null {
  const bytes = Buffer.from(`before ${text} after`);
  const scan = new LiteralScan();
  const [start, end] = [7, bytes.length - 6];
  if (!scan.run(bytes, start, end) || scan.hash !== shape.hash) return null;
  return shape.valuesIn(bytes, start, end, scan);
}

/** A complaint where `text` is taken for one of the shape of `minted` and is none. */
function wrong(minted: string, shape: TextShape, text: string): string | null {
  const values = taken(shape, text);
  if (values === null) return null;
  const shaped = shapeOf(text);
  if (shaped === null || shaped.shape !== shapeOf(minted)?.shape)
    return `${text}\nis not of the shape of\n${minted}`;
  const own = shaped.literals.map((l) => l.value);
  return JSON.stringify(own) === JSON.stringify(values) ? null : `${text}\n${own}\nwas read as\n${values}`;
}

const MINTED = TRICKY.flatMap((text) => {
  const shape = shapeOfText(text);
  return shape === null ? [] : [{ text, shape }];
});

t.test('a text is of its own shape', async (t) => {
  t.ok(MINTED.length >= 30, `${MINTED.length} of ${TRICKY.length} texts can be told by their bytes`);
  for (const { text, shape } of MINTED)
    t.strictSame(
      taken(shape, text),
      shapeOf(text)?.literals.map((l) => l.value),
      text,
    );
});

t.test('a text whose literals two scans read differently has no shape', async (t) => {
  const text = "select a from t where id = 5 and name = 'x'";
  const shaped = shapeOf(text);
  if (shaped === null) throw new Error('no shape');
  const { literals } = shaped;
  const read = (change: (literal: (typeof literals)[number]) => object): TextShape | null =>
    TextShape.create(Buffer.from(text), {
      ...shaped,
      literals: literals.map((literal) => ({ ...literal, ...change(literal) })),
    });
  t.not(
    read(() => ({})),
    null,
  );
  t.equal(
    read(({ value }) => ({ value: `${value}0` })),
    null,
    'another value',
  );
  t.equal(
    read(({ start }) => ({ start: start + 1 })),
    null,
    'another place',
  );
  t.equal(TextShape.create(Buffer.from(text), { ...shaped, literals: literals.slice(1) }), null, 'fewer');
});

t.test('a text with other literals of the same classes is of the shape where shapeOf says so', async (t) => {
  const shape = shapeOfText("select a from t where id = 5 and name = 'x' and score < 1.5");
  if (shape === null) throw new Error('no shape');
  const same = [
    ["select a from t where id = 6 and name = 'y z' and score < 22.75", ['6', 'y z', '22.75']],
    ["select a from t where id = 0 and name = '' and score < 0.0", ['0', '', '0.0']],
    ["select a from t where id = 2147483647 and name = ';--' and score < 1.0", ['2147483647', ';--', '1.0']],
  ] as const;
  for (const [text, values] of same) t.strictSame(taken(shape, text), values, text);
  const other = [
    "select a from t where id = 2147483648 and name = 'x' and score < 1.5", // an int8
    "select a from t where id = 05 and name = 'x' and score < 1.5",
    "select a from t where id = 5 and name = 'it''s' and score < 1.5",
    "select a from t where id = 5 and name = 'x\\' and score < 1.5",
    "select a from t where id = 5 and name = 'é' and score < 1.5",
    "select a from t where id = 5 and name = 'x' and score < 15",
    "select a from t where id = 5 and name = '5' and score < 1.5", // equal literals share a parameter
    "select a from t where id = 5 and name = 'x' and score < 1.5 ",
    "select a from t where id = -5 and name = 'x' and score < 1.5",
    "select b from t where id = 5 and name = 'x' and score < 1.5",
    "select a from t where id = 5 and name = 'x' and score < 1.5 or true",
    "select a from t where id = 5 and name = E'x' and score < 1.5",
    'select a from t where id = 5 and name = "x" and score < 1.5',
    "select a from t where id = 5e1 and name = 'x' and score < 1.5",
    "select a from t where id = 5/*'*/ and name = 'x' and score < 1.5",
  ];
  for (const text of other) t.equal(taken(shape, text), null, text);
});

const literal = fc.oneof(
  fc.integer({ min: -3_000_000_000, max: 3_000_000_000 }).map(String),
  fc.bigInt({ min: 0n, max: 99_999_999_999_999_999_999n }).map(String),
  fc.double({ noNaN: true, min: 0, max: 1e6 }).map(String),
  fc.string({ maxLength: 6 }).map((s) => `'${s}'`),
  fc.constantFrom(
    "''",
    "'a''b'",
    "'1'",
    '1',
    '01',
    '1.',
    '.5',
    '1e3',
    '0x1',
    "e'a'",
    "'ü'",
    "'\\'",
    '$1',
    'null',
  ),
);

t.test(
  'whatever stands in the place of a literal, it is read as shapeOf reads it, or not at all',
  async (t) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...MINTED),
        fc.array(literal, { minLength: 10, maxLength: 10 }),
        (minted, literals) => {
          let i = 0;
          const text = minted.text.replace(/'(?:[^']|'')*'|(?<![\w$."])\d+(?:\.\d+)?/g, (old) =>
            i % 3 === 2 ? old : (literals[i++ % literals.length] ?? old),
          );
          const complaint = wrong(minted.text, minted.shape, text);
          if (complaint !== null) throw new Error(complaint);
        },
      ),
      { numRuns: 20_000 },
    );
    t.pass();
  },
);

t.test(
  'whatever bytes are put in, left out or changed, a text is of a shape only where shapeOf says so',
  async (t) => {
    const edit = fc.record({
      at: fc.nat(200),
      cut: fc.nat(3),
      put: fc.oneof(
        fc.string({ maxLength: 3 }),
        fc.constantFrom("'", '"', '--', '/*', ';', '\0', '\\', ' ', '1', '.', '$'),
      ),
    });
    fc.assert(
      fc.property(
        fc.constantFrom(...MINTED),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        (minted, edits) => {
          let text = minted.text;
          for (const { at, cut, put } of edits) {
            const place = at % (text.length + 1);
            text = text.slice(0, place) + put + text.slice(place + cut);
          }
          const complaint = wrong(minted.text, minted.shape, text);
          if (complaint !== null) throw new Error(complaint);
        },
      ),
      { numRuns: 30_000 },
    );
    t.pass();
  },
);

t.test('the scan takes time in proportion to the text, and gives up on a long one', async (t) => {
  const scan = new LiteralScan();
  const long = Buffer.from(`select ${'1, '.repeat(5_000)}1`);
  t.equal(scan.run(long, 0, long.length), false);
});

const SECRET = 'hunter2secret';

/** Wherever a caller may put a value, right or wrong. */
const TEXTS: readonly string[] = [
  `select id from osl.entities.order where note = '${SECRET}'`,
  `select id from osl.entities.order where note = "${SECRET}"`,
  `select id from osl.entities.order where note = ${SECRET}`,
  `select id from osl.entities.order where note = E'a\\'${SECRET}'`,
  `select id from osl.entities.order where note = U&'\\0041${SECRET}'`,
  `select id from osl.entities.order where note = $$${SECRET}$$`,
  `select id from osl.entities.order where note = $tag$ $$ ${SECRET} $tag$`,
  `select id from osl.entities.order where note = 'it''s ${SECRET}'`,
  `select id from osl.entities.order where note = '${SECRET}`,
  `select id from osl.entities.order where note = "${SECRET}`,
  `select id from osl.entities.order where note = $$${SECRET}`,
  `select id /* ${SECRET} */ from osl.entities.order -- ${SECRET}`,
  `select id /* ${SECRET}`,
  `select id /* /* */ ${SECRET} */ from osl.entities.order`,
  `select ${SECRET}(id) as "${SECRET}" from ${SECRET}.${SECRET} ${SECRET}`,
  `${SECRET}`,
  `select 1 as a; password=${SECRET}`,
  `select id from osl.entities.order where note = N'${SECRET}' and note <> B'01${SECRET}'`,
  `select id from osl.entities.order where note = 'a' \n 'b${SECRET}'`,
];

test('no literal and no name that nobody declared is in a shape, wherever it stands', async (t) => {
  const service = await startTestService({ embedded: true });
  t.teardown(() => service.close());
  const { catalog } = service.service.model().manifest;
  const shape = (text: string) => redactStatement(text, catalog).shape;
  for (const text of TEXTS) t.notMatch(shape(text), /hunter2/, text);
  t.equal(
    shape(
      "SELECT o.id, count(*) FROM osl.entities.order o WHERE o.id = 5 AND o.id::text <> 'x' -- 7\n LIMIT $1",
    ),
    'select _1.id, count(*) from osl.entities.order _1 where _1.id = ? and _1.id::text <> ? limit $1',
  );
  const print = (text: string) => redactStatement(text, catalog).fingerprint;
  t.equal(
    print('select id from osl.entities.order where id = 1'),
    print('SELECT id\nFROM osl.entities.order WHERE id=22'),
  );
  t.not(print('select id from osl.entities.order'), print('select id from osl.entities.order where id = 1'));
});

test('a long text costs no more than its first part', async (t) => {
  const service = await startTestService({ embedded: true });
  t.teardown(() => service.close());
  const { catalog } = service.service.model().manifest;
  for (const part of ["'", '"', '$a', '/*', '$$', 'a', '(', "E'\\", 'u&', '-'])
    t.ok(redactStatement(part.repeat(1_000_000), catalog).shape.length < 1_100, part);
});
