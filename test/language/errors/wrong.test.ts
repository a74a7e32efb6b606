import { nearest } from 'osl-compiler';
import t, { test } from 'tap';
import { formatProblem, problemOf } from '../../../cli/reply.js';
import { widthOf } from '../../../cli/table.js';
import { fc } from '../../support/fast-check.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { FOLLOWED, followedName } from './followed.js';
import { WRONG } from './wrong.js';

t.setTimeout(600_000);

t.test('every wrong question: code, place, message, hint, and the caret of the CLI', async (t) => {
  const fixture = await startRest();
  t.teardown(() => fixture.close());
  for (const { as, osql, code, at, message, hint } of WRONG) {
    const offset = osql.indexOf('‸');
    const text = osql.replace('‸', '');
    const lines = osql.slice(0, offset).split('\n');
    const before = lines.at(-1) ?? '';
    const reply = await fixture.ask(as, { osql: text });
    const body = reply.json();
    const position = { offset, line: lines.length, column: before.length + 1 };
    t.match(body, { code, detail: message, position }, osql);
    t.equal(body['hint'] ?? null, hint, osql);
    t.equal(`${position.line}:${position.column}`, at, osql);
    t.match(message, /^[a-zA-Z`$].*[^.]$/, `one sentence without a full stop: ${message}`);
    const [, source = '', caret = ''] = formatProblem(problemOf(body, reply.status), text).split('\n');
    const shown = before.replaceAll('\t', '    ');
    t.equal(source, `${String(lines.length).padStart(5)} | ${lineAt(text, lines.length)}`, 'the line itself');
    t.match(caret, /^ {6}\| *\^+$/);
    t.equal(
      caret.indexOf('^'),
      '      | '.length + widthOf(shown),
      `the caret stands under the place: ${osql}`,
    );
  }
  t.ok(WRONG.length >= 60, `${WRONG.length} questions`);
});

t.test('who follows a hint is answered', async (t) => {
  const fixture = await startRest();
  t.teardown(() => fixture.close());
  const tried = new Set<string>();
  for (const { as, osql, message, hint } of WRONG) {
    if (hint === null) continue;
    const named = followedName(osql, message, hint);
    const text = named ?? FOLLOWED[hint];
    if (text === undefined) t.fail(`nobody followed: ${hint}`);
    if (text === undefined || tried.has(text)) continue;
    tried.add(text);
    if (named === null) t.not(text, osql.replace('‸', ''), `not the question that was refused: ${hint}`);
    const reply = await fixture.ask(as, { osql: text });
    // The shop has neither passages nor a model, which is all that some of these then lack.
    const lacks = reply.status === 503 && /E052[12]/.test(reply.text);
    t.ok(reply.status === 200 || lacks, `${hint}: ${text}`, { reply: reply.text });
  }
  const given = new Set(WRONG.map((w) => w.hint));
  t.strictSame(
    Object.keys(FOLLOWED).filter((hint) => !given.has(hint)),
    [],
    'each is the hint of a question',
  );
});

function lineAt(text: string, line: number): string {
  return (text.split('\n')[line - 1] ?? '').replaceAll('\t', '    ').slice(0, 120);
}

/** Edits between two texts, a swap of neighbours counted as one: by the book, without a bound. */
function edits(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : changed;
      row.push(Math.min(changed, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}

function byTheBook(name: string, names: readonly string[]): string | null {
  const most = Math.max(1, Math.floor(name.length / 3));
  const found = names
    .map((candidate) => ({ candidate, distance: edits(name, candidate) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance); // stable: the first of equals
  return found[0]?.candidate ?? null;
}

test('the nearest name is that of the fewest edits, and none where they are too many', async (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '_'), minLength: 1, maxLength: 14 });
  fc.assert(
    fc.property(word, fc.array(word, { maxLength: 12 }), (name, names) => {
      return nearest(name, names) === byTheBook(name, names);
    }),
    { numRuns: 5_000 },
  );
  t.equal(nearest('custmer', ['order', 'customer', 'custom']), 'customer');
  t.equal(nearest('Pakcage', ['package']), 'package', 'a swap is one edit, and letters have no case');
  t.equal(nearest('x'.repeat(65), ['x'.repeat(64)]), null, 'too long for a slip of the hand');
});
