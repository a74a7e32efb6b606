import { callerOf } from 'osl-console/api/caller';
import {
  changeOf,
  type MetricsColumn,
  type MetricsReading,
  notesOf,
  numberOf,
  readingOf,
  shownFigure,
  wordOf,
} from 'osl-console/screens/metrics/answer/columns';
import { drawingOf, MOST_BARS, MOST_LINES } from 'osl-console/screens/metrics/answer/plot';
import { compareAnswers, curlOf, daysOf, tableOf } from 'osl-console/screens/metrics/answer/table';
import { askMetrics } from 'osl-console/screens/metrics/answer/useMetricsAnswer';
import { dimensionsFor, entitiesIn } from 'osl-console/screens/metrics/catalog/dimensions';
import { bodyOf, conditionOf, literalOf } from 'osl-console/screens/metrics/choice/body';
import {
  type Choice,
  choiceOf,
  linkOf,
  NOTHING,
  withGroups,
  withMetrics,
} from 'osl-console/screens/metrics/choice/choice';
import {
  addMonths,
  earlier,
  namedRanges,
  periodOf,
  placeIn,
  shiftOf,
} from 'osl-console/screens/metrics/choice/period';
import { test } from 'tap';
import { column, entity, relationship, schema } from './support/schema.js';

const CHOICE: Choice = {
  metrics: ['revenue', 'orders'],
  groups: [
    { name: 'metric_time', grain: 'month' },
    { name: 'customer__region', grain: null },
  ],
  filters: [{ name: 'customer__region', operator: 'is', values: ["o'eu", 'us'] }],
  range: { start: '2026-01-01', end: '2026-03-31' },
  order: { name: 'revenue', descending: true },
  limit: 20,
  compare: 'previous_year',
};

test('a link holds a whole choice, and only what is one', async (t) => {
  t.strictSame(choiceOf(linkOf(CHOICE)), CHOICE);
  t.strictSame(choiceOf(linkOf(NOTHING)), NOTHING);
  const hostile = new URLSearchParams([
    ['metric', "x'); drop"],
    ['metric', 'revenue'],
    ['metric', 'revenue'],
    ['by', 'metric_time.fortnight'],
    ['by', '<script>'],
    ['where', '["a", "is", {}]'],
    ['where', '["a", "matches", "b"]'],
    ['where', '{'],
    ['where', '"text"'],
    ['from', '2026-99-99'],
    ['to', 'tomorrow'],
    ['order', '-'],
    ['limit', '1e99'],
    ['compare', 'constructor'],
  ]);
  t.strictSame(choiceOf(hostile.toString()), { ...NOTHING, metrics: ['revenue'] });
});

test('what was taken away is not ordered by', async (t) => {
  t.equal(withMetrics(CHOICE, ['orders']).order, null);
  t.strictSame(withMetrics(CHOICE, ['revenue']).order, CHOICE.order);
  const byTime = { ...CHOICE, order: { name: 'metric_time__month', descending: false } };
  t.equal(withGroups(byTime, []).order, null);
});

test('the body says what was picked', async (t) => {
  t.strictSame(bodyOf(CHOICE), {
    metrics: ['revenue', 'orders'],
    group_by: [{ name: 'metric_time', grain: 'month' }, 'customer__region'],
    where: ["{{ Dimension('customer__region') }} in ('o''eu', 'us')"],
    order_by: ['-revenue'],
    limit: 20,
    time_constraint: { start: '2026-01-01', end: '2026-03-31' },
  });
  t.strictSame(bodyOf({ ...NOTHING, metrics: ['revenue'] }), { metrics: ['revenue'] });
  t.match(
    bodyOf({ ...CHOICE, order: null }).order_by,
    [{ name: 'metric_time', grain: 'month' }],
    'times go forward',
  );
  t.strictSame(bodyOf({ ...CHOICE, order: null, groups: CHOICE.groups.slice(1) }).order_by, ['-revenue']);
  t.strictSame(bodyOf({ ...CHOICE, order: { name: 'metric_time__month', descending: true } }).order_by, [
    { name: 'metric_time', grain: 'month', descending: true },
  ]);
});

test('a picked value is a literal, whatever is in it', async (t) => {
  t.equal(literalOf("a'b"), "'a''b'");
  t.equal(literalOf('a\\b'), "'a\\b'");
  t.equal(literalOf(3.5), '3.5');
  t.equal(literalOf(true), 'true');
  t.equal(literalOf("{{ Metric('x') }}"), "('{' || '{ Metric(''x'') }}')", 'two braces begin no name');
  t.notMatch(literalOf('{{{{'), /\{\{/);
  const where = (operator: 'is' | 'is_not' | 'empty' | 'not_empty', values: readonly string[] = []) =>
    conditionOf({ name: 'a__b', operator, values });
  t.equal(where('is', ['x']), "{{ Dimension('a__b') }} = 'x'");
  t.equal(where('empty'), "{{ Dimension('a__b') }} is null");
  t.equal(where('not_empty'), "{{ Dimension('a__b') }} is not null");
  t.match(where('is_not', ['x']), /is null or not/, 'rows without a value are none of the picked');
});

test('the period before', async (t) => {
  const before = (
    start: string,
    end: string,
    compare: 'previous_period' | 'previous_year' = 'previous_period',
  ) => {
    const { start: from, end: to } = earlier({ start, end }, shiftOf({ start, end }, compare));
    return `${from} ${to}`;
  };
  t.equal(before('2026-03-01', '2026-03-31'), '2026-02-01 2026-02-28', 'a month');
  t.equal(before('2026-01-01', '2026-03-31'), '2025-10-01 2025-12-31', 'a quarter');
  t.equal(before('2026-01-01', '2026-12-31'), '2025-01-01 2025-12-31', 'a year');
  t.equal(before('2026-01-10', '2026-01-16'), '2026-01-03 2026-01-09', 'seven days');
  t.equal(before('2024-02-01', '2024-02-29', 'previous_year'), '2023-02-01 2023-02-28', 'a leap year');
  t.equal(before('2023-02-01', '2023-02-28', 'previous_year'), '2022-02-01 2022-02-28');
  t.equal(
    before('2025-02-01', '2025-02-28', 'previous_year'),
    '2024-02-01 2024-02-29',
    'the whole month before',
  );
  t.equal(before('2026-01-10', '2026-02-20', 'previous_year'), '2025-01-10 2025-02-20');
  t.equal(addMonths('2026-03-31', -1), '2026-02-28');
});

test('periods and their places', async (t) => {
  t.equal(periodOf('2026-05-17', 'quarter'), '2026-04-01');
  t.equal(periodOf('2026-05-17', 'week'), '2026-05-11', 'weeks begin on Monday');
  t.equal(periodOf('2026-05-11', 'week'), '2026-05-11');
  t.equal(placeIn('2026-03-01', '2026-01-15', 'month'), 2);
  t.equal(placeIn('2025-10-01', '2025-01-01', 'quarter'), 3);
  t.equal(placeIn('2026-01-01', '2024-06-01', 'year'), 2);
  t.equal(placeIn('2026-01-19', '2026-01-07', 'week'), 2);
  t.equal(placeIn('2026-01-02 03:00:00', '2026-01-01', 'hour'), 27);
  t.equal(placeIn('2026-01-02T03:00:00Z', '2026-01-01', 'hour'), 27);
  const ranges = new Map(namedRanges('2026-05-17').map(({ name, range }) => [name, range]));
  t.strictSame(ranges.get('Last quarter'), { start: '2026-01-01', end: '2026-03-31' });
  t.strictSame(ranges.get('Last 12 months'), { start: '2025-05-01', end: '2026-04-30' });
  t.strictSame(ranges.get('All time'), { start: null, end: null });
});

const SHOP = schema({
  entities: [
    entity('customer', [column('region')]),
    entity('order', [column('status'), column('placed_at', { type: 'timestamptz' })]),
    entity('line', [column('pieces')]),
    entity('product', [column('odd name')]),
    entity('city', [column('country')]),
    entity('person', [column('role')]),
    entity('message', [column('text')]),
  ],
  relationships: [
    relationship('buyer', 'order', 'customer'),
    relationship('lives', 'customer', 'city'),
    relationship('of_order', 'line', 'order'),
    relationship('of_product', 'line', 'product'),
    { ...relationship('sent_by', 'message', 'person'), from: { entity: 'message', columns: ['sender_id'] } },
    {
      ...relationship('sent_to', 'message', 'person'),
      from: { entity: 'message', columns: ['receiver_id'] },
    },
    { ...relationship('manager', 'person', 'person'), from: { entity: 'person', columns: ['manager_id'] } },
    relationship('likes', 'customer', 'product', 'like'),
  ],
});

test('what a figure can be grouped by without being multiplied', async (t) => {
  const names = (...of: string[]): readonly string[] => dimensionsFor(of, SHOP).map((o) => o.name);
  t.ok(names('order').includes('customer__region'));
  t.ok(names('order').includes('city__country'), 'over any number of relationships');
  t.notOk(
    names('order').some((n) => n.startsWith('line__')),
    'an order has several lines',
  );
  t.notOk(
    names('customer').some((n) => n.startsWith('product__')),
    'nor through a bridge',
  );
  t.ok(names('line').includes('city__country'));
  t.strictSame(
    names('line', 'order').filter((n) => n.startsWith('product') || n.startsWith('line')),
    [],
    'what both lead to',
  );
  t.ok(names('message').includes('sent_by__role') && names('message').includes('sent_to__role'));
  t.notOk(names('message').includes('person__role'), 'two ways lead there: the bare name would be refused');
  t.ok(names('person').includes('manager__role') && names('person').includes('person__role'));
  t.strictSame(names(), []);
  t.match(
    dimensionsFor(['order'], SHOP).find((o) => o.column === 'placed_at'),
    { isTime: true, filterable: true },
  );
  t.match(
    dimensionsFor(['product'], SHOP).find((o) => o.column === 'odd name'),
    { filterable: false },
  );
  t.strictSame(entitiesIn(['osl.entities.order', 'metric:net', 'osl.metrics.net']), ['order']);
});

const figure = (name: string, over: Partial<MetricsColumn> = {}): MetricsColumn => {
  return { name, type: 'numeric', redacted: false, ...over };
};
const MONTHS = (values: readonly (readonly [string | null, number | null])[]): MetricsReading => ({
  time: { column: figure('metric_time__month', { type: 'date' }), grain: 'month' },
  categories: [],
  figures: [figure('revenue')],
  rows: values.map(([month, revenue]) => ({ metric_time__month: month, revenue })),
});

test('two periods are put together by the place of each row', async (t) => {
  const now = MONTHS([
    ['2026-01-01', 10],
    ['2026-02-01', 20],
    ['2026-03-01', null],
  ]);
  const before = MONTHS([
    ['2025-12-01', 5],
    ['2025-10-01', 7],
  ]);
  const days = { start: '2026-01-01', end: '2026-03-31' };
  const { pairs } = compareAnswers(now, days, before, { start: '2025-10-01', end: '2025-12-31' }, true);
  t.strictSame(
    pairs.map((p) => [p.now?.['metric_time__month'], p.before?.['revenue'] ?? null]),
    [
      ['2026-01-01', 7],
      ['2026-02-01', null],
      ['2026-03-01', 5],
    ],
  );
  t.strictSame(daysOf(now), days);
  t.equal(daysOf(MONTHS([[null, 1]])), null);
  const table = tableOf(now, pairs);
  t.strictSame(
    table.columns.map((c) => c.name),
    ['metric_time__month', 'revenue', 'revenue before', 'revenue change'],
  );
  t.strictSame(
    [0, 1, 2].map((row) => table.cell(row, 3).text),
    ['+42.9%', '—', '—'],
    'no change of what is not there',
  );
});

test('a row that an answer may lack is not compared as if it had no value', async (t) => {
  const { fetch } = globalThis;
  t.teardown(() => {
    globalThis.fetch = fetch;
  });
  const claims = Buffer.from(JSON.stringify({ sub: 'user:ann', exp: 4e9 })).toString('base64url');
  const caller = callerOf(`e.${claims}.s`, { renew: null });
  if (caller === null) throw new Error('no caller');
  const answerOf = (regions: readonly string[], truncated = false): Response =>
    Response.json({
      request_id: 'r',
      columns: ['customer__region', 'revenue'].map((name) => figure(name)),
      rows: regions.map((customer__region, i) => ({ customer__region, revenue: i })),
      row_count: regions.length,
      truncated,
      redacted_columns: [],
    });
  const choice: Choice = { ...CHOICE, groups: [{ name: 'customer__region', grain: null }], limit: 3 };
  const compared = async (now: Response, before: Response): Promise<readonly unknown[]> => {
    const answers = [now, before].values();
    globalThis.fetch = async () => answers.next().value ?? Response.error();
    const { compared, uncompared } = await askMetrics(caller, choice);
    return [compared?.pairs.map(({ now, before }) => (now ?? before)?.['customer__region']), uncompared];
  };
  const past = ['us', 'jp', 'eu'];
  t.strictSame(await compared(answerOf(['eu', 'us']), answerOf(past)), [['eu', 'us', 'jp'], null]);
  t.strictSame(
    await compared(answerOf(['eu', 'us', 'br']), answerOf(past)),
    [['eu', 'us', 'br'], null],
    'limit',
  );
  t.strictSame(await compared(answerOf(['eu'], true), answerOf(past)), [['eu'], null], 'a cap');
  t.match(await compared(answerOf(['eu']), answerOf(['us'], true)), [
    ['eu', 'us'],
    /some earlier values are missing/,
  ]);
});

test('times make lines, categories bars, a figure alone a tile', async (t) => {
  const reading = (
    times: boolean,
    categories: readonly string[],
    rows: MetricsReading['rows'],
  ): MetricsReading => ({
    time: times ? { column: figure('month', { type: 'date' }), grain: 'month' } : null,
    categories: categories.map((name) => figure(name, { type: 'text' })),
    figures: [figure('revenue'), figure('share', { format: { kind: 'percent' } })],
    rows,
  });
  const row = { month: '2026-01-01', region: 'eu', kind: 'a', revenue: 1, share: 0.5 };
  t.match(drawingOf(reading(false, [], [row]), null), { kind: 'tiles', tiles: { length: 2 } });
  const lines = drawingOf(reading(true, [], [row, { ...row, month: null }]), null);
  t.match(lines, { kind: 'charts', charts: { length: 2 } }, 'a chart for each unit');
  if (lines.kind === 'charts')
    t.match(lines.charts[0], { kind: 'line', x: { scale: 'time' }, series: [{ points: { length: 1 } }] });
  t.match(drawingOf(reading(false, ['region'], [row]), null), { charts: [{ kind: 'bar' }, { kind: 'bar' }] });
  t.match(drawingOf(reading(false, ['region', 'kind', 'more'], [row]), null), { kind: 'none' });
  t.match(drawingOf(reading(true, ['region', 'kind'], [row]), null), { kind: 'none' });
  t.match(drawingOf(reading(false, ['region'], []), null), { kind: 'none', why: /no rows/ });

  const sizes = (small: number) => {
    const figures = [figure('large'), figure('small')];
    const rows = [{ ...row, large: 1_000_000, small }];
    const drawn = drawingOf({ ...reading(false, ['region'], rows), figures }, null);
    return drawn.kind === 'charts' ? drawn.charts.length : 0;
  };
  t.equal(sizes(60_000), 1, 'on one axis where both can be read');
  t.equal(sizes(1_000), 2, 'and on two where the smaller would vanish');

  const many = Array.from({ length: 40 }, (_, n) => ({ ...row, region: `r${n}`, revenue: n }));
  const bars = drawingOf(reading(false, ['region'], many), null);
  if (bars.kind !== 'charts') throw new Error('no bars');
  t.equal(bars.charts[0]?.series[0]?.points.length, MOST_BARS);
  t.match(bars.charts[0]?.note, /30 of 40/, 'what is left out is said');
  const split = drawingOf(reading(true, ['region'], many), null);
  if (split.kind !== 'charts') throw new Error('no lines');
  t.equal(split.charts[0]?.series.length, MOST_LINES);
  t.equal(split.charts[0]?.series[0]?.name, 'r39', 'the largest first');
});

test('answers are read by the names that the server gave', async (t) => {
  const columns = [
    figure('metric_time__month', { type: 'date' }),
    figure('Customer__Region', { type: 'text' }),
    figure('Revenue'),
  ];
  const reading = readingOf({ ...CHOICE, metrics: ['revenue'] }, columns, []);
  t.match(reading, { categories: [{ name: 'Customer__Region' }], figures: [{ name: 'Revenue' }] });
  t.equal(reading.time?.column.name, 'metric_time__month');
  t.strictSame([null, '', 0, { a: 1 }].map(wordOf), ['(none)', '(empty)', '0', '{"a":1}']);
});

test('figures are shown by their format and never made up', async (t) => {
  const cases: readonly (readonly [unknown, Parameters<typeof shownFigure>[1], string])[] = [
    [1234.5, null, '1,234.5'],
    ['12345678901234567890.5', null, '12,345,678,901,234,567,890.5'],
    [0.256, { kind: 'percent' }, '25.6%'],
    [1234, { kind: 'currency', currency: 'EUR', decimals: 0 }, '€1,234'],
    [5, { kind: 'currency', currency: 'no code' }, '5'],
    [2, { kind: 'number', unit: 'kg' }, '2 kg'],
    [null, null, ''],
    ['NaN', null, 'NaN'],
    [{ a: 1 }, null, '{"a":1}'],
  ];
  for (const [value, format, shown] of cases) t.equal(shownFigure(value, format), shown, `${value}`);
  t.equal(numberOf(''), null);
  t.equal(numberOf('Infinity'), null);
  t.equal(changeOf(12, 10), 0.2);
  t.equal(changeOf(-5, -10), 0.5, 'half as bad is better');
  t.equal(changeOf(1, 0), null);
  t.equal(changeOf(null, 1), null);
});

test('an answer says what it lacks; a command line says the question alone', async (t) => {
  t.strictSame(
    notesOf({
      row_count: 1,
      truncated: true,
      redacted_columns: ['customer.name'],
      partial_columns: ['revenue'],
    }),
    [
      '1 row; a cap held others back.',
      'Masked for you: customer.name.',
      'Without the rows in which it is masked for you: revenue.',
    ],
  );
  const curl = curlOf({ metrics: ['revenue'], where: ["{{ Dimension('a__b') }} = 'it''s'"] }, 'http://h:1');
  t.match(curl, /\$OSL_TOKEN/);
  t.match(curl, `{{ Dimension('\\''a__b'\\'') }}`, 'quoted for a shell');
});
