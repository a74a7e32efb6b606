import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MetricFormat } from 'osl-compiler';
import t from 'tap';
import { type ChartKind, formatChart, type Style, styleOf } from '../../../cli/chart/index.js';
import type { AnswerBody } from '../../../cli/client.js';
import { widthOf } from '../../../cli/table.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl, ROOT, shell } from './support.js';

const WIDE: Style = { width: 60, unicode: true, colour: false };
const ASCII: Style = { ...WIDE, unicode: false };

type Column = AnswerBody['columns'][number];

function column(name: string, type: string, more: Partial<Column> = {}): Column {
  return { name, type, redacted: false, ...more };
}

function answer(columns: readonly Column[], rows: readonly (readonly unknown[])[]): AnswerBody {
  return {
    request_id: 'r',
    columns,
    rows: rows.map((row) => Object.fromEntries(columns.map(({ name }, i) => [name, row[i]]))),
    row_count: rows.length,
    truncated: false,
    redacted_columns: columns.filter(({ redacted }) => redacted).map(({ name }) => `x.${name}`),
  };
}

function rowsOf(count: number, row: (i: number) => readonly unknown[]): readonly (readonly unknown[])[] {
  return Array.from({ length: count }, (_, i) => row(i));
}

const day = (n: number): string => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10);
const PERCENT: MetricFormat = { kind: 'percent' };
const EUR: MetricFormat = { kind: 'currency', currency: 'EUR' };
const NAME = column('name', 'text');
const COUNT = column('n', 'int8');
const DAY = column('day', 'date');

const BARS = answer(
  [NAME, column('share', 'numeric', { format: PERCENT }), column('n', 'int8')],
  [
    ['MIT', '0.5', '120'],
    ['日本語', '-0.25', '9007199254740993'],
    [null, null, null],
    ['esc \u001b[31m', '0.0001', '0'],
    ['a name that is longer than its room in this chart', '0.1', '1'],
  ],
);
const REVENUE = answer(
  [column('month', 'date'), column('revenue', 'numeric', { format: EUR })],
  rowsOf(24, (i) => [
    new Date(Date.UTC(2024, i, 1)).toISOString().slice(0, 10),
    i === 7 ? null : (1_000 * Math.sin(i / 3) + i * 50).toFixed(2),
  ]),
);
const TEAMS = answer(
  [column('at', 'timestamptz'), NAME, COUNT],
  rowsOf(72, (i) => [
    `2026-01-0${1 + Math.floor(i / 36)}T${String(2 * (Math.floor(i / 3) % 12)).padStart(2, '0')}:00:00Z`,
    ['red', 'green', 'blue'][i % 3],
    String(Math.round(20 * Math.sin(i / 9 + (i % 3)))),
  ]),
);
const MANY_TEAMS = answer(
  [DAY, NAME, COUNT],
  rowsOf(80, (i) => [day(Math.floor(i / 10)), `team ${i % 10}`, String((i % 10) * 10 + (i % 7))]),
);
const POINTS = answer(
  [column('size', 'float8'), column('age', 'int4')],
  rowsOf(200, (i) => [i === 5 ? 'NaN' : Math.sqrt(i), (i * 37) % 101]),
);
const MASKED = answer(
  [NAME, column('salary', 'int4', { redacted: true })],
  rowsOf(2, (i) => [`p${i}`, null]),
);

/** Each picture by what it shows. */
const PICTURES: readonly (readonly [about: string, AnswerBody, ChartKind | null, Style])[] = [
  ['words and two measures: bars of each, negative ones to the left, NULL told', BARS, null, WIDE],
  ['the same in ASCII', BARS, null, ASCII],
  [
    'many categories: the greatest, and what the others are between',
    answer(
      [NAME, COUNT],
      rowsOf(50, (i) => [`n${i}`, `${(i * 37) % 101}`]),
    ),
    null,
    WIDE,
  ],
  ['a time and a measure: a line with dates, a gap where there is no value', REVENUE, null, WIDE],
  ['the same in ASCII', REVENUE, null, ASCII],
  ['a time, words and a measure: a line for each word, over hours', TEAMS, null, WIDE],
  ['the same in ASCII', TEAMS, null, ASCII],
  ['more lines than can be told apart', MANY_TEAMS, null, WIDE],
  ['two measures: a scatter, and what is not in it', POINTS, null, WIDE],
  ['the same in ASCII', POINTS, null, ASCII],
  [
    'a time as bars, since that was asked for',
    answer(
      [DAY, COUNT],
      [
        [day(0), '3'],
        [day(1), '-4'],
      ],
    ),
    'bars',
    WIDE,
  ],
  [
    'numbers as a line',
    answer(
      [column('year', 'int4'), COUNT],
      rowsOf(9, (i) => [2018 + i, `${i * i}`]),
    ),
    'line',
    WIDE,
  ],
  [
    'numbers as bars: the first column says what of',
    answer(
      [column('year', 'int4'), COUNT],
      [
        [2025, '3'],
        [2026, '5'],
      ],
    ),
    'bars',
    WIDE,
  ],
  ['one moment', answer([DAY, COUNT], [[day(3), '42']]), null, WIDE],
  [
    'moments that are none',
    answer(
      [DAY, COUNT],
      [
        ['infinity', '1'],
        ['0044-03-15 BC', '2'],
        [day(1), '3'],
        [day(2), '4'],
      ],
    ),
    null,
    WIDE,
  ],
  ['values that are masked', MASKED, null, WIDE],
  [
    'a line whose values are masked',
    answer([DAY, column('salary', 'int4', { redacted: true })], [[day(0), null]]),
    null,
    WIDE,
  ],
  [
    'huge and tiny figures',
    answer(
      [NAME, column('x', 'float8')],
      [
        ['huge', 1.7e308],
        ['low', -1.7e308],
        ['tiny', 5e-324],
      ],
    ),
    null,
    WIDE,
  ],
  [
    'a line between the ends of the doubles',
    answer(
      [DAY, column('x', 'float8')],
      [
        [day(0), 1.7e308],
        [day(9), -1.7e308],
      ],
    ),
    null,
    WIDE,
  ],
  [
    'a line of one value',
    answer(
      [DAY, column('x', 'float8')],
      rowsOf(9, (i) => [day(i), 0]),
    ),
    null,
    WIDE,
  ],
  ['no measure: a table', answer([NAME], [['x']]), null, WIDE],
  ['one figure: a table', answer([COUNT], [['1']]), null, WIDE],
  ['no rows: a table', answer([NAME, COUNT], []), null, WIDE],
  ['a scatter that cannot be', answer([NAME, COUNT], [['x', '1']]), 'scatter', WIDE],
];

t.test('pictures are as they are in chart.txt, and none is wider than its terminal', async (t) => {
  const golden = join(ROOT, 'test', 'tools', 'cli', 'chart.txt');
  const drawn = PICTURES.map(
    ([about, body, kind, style]) => `==== ${about}\n${formatChart(body, kind, style)}\n`,
  );
  if (process.env['OSL_GOLDEN'] === 'rewrite') writeFileSync(golden, drawn.join('\n'));
  t.equal(drawn.join('\n'), readFileSync(golden, 'utf8'), 'OSL_GOLDEN=rewrite writes chart.txt anew');
  for (const [about, body, kind, style] of PICTURES)
    for (const width of [24, 60, 200])
      for (const line of formatChart(body, kind, { ...style, width }).split('\n'))
        if (!/^(not drawn|and |masked|\(|no chart)/.test(line.trim()) && width > 24)
          t.ok(widthOf(line) <= width, `${about}, ${width}: ${line}`);
  for (const [about, body, kind, style] of PICTURES)
    if (!style.unicode)
      t.notMatch(formatChart(body, kind, style).replaceAll('日本語', ''), /[^\n\x20-\x7e]/, about);
});

t.test('the locale, --ascii, NO_COLOR and the terminal decide with what is drawn', async (t) => {
  const of = (
    env: Record<string, string>,
    ascii = false,
    tty: { isTTY?: boolean; columns?: number } = {},
  ): Style => styleOf(tty, env, ascii);
  t.match(of({ LANG: 'de_DE.UTF-8' }), { unicode: true, colour: false, width: 80 });
  t.match(of({ LANG: 'de_DE.UTF-8', LC_ALL: 'C' }), { unicode: false });
  t.match(of({ LC_ALL: '', LC_CTYPE: 'C.utf8', LANG: 'C' }), { unicode: true });
  t.match(of({}), { unicode: false });
  t.match(of({ LANG: 'C.UTF-8' }, true, { isTTY: true }), { unicode: false, colour: false });
  t.match(of({ LANG: 'C.UTF-8' }, false, { isTTY: true, columns: 132 }), { width: 132, colour: true });
  t.match(of({ LANG: 'C.UTF-8', NO_COLOR: '1' }, false, { isTTY: true, columns: 2 }), {
    width: 24,
    colour: false,
  });
  t.match(of({ COLUMNS: '100' }), { width: 100 });
  t.match(of({ COLUMNS: 'x' }), { width: 80 });
});

t.test('a hundred thousand rows are drawn in time', async (t) => {
  const many = answer(
    [DAY, NAME, COUNT, column('m', 'float8')],
    rowsOf(100_000, (i) => [day(i % 3_000), `name ${i}`, `${i}`, i]),
  );
  const started = process.cpuUsage();
  for (const kind of ['line', 'bars', 'scatter'] as const) t.ok(formatChart(many, kind, WIDE).length > 100);
  const { user, system } = process.cpuUsage(started);
  t.ok(user + system < 10_000_000, `${(user + system) / 1_000} ms of a processor`);
});

t.test('the real command draws what a real server answers', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());
  const asks = async (subject: string, ...flags: string[]) => {
    const server = ['--server', `http://127.0.0.1:${rest.port}`, '--token', await rest.test.token(subject)];
    return osl(['query', ...server, ...flags], { env: { LC_ALL: 'C.UTF-8', COLUMNS: '60' } });
  };
  const byRegion = 'select region, measure(revenue) as revenue from "order" group by region order by region';
  const bars = await asks('user:ann', '--chart', byRegion);
  t.match(bars, { code: 0, stderr: '' });
  t.match(bars.stdout, /^revenue\neu 512\.50 EUR │█+\nus 512\.50 EUR │█+\n\(2 rows\)\n$/);
  const ascii = await asks('user:ann', '--chart', 'bars', '--ascii', byRegion);
  t.match(ascii.stdout, /^revenue\neu 512\.50 EUR \|#+\nus 512\.50 EUR \|#+\n/);
  const byHour = 'select placed_at, amount from "order" order by placed_at';
  t.match((await asks('user:ann', '--chart', byHour)).stdout, /^amount\n[\s\S]*[⠁-⣿]{3}[\s\S]*01-01 12:00/);
  t.match(
    (await asks('user:ann', '--chart', 'select quantity, amount from "order"')).stdout,
    /^amount over quantity\n/,
  );
  const masked = await asks(
    'user:ann',
    '--chart',
    'select email, count(*) as n from customer group by email',
  );
  t.match(masked.stdout, /\[redacted\] +\d │█+\n[\s\S]*masked: customer\.email/);
  t.match(await asks('user:ann', '--chart', 'pie', byRegion), {
    code: 2,
    stderr: /bars, line, scatter, not `pie`/,
  });
  t.match(await asks('user:ann', '--chart', '--json', byRegion), {
    code: 2,
    stderr: /--chart.*cannot be used with.*--json/,
  });
  t.match(await asks('user:ann', '--chart', '--format', 'csv', byRegion), { code: 2 });
  const token = await rest.test.token('user:ann');
  const inTerminal = await shell(
    `stty -a >/dev/null 2>&1; LC_ALL=C.UTF-8 TERM=xterm script -qec "stty cols 50 rows 30; npx osl query --server http://127.0.0.1:${rest.port} --token ${token} --chart 'select region, placed_at, quantity from \\"order\\"'" /dev/null`,
  );
  t.match(inTerminal.stdout, /\u001b\[36m●\u001b\[39m eu/, 'in a terminal, lines have colours');
  const plain = inTerminal.stdout.replaceAll(/\u001b\[\d+m/g, '');
  for (const line of plain.split(/\r?\n/)) t.ok(widthOf(line) <= 50, line);
});
