import { readFileSync } from 'node:fs';
import t from 'tap';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { findKey, outlineOf } from '../../../cli/lsp/yaml/find.js';
import { placeAt } from '../../../cli/lsp/yaml/place.js';
import { fc } from '../../support/fast-check.js';

/** Where a cursor stands, read off lines, against what a parser of YAML says of the same files. */

const FILES = [
  'examples/supply-chain/manifest.yaml',
  'examples/supply-chain/policy.yaml',
  'examples/reference/manifest.yaml',
  'examples/reference/policy.yaml',
];

interface Scalar {
  readonly steps: readonly string[];
  readonly role: 'key' | 'value';
  readonly text: string;
  readonly offset: number;
}

/** Every key, and every plain or quoted value on one line, with the way to it. */
function* scalarsIn(node: Node | null, steps: readonly string[], text: string): Generator<Scalar> {
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue;
      yield { steps, role: 'key', text: String(key.value), offset: key.range?.[0] ?? 0 };
      yield* scalarsIn(value as Node | null, [...steps, String(key.value)], text);
    }
  } else if (isSeq(node)) {
    for (const item of node.items) yield* scalarsIn(item as Node, [...steps, '[]'], text);
  } else if (isScalar(node) && node.range) {
    const [from, to] = node.range;
    if (!text.slice(from, to).includes('\n') && from < to && !node.anchor)
      yield { steps, role: 'value', text: String(node.value), offset: from };
  }
}

for (const file of FILES) {
  t.test(`each key and value of ${file} is at its place`, async (t) => {
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n');
    const counter = new LineCounter();
    const document = parseDocument(text, { lineCounter: counter });
    let checked = 0;
    const wrong: string[] = [];
    for (const scalar of scalarsIn(document.contents, [], text)) {
      const { line, col } = counter.linePos(scalar.offset);
      const quoted = /["']/.test(text[scalar.offset] ?? '');
      const place = placeAt(lines, line - 1, col - 1 + (quoted ? 1 : 0));
      const isKey = scalar.role === 'key';
      const role = place?.role === 'either' ? scalar.role : place?.role;
      // Of a value with blanks the word at the cursor is its first one.
      const word = isKey || quoted ? scalar.text : (scalar.text.split(/\s/)[0] ?? '');
      const fits =
        place !== null && role === scalar.role && place.steps.join('\n') === scalar.steps.join('\n');
      if (!fits || !(place.word === word || (!isKey && word.startsWith(place.word))))
        wrong.push(
          `${line}:${col} ${scalar.role} ${scalar.steps.join('/')} ${word}: ${JSON.stringify(place)}`,
        );
      checked++;
    }
    t.strictSame(wrong.slice(0, 5), [], `${wrong.length} of ${checked}`);
    t.ok(checked > 50, `${checked}`);
  });

  t.test(`each key of ${file} is found`, async (t) => {
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n');
    const counter = new LineCounter();
    const document = parseDocument(text, { lineCounter: counter });
    for (const { steps, role, text: key, offset } of scalarsIn(document.contents, [], text)) {
      if (role !== 'key' || steps.length > 1) continue;
      const { line } = counter.linePos(offset);
      t.equal(findKey(lines, [...steps, key])?.line, line - 1, [...steps, key].join('/'));
    }
    const sections = outlineOf(lines);
    t.same(
      sections.map(({ name }) => name),
      isMap(document.contents) ? document.contents.items.map(({ key }) => String(key)) : [],
    );
  });
}

t.test('whatever is typed, a cursor has a place or none, in time', async (t) => {
  const text = readFileSync('examples/reference/manifest.yaml', 'utf8').split('\n').slice(0, 80).join('\n');
  const piece = fc.constantFrom(...'{}[]:,-#"\' \n\tab', ': ', '- ', '\r\n', '  ', "'' ", '\u{1f600}');
  fc.assert(
    fc.property(
      fc.nat(text.length),
      fc.nat(40),
      fc.array(piece, { maxLength: 12 }),
      fc.nat(),
      (at, cut, typed, where) => {
        const edited = text.slice(0, at) + typed.join('') + text.slice(at + cut);
        const lines = edited.split('\n');
        const line = where % lines.length;
        const column = where % ((lines[line]?.length ?? 0) + 1);
        const place = placeAt(lines, line, column);
        if (place !== null) t.ok(place.start <= place.end && place.end <= (lines[line]?.length ?? 0));
        outlineOf(lines);
        findKey(lines, place?.steps ?? []);
      },
    ),
    { numRuns: 2_000 },
  );
  const started = process.cpuUsage();
  for (const long of [
    ' '.repeat(200_000),
    'a '.repeat(100_000),
    '{'.repeat(200_000),
    'a: '.repeat(70_000),
    '"'.repeat(200_000),
  ])
    placeAt([long], 0, long.length);
  const { user, system } = process.cpuUsage(started);
  t.ok(user + system < 5_000_000, `${(user + system) / 1_000} ms of a processor`);
});
