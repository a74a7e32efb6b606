/**
 * Draws mutants of the product at random, one changed operator, bound or branch each, and runs against each the tests
 * that are nearest to its file, until one fails:
 * `node dist/test/mutants/random.js [--seed 27] [--count 40] [--from 1]`, after a build, from the checkout's root.
 *
 * A mutant lives in a copy of the checkout. What fails is run once more on the unchanged copy: only a test that passes
 * there has killed a mutant. Not a part of CI; the results are in docs/testing.md.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { diceFrom } from '../proof/oracle/dice.js';

/** Rooms of the product, as they are built. */
const ROOMS = [
  'compiler/dist',
  'dist/src',
  'dist/wire',
  'dist/policy',
  'dist/audit',
  'dist/cli',
  'dist/interchange',
];
/** Tests of a whole room, which no import leads to in few steps; they follow the two that are nearest. */
const OF_ROOM: Readonly<Record<string, readonly string[]>> = {
  'compiler/dist': [
    'proof/golden/golden',
    'language/forms/statements',
    'proof/oracle/verifier',
    'proof/conformance/conformance',
    'proof/oracle/oracle',
    'proof/oracle/rollups',
    'proof/joins/joins',
  ],
};
/** Tests that a mutant is run against at most, the nearest first. */
const TESTS = 7;
const TEST_MS = 300_000;

/** Text → what stands in its place. */
const CHANGES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/ === /g, [' !== ']],
  [/ !== /g, [' === ']],
  [/ && /g, [' || ']],
  [/ \|\| /g, [' && ']],
  [/ < /g, [' <= ', ' >= ']],
  [/ <= /g, [' < ']],
  [/ > /g, [' >= ', ' <= ']],
  [/ >= /g, [' > ']],
  [/ \+ 1\b/g, ['', ' + 2']],
  [/ - 1\b/g, ['', ' - 2']],
  [/\breturn true\b/g, ['return false']],
  [/\breturn false\b/g, ['return true']],
  [/\bif \(/g, ['if (false && ', 'if (true || ']],
];

interface Mutant {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/** Files that an older build left in `dist` have none. */
const sourceOf = (file: string): string =>
  file
    .replace(/^dist\//, '')
    .replace('compiler/dist/', 'compiler/src/')
    .replace(/\.js$/, '.ts');

const filesBelow = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file))
    .filter((file) => existsSync(sourceOf(file)) || existsSync(`${sourceOf(file)}x`))
    .toSorted();

/** A line of code; comments and lines in which a quotation is open where the change would be are left out. */
function mutantsOf(file: string, text: string, line: number): Mutant[] {
  const own = text.split('\n')[line - 1] ?? '';
  if (/^\s*(\*|\/\/|\/\*)/.test(own)) return [];
  return CHANGES.flatMap(([pattern, others]) =>
    [...own.matchAll(pattern)]
      .filter(({ index }) => isCode(own.slice(0, index)))
      .flatMap((found) => others.map((to) => changed(file, text, line, found, to))),
  );
}

const isCode = (before: string): boolean =>
  !/\/\/ /.test(before) && ["'", '"', '`'].every((mark) => before.split(mark).length % 2 === 1);

function changed(file: string, text: string, line: number, found: RegExpExecArray, to: string): Mutant {
  const lines = text.split('\n');
  const own = lines[line - 1] ?? '';
  lines[line - 1] = own.slice(0, found.index) + to + own.slice(found.index + found[0].length);
  return { file, line, from: own.trim(), to: (lines[line - 1] ?? '').trim(), text: lines.join('\n') };
}

/** The same ones from the same seed and the same build: a file by its lines, a line of it, a change of it. */
function drawn(seed: number, count: number): Mutant[] {
  const dice = diceFrom(seed);
  const files = ROOMS.flatMap((room) => filesBelow(room, '.js')).map((file) => {
    const text = readFileSync(file, 'utf8');
    return { file, text, lines: text.split('\n').length };
  });
  const all = files.flatMap((file) =>
    Array.from({ length: file.lines }, (_, at) => ({ ...file, line: at + 1 })),
  );
  const mutants: Mutant[] = [];
  while (mutants.length < count) {
    const place = dice.of(all);
    const found = mutantsOf(place.file, place.text, place.line);
    if (found.length > 0) mutants.push(dice.of(found));
  }
  return mutants;
}

const IMPORTS = /(?:from|import) ?\(?'(\.[^']+\.js|osl-compiler)'/g;

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(IMPORTS)].map(([, name = '']) =>
    name === 'osl-compiler' ? 'compiler/dist/index.js' : join(dirname(file), name),
  );
}

/** Returns the number of imports between each test and `file`. */
function distances(
  tests: readonly string[],
  file: string,
  imports: Map<string, string[]>,
): Map<string, number> {
  const users = new Map<string, string[]>();
  for (const [user, used] of imports)
    for (const one of used) users.set(one, [...(users.get(one) ?? []), user]);
  const steps = new Map([[file, 0]]);
  for (const [at, step] of steps)
    for (const user of users.get(at) ?? []) if (!steps.has(user)) steps.set(user, step + 1);
  return new Map(tests.flatMap((test) => (steps.has(test) ? [[test, steps.get(test) ?? 0]] : [])));
}

/** Words of a path, by which a test of a room is known. */
const wordsOf = (path: string): string[] =>
  path.split(/[/.-]/).filter((word) => !['dist', 'src', 'test', 'js', 'index'].includes(word));

function nearest(tests: readonly string[], file: string, imports: Map<string, string[]>): string[] {
  // A word of few tests says more than one of many.
  const weights = new Map(
    wordsOf(file).map((word) => {
      const having = tests.filter((test) => wordsOf(test).includes(word)).length;
      return [word, Math.log2(tests.length / Math.max(1, having))];
    }),
  );
  const steps = distances(tests, file, imports);
  const score = (test: string): number =>
    [...new Set(wordsOf(test))].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0) -
    (steps.get(test) ?? 12);
  const near = tests.toSorted((a, b) => score(b) - score(a)).slice(0, TESTS);
  const room = (OF_ROOM[ROOMS.find((one) => file.startsWith(one)) ?? ''] ?? []).map(
    (name) => `dist/test/${name}.test.js`,
  );
  return room.length === 0 ? near : [...new Set([...near.slice(0, 2), ...room])];
}

/** A copy of the checkout, which a build of it does not change; of the packages it has hard links. */
function copyOf(root: string): string {
  const copy = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'osl-mutants-'));
  for (const name of readdirSync(root).filter((one) => one !== '.git'))
    spawnSync('cp', [name === 'node_modules' ? '-al' : '-a', join(root, name), copy], { stdio: 'inherit' });
  return copy;
}

/** The first assertion of the test that fails; null: it passes. */
function fault(copy: string, test: string): string | null {
  const child = spawnSync(process.execPath, [test], {
    cwd: copy,
    timeout: TEST_MS,
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    killSignal: 'SIGKILL',
  });
  if (child.status === 0) return null;
  return /^ *not ok \d+ - (.*)$/m.exec(child.stdout)?.[1] ?? `it ended with ${child.signal ?? child.status}`;
}

/** The test that kills the mutant, and its assertion; null: none of those that were run. */
function killerOf(
  mutant: Mutant,
  tests: readonly string[],
  copy: string,
  sound: Map<string, boolean>,
): string | null {
  const file = join(copy, mutant.file);
  const before = readFileSync(file, 'utf8');
  for (const test of tests) {
    if (sound.get(test) === false) continue;
    writeFileSync(file, mutant.text);
    const failed = fault(copy, test);
    writeFileSync(file, before);
    if (failed === null) continue;
    if (!sound.has(test)) sound.set(test, fault(copy, test) === null);
    if (sound.get(test) === true) return `${relative('dist/test', test).replace('.test.js', '')}: ${failed}`;
  }
  return null;
}

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '27' },
    count: { type: 'string', default: '40' },
    from: { type: 'string', default: '1' },
  },
});
const mutants = drawn(Number(values.seed), Number(values.count));
const tests = filesBelow('dist/test', '.test.js');
const imports = new Map(
  [...ROOMS.flatMap((room) => filesBelow(room, '.js')), ...filesBelow('dist/test', '.js')].map((file) => [
    file,
    importsOf(file),
  ]),
);
const copy = copyOf(resolve('.'));
const sound = new Map<string, boolean>();
try {
  for (const [at, mutant] of mutants.entries()) {
    if (at + 1 < Number(values.from)) continue;
    const killer = killerOf(mutant, nearest(tests, mutant.file, imports), copy, sound);
    const end = killer === null ? 'SURVIVED' : `killed by ${killer}`;
    process.stdout.write(
      `${at + 1} ${mutant.file}:${mutant.line} ${end}\n  - ${mutant.from}\n  + ${mutant.to}\n`,
    );
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
