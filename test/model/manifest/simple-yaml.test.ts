import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { parseDocument } from 'yaml';
import { manifestYaml, policyYaml } from '../../../bench/scale/generate.js';
import { simpleYaml } from '../../../src/model/manifest/simple-yaml.js';
import { plainValue } from '../../../src/model/manifest/yaml-value.js';
import { fc } from '../../support/fast-check.js';

/** Returns the result of the full parser; null if it refuses. */
function whole(text: string): { readonly value: unknown } | null {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, strict: true });
  if (document.errors.length > 0 || document.warnings.length > 0) return null;
  const { value, problems } = plainValue(document);
  return problems.length > 0 ? null : { value };
}

/** True if the quick reader took the text; throws where it took it for something else than the full parser does. */
function agrees(text: string): boolean {
  const simple = simpleYaml(text);
  if (simple === undefined) return false;
  const full = whole(text);
  if (full === null || !isDeepStrictEqual(simple, full.value)) {
    throw new Error(`${JSON.stringify(text)}\n${JSON.stringify(simple)}\n${JSON.stringify(full)}`);
  }
  return true;
}

t.test('files as they are written', async (t) => {
  t.ok(agrees(manifestYaml({ entities: 50, grants: 100 })), 'the manifest of the scale bench');
  t.ok(agrees(policyYaml({ entities: 50, grants: 100 })), 'its policy');
  const examples = ['examples/supply-chain', 'bench/wire', 'bench/compile'];
  const files = examples.flatMap((dir) =>
    readdirSync(dir)
      .filter((f) => f.endsWith('.yaml'))
      .map((f) => `${dir}/${f}`),
  );
  for (const file of files) t.comment(`${file}: ${agrees(readFileSync(file, 'utf8')) ? 'quick' : 'full'}`);
  t.ok(files.length > 3);
});

const SIMPLE = [
  "a: 1\nb: two # three\nc:\n  d: [x, \"y z\", 'it''s', 1.5, -3, true]\n  e: { f: g h, i: {}, j: [] }\n",
  '# comment\n\nlist:\n- a\n- b: 1\n  c: 2\n- { d: e }\nnext:\n  - x\n',
  'user:bench: { ceiling: [a, b] }\nempty:\nalso: # nothing\n',
  "rows: region = attribute('region') and x > 1\nurl: http://x/y#z\n",
  '- a\n- b\n',
  'a: b\n\n  # deeper comment\nc: d',
];

t.test('what it takes, it reads as the full parser does', async (t) => {
  for (const text of SIMPLE) t.ok(agrees(text), text);
});

const NOT_SIMPLE = [
  ...[
    '',
    '1',
    'a',
    '---\na: 1',
    'a: 1\n...\n',
    '%YAML 1.2\n---\na: 1',
    '\ufeffa: 1',
    'a:\t1',
    'a: 1\r\nb: 2',
    'a: b\u00a0',
    'a: [b\u3000]',
  ],
  ...['a: |\n  x', 'a: >\n  x', 'a: &x 1', 'a: *x', 'a: !t x', '? a', 'a: b\n  c', 'a: "b\n  c"', 'a: "\\n"'],
  ...['a: 1\na: 2', 'a: { b: 1, b: 2 }', 'a: 01', 'a: 0x1', 'a: 1e3', 'a: .5', 'a: ~', 'a: Null', 'a: True'],
  ...['true: 1', 'null: 1', '1: 1', '"a": 1', 'a: b: c', 'a: x:', 'a: [b', 'a: [b,, c]', 'a: [b,]', 'a: {b}'],
  ...[
    'a: [b: c]',
    'a: [b]c',
    'a: "b"c',
    "a: 'b",
    'a: - b',
    '-\n  a: 1',
    '- - a',
    'a: 1\n b: 2',
    '  a: 1',
    'a: @x',
  ],
  ...['a: `x`', 'a: %x', 'a: ,x', 'a:b', 'a: 2026-01-01', 'a: [x #y]', 'a: {b:c}', '<<: {a: 1}'],
];

t.test('everything else it leaves to the full parser', async (t) => {
  for (const text of NOT_SIMPLE) t.equal(simpleYaml(text), undefined, JSON.stringify(text));
});

const PIECES = [
  ...[
    'a',
    'b',
    '\u00a0',
    'key',
    'user:x',
    'true',
    'null',
    '~',
    '1',
    '-1',
    '007',
    '1.5',
    '1e3',
    '.5',
    '"q"',
    "'s'",
    "''",
    '""',
  ],
  ...[
    ': ',
    ':',
    ' ',
    '  ',
    '    ',
    '\n',
    '\n  ',
    '\n    ',
    '\n- ',
    '\n  - ',
    '- ',
    '-',
    ', ',
    ',',
    '[',
    ']',
    '{',
    '}',
  ],
  ...[
    '#',
    ' # c',
    '\n# c\n',
    '|',
    '>',
    '&x ',
    '*x',
    '!',
    '?',
    '? ',
    '\t',
    '\\',
    'é',
    '(',
    '$',
    '/',
    '.',
    '@',
    '%',
    '=',
  ],
  ...[
    'a: ',
    'b: ',
    'c:\n  ',
    '\nd: ',
    '\n  e: ',
    '{ f: ',
    ' }',
    '[ ',
    ' ]',
    '---',
    '\n...\n',
    '<<',
    "'",
    '"',
  ],
];

t.test('on texts of any pieces the two agree, or the quick one gives up', async (t) => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }), fc.boolean(), (pieces, mapping) => {
      if (agrees(`${mapping ? 'k: ' : ''}${pieces.join('')}`)) taken++;
    }),
    { numRuns: Number(process.env['OSL_YAML_RUNS'] ?? 10_000), seed: 20_260_101 },
  );
  t.ok(taken > 500, `${taken} were taken`);
});
