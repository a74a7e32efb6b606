import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { measured, resultRows, thousands } from './measured.js';

const README = join(process.cwd(), 'README.md');

/** The lines of README's first table, and the questions of the bench that they are of. */
const BARRIER: Readonly<Record<string, string>> = {
  'numeric key': 'numeric_key',
  "`LIKE 'owner 12%'`": 'like',
  'array search, GIN': 'array_search',
  'join on numeric keys': 'numeric_join',
  'date range, leakproof': 'date_range',
};

/** Speed, as a multiple of row-level security's, from which README.md calls a query faster. */
const FASTER = 2;

test('the costs that README.md names are those of bench/RESULTS.md', (t) => {
  const found = readFileSync(README, 'utf8');
  const meant = withFigures(found);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(README, meant);
  t.equal(readFileSync(README, 'utf8'), meant, 'run OSL_WRITE_DOCS=1 npm test to write it anew');
  t.end();
});

/** `text` with the figures of now. A line that is no longer there is an error. */
function withFigures(text: string): string {
  const questions = resultRows('barrier: with policy, without, and row security').slice(2);
  const lines = Object.entries(BARRIER).map(([line, question]) => {
    const [, , , policy, without, , security] = questions.find(([name]) => name === question) ?? [];
    return [line, [without, policy, security].map((us) => thousands(Number(us)))] as const;
  });
  const tables = [...lines, ...['simple', 'extended', 'prepared'].map(wireLine)];
  const costs = questions.map((row) => Number.parseFloat(row[5] ?? '')).sort((a, b) => a - b);
  const [most, slow] = [costs.at(-2)?.toFixed(2), costs.at(-1)?.toFixed(1)];
  const alone = measured('wire.point.c1.vs_direct');
  const speeds = questions.map((row) => Number.parseFloat(row[7] ?? '')).sort((a, b) => a - b);
  const [alike, faster] = [
    speeds.filter((speed) => speed < FASTER),
    speeds.filter((speed) => speed >= FASTER),
  ];
  const sentences: (readonly [RegExp, string])[] = [
    [
      /Of \d+ queries, \d+ run \d+ to [\d,]+ times faster here, and the other \d+ run at [\d.]+ to [\d.]+ times/,
      `Of ${speeds.length} queries, ${faster.length} run ${thousands(faster.at(0) ?? NaN)} to ${thousands(faster.at(-1) ?? NaN)} times faster here, and the other ${alike.length} run at ${alike.at(0)?.toFixed(2)} to ${alike.at(-1)?.toFixed(2)} times`,
    ],
    [/all \d+ questions\]/, `all ${costs.length} questions]`],
    [/\d+ cost at most [\d.]+×/, `${costs.length - 1} cost at most ${most}×`],
    [/slower by its nature, [\d.]+×/, `slower by its nature, ${slow}×`],
    [
      /With one client it is [\d,]+ against [\d,]+ direct/,
      `With one client it is ${thousands(alone.median)} against ${thousands(alone.against)} direct`,
    ],
  ];
  const stream = resultRows().find(([id]) => id === 'wire.stream.vs_direct')?.[3] ?? '';
  const [idle, all] = [measured('wire.idle.kib_a_session').median, measured('wire.idle.rss_mib').median];
  sentences.push(
    [/stream at [\d.]+× of direct/, `stream at ${Number.parseFloat(stream).toFixed(2)}× of direct`],
    [
      /take [\d.]+ KiB each, \d+ MiB in all/,
      `take ${idle.toFixed(1)} KiB each, ${all.toFixed(0)} MiB in all`,
    ],
  );
  const rows = tables.map(([line, cells]) => [rowOf(line), `| ${[line, ...cells].join(' | ')} |`] as const);
  return [...rows, ...sentences].reduce((made, [pattern, figure]) => {
    if (!pattern.test(made)) throw new Error(`README.md has nothing like ${pattern}`);
    return made.replace(pattern, () => figure);
  }, text);
}

function wireLine(kind: string): readonly [string, readonly string[]] {
  const id = kind === 'simple' ? 'wire.point.c64' : `wire.point.${kind}.c64`;
  const direct = measured(`${id}.vs_direct`);
  const bouncer = kind === 'prepared' ? '–' : thousands(measured(`${id}.vs_pgbouncer`).against);
  const cpu = `${measured(`${id}.cpu`).median.toFixed(0)} µs`;
  return [kind, [thousands(direct.against), bouncer, thousands(direct.median), cpu]];
}

/** The line of a table that begins with `cell`. */
function rowOf(cell: string): RegExp {
  const literal = cell.replace(/[^\w ,]/g, '\\$&');
  return new RegExp(`^\\| ${literal} \\|.*$`, 'm');
}

test('each package of the lock file installs on the Node that README.md names', (t) => {
  const [, named = ''] = /^With Node (\d+\.\d+) or newer/m.exec(readFileSync(README, 'utf8')) ?? [];
  const lock: Lock = JSON.parse(readFileSync(join(process.cwd(), 'package-lock.json'), 'utf8'));
  const wanted = Object.entries(lock.packages).map(([name, { engines }]) => [name, engines?.node] as const);
  t.ok(wanted.length > 300, `${wanted.length} packages`);
  t.strictSame(
    wanted.filter(([, range]) => range !== undefined && !isIn(named, range)),
    [],
  );
  t.strictSame(
    ['>=22', '>=20', '^18 || ^20.19.0', '20 || >=22', '^20.20.0 || >= 22', '>= 10 <20', '*'].map((range) =>
      isIn('20.19', range),
    ),
    [false, true, true, true, false, false, true],
  );
  t.end();
});

interface Lock {
  readonly packages: Readonly<Record<string, { readonly engines?: { readonly node?: string } }>>;
}

/** True if `version` is in `range`, of those forms that the lock file has. */
function isIn(version: string, range: string): boolean {
  return range.split('||').some((all) =>
    [...all.matchAll(/([<>=^~]*)\s*v?([\d.]+|\*)/g)].every(([, sign = '', bound = '']) => {
      if (bound === '*') return true;
      const order = compared(version, bound);
      if (sign === '>=') return order >= 0;
      if (sign === '>') return order > 0;
      if (sign === '<') return order < 0;
      if (sign === '<=') return order <= 0;
      const isMajor = version.split('.')[0] === bound.split('.')[0];
      return isMajor && (sign === '^' || sign === '~' ? order >= 0 : true);
    }),
  );
}

function compared(a: string, b: string): number {
  const [as, bs] = [a, b].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (as?.[i] ?? 0) - (bs?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
