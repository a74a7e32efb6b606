import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CardFigure, cardFigure, changeBetween } from 'osl-console/screens/metrics/cards/card-figure';
import { drillQueries } from 'osl-console/screens/metrics/catalog/drill';
import type { CatalogMetric } from 'osl-console/screens/metrics/catalog/protocol';
import { type Choice, NOTHING } from 'osl-console/screens/metrics/choice/choice';
import {
  choiceOn,
  type Dashboard,
  dashboardIn,
  fileOf,
  panelOf,
  readDashboard,
} from 'osl-console/screens/metrics/dashboards/dashboard';
import {
  dashboardAt,
  linkTo,
  readShelf,
  saveTo,
} from 'osl-console/screens/metrics/dashboards/dashboard-shelf';
import type { Locator, Page } from 'playwright-core';
import { test } from 'tap';
import { temporary } from '../tools/cli/support.js';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';
import { column, entity, relationship, schema } from './support/schema.js';

const CHOICE: Choice = {
  metrics: ['revenue', 'orders'],
  groups: [
    { name: 'metric_time', grain: 'month' },
    { name: 'customer__region', grain: null },
  ],
  filters: [
    { name: 'customer__region', operator: 'is', values: ["o'eu", 3, true] },
    { name: 'order__status', operator: 'not_empty', values: [] },
  ],
  range: { start: '2026-01-01', end: null },
  order: { name: 'metric_time__month', descending: true },
  limit: 20,
  compare: 'previous_year',
};

test('a dashboard is the same after its file and its link', async (t) => {
  const dashboard: Dashboard = {
    title: 'Sales & more',
    roles: ['analyst'],
    panels: [
      { title: 'All of it', show: 'both', choice: CHOICE, period: null },
      { title: 'Plain', show: 'chart', choice: { ...NOTHING, metrics: ['revenue'] }, period: 'last year' },
    ],
  };
  const text = JSON.stringify(fileOf(dashboard), null, 2);
  t.strictSame(readDashboard(text), { kind: 'read', dashboard });
  const link = new URL(linkTo(dashboard, 'http://h:1'));
  t.equal(link.search, '', 'nothing of it is sent to a server');
  const parameters = new URLSearchParams(link.hash.split('?', 2)[1]);
  t.strictSame(dashboardAt(parameters, [], []), { kind: 'found', dashboard, isKept: false });
  const plain = dashboard.panels[1];
  t.strictSame(plain && choiceOn(plain, '2026-05-17').range, { start: '2025-01-01', end: '2025-12-31' });
  const year = { ...NOTHING, range: { start: '2025-01-01', end: '2025-12-31' } };
  t.equal(panelOf(year, 'x', 'chart', '2026-05-17').period, 'last year', 'a range that has a name moves');
  t.equal(panelOf(NOTHING, 'x', 'chart', '2026-05-17').period, null);
});

test('a file that is not a dashboard is refused, with the place of each fault', async (t) => {
  const refusals = (content: unknown): readonly string[] => {
    const reading = dashboardIn(content);
    return reading.kind === 'read' ? [] : reading.problems.map(({ at, text }) => `${at}: ${text}`);
  };
  const panel = { title: 'p', metrics: ['revenue'] };
  const file = { osl_dashboard: 1, title: 't', panels: [panel] };
  t.strictSame(refusals(file), []);
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [null, /^: must be an object/],
    [[], /^: must be an object/],
    [{ ...file, osl_dashboard: 2 }, /^osl_dashboard: must be 1/],
    [{ ...file, title: ' ' }, /^title: must be a text/],
    [{ ...file, owner: 'me' }, /^owner: is unknown/],
    [{ ...file, roles: 'analyst' }, /^roles: must be a list/],
    [{ ...file, panels: [] }, /^panels: must have at least one/],
    [{ ...file, panels: Array.from({ length: 31 }, () => panel) }, /^panels: must have at most 30/],
    [{ ...file, panels: [{ ...panel, colour: 1 }] }, /^panels\[0\]\.colour: is unknown/],
    [
      { ...file, panels: [panel, { ...panel, metrics: ["x'); drop"] }] },
      /^panels\[1\]\.metrics\[0\]: is not a/,
    ],
    [{ ...file, panels: [{ ...panel, metrics: [] }] }, /^panels\[0\]\.metrics: must name/],
    [
      { ...file, panels: [{ ...panel, show: 'pie' }] },
      /^panels\[0\]\.show: must be one of: chart, table, both/,
    ],
    [
      { ...file, panels: [{ ...panel, group_by: [{ name: 'a', grain: 'fortnight' }] }] },
      /group_by\[0\]\.grain/,
    ],
    [
      { ...file, panels: [{ ...panel, filters: [{ name: 'a', operator: 'is' }] }] },
      /values: must have a value/,
    ],
    [
      { ...file, panels: [{ ...panel, filters: [{ name: 'a', operator: 'is', values: [{}] }] }] },
      /values\[0\]/,
    ],
    [
      { ...file, panels: [{ ...panel, period: 'soon' }] },
      /^panels\[0\]\.period: must be one of: last 30 days/,
    ],
    [{ ...file, panels: [{ ...panel, period: { start: '2026-02-30' } }] }, /period\.start: must be a day/],
    [{ ...file, panels: [{ ...panel, order_by: '-margin' }] }, /order_by: must be a metric or a group/],
    [{ ...file, panels: [{ ...panel, limit: 0 }] }, /limit: must be a whole number/],
  ];
  for (const [content, expected] of cases) t.match(refusals(content)[0], expected, String(expected));
  t.match(readDashboard('{'), { kind: 'refused', problems: [{ text: /is not JSON/ }] });
  t.match(readDashboard('"'.repeat(100_001)), { kind: 'refused', problems: [{ text: /longer/ }] });
  t.match(dashboardAt(new URLSearchParams({ view: `"${' '.repeat(8_000)}"` }), [], []), { kind: 'refused' });
  t.match(dashboardAt(new URLSearchParams({ shared: 'x' }), [], []), { kind: 'missing' });
  const shelf = { getItem: () => JSON.stringify([file, { title: 'broken' }]), setItem: () => undefined };
  t.strictSame(
    readShelf(shelf, 'user:ann').map(({ title }) => title),
    ['t'],
  );
  t.strictSame(readShelf({ ...shelf, getItem: () => '{' }, 'user:ann'), []);
});

test('beyond the most that are kept, a further dashboard is refused and none is dropped', async (t) => {
  let text = '[]';
  let isFull = false;
  const shelf = {
    getItem: () => text,
    setItem: (_key: string, value: string) => {
      if (isFull) throw new Error('the quota is exceeded');
      text = value;
    },
  };
  const titled = (title: string, panels = 1): Dashboard => {
    const panel = { title: 'p', show: 'chart' as const, choice: CHOICE, period: null };
    return { title, roles: [], panels: Array.from({ length: panels }, () => panel) };
  };
  const kept = () => readShelf(shelf, 'user:ann').map(({ title }) => title);
  for (let i = 100; i > 0; i--) t.equal(saveTo(shelf, 'user:ann', titled(`board ${i + 100}`)), null);
  const before = kept();
  t.equal(before.length, 100);
  for (const title of ['a', 'zoo'])
    t.match(saveTo(shelf, 'user:ann', titled(title)), /at most 100 dashboards/);
  t.strictSame(kept(), before, 'sorted by title');
  t.equal(saveTo(shelf, 'user:ann', titled('board 150', 2)), null, 'a change of one that is kept');
  t.equal(readShelf(shelf, 'user:ann').find(({ title }) => title === 'board 150')?.panels.length, 2);
  isFull = true;
  t.match(saveTo(shelf, 'user:ann', titled('board 150')), /cannot store it/);
});

const SHOP = schema({
  entities: [
    entity('customer', [column('region')]),
    entity('order', [column('placed_at', { type: 'timestamptz' }), column('note', { use: 'aggregates' })], {
      time_dimension: 'placed_at',
    }),
    entity('visit', [column('day', { type: 'date' })], { time_dimension: 'day' }),
    entity('secret', [column('x', { use: 'aggregates' })], {
      columns: [column('x', { use: 'aggregates' })],
      minimum_group_size: 5,
    }),
  ],
  relationships: [relationship('buyer', 'order', 'customer')],
});
const OPEN = { start: null, end: null };

test('the query for the rows behind a value has its filters and its period', async (t) => {
  const [query] = drillQueries(
    {
      entities: ['order'],
      metric: 'revenue',
      conditions: [
        { kind: 'filter', filter: { name: 'customer__region', operator: 'is_not', values: ["o'eu"] } },
        { kind: 'value', name: 'Customer__Region', value: null },
        { kind: 'period', name: 'metric_time', grain: 'month', start: '2026-02-01' },
      ],
      range: { start: '2026-02-10', end: '2026-12-31' },
    },
    SHOP,
  );
  t.equal(
    query?.kind === 'query' && query.text.split('\n').slice(2).join('\n'),
    `select o.id, o.placed_at
from osl.entities."order" o
left join osl.entities.customer c1 on c1.id = o.customer_id
where (c1.region is null or c1.region not in ('o''eu'))
  and c1.region is null
  and o.placed_at >= timestamptz '2026-02-01 00:00:00+00' and o.placed_at < timestamptz '2026-03-01 00:00:00+00'
  and o.placed_at >= timestamptz '2026-02-10 00:00:00+00'
  and o.placed_at < timestamptz '2027-01-01 00:00:00+00'
order by o.placed_at desc
limit 100`,
  );
  const one = (conditions: Parameters<typeof drillQueries>[0]['conditions'], of = 'order') =>
    drillQueries({ entities: [of], metric: 'm', conditions, range: OPEN }, SHOP)[0];
  const hour = one([{ kind: 'period', name: 'metric_time', grain: 'hour', start: '2026-01-31T23:00:00' }]);
  t.match(hour, { text: /< timestamptz '2026-02-01 00:00:00\+00'/ });
  t.match(one([{ kind: 'period', name: 'metric_time', grain: 'week', start: '2026-01-05' }], 'visit'), {
    text: /v\.day >= date '2026-01-05' and v\.day < date '2026-01-12'/,
  });
  t.match(one([{ kind: 'value', name: 'visit__day', value: 'x' }]), { kind: 'refused' }, 'not left out');
  t.match(one([{ kind: 'value', name: 'customer__region', value: {} }]), { kind: 'refused' });
  t.match(one([], 'secret'), {
    kind: 'refused',
    why: /only aggregates of secret, over groups of at least 5/,
  });
});

const METRIC: CatalogMetric = {
  ...{ name: 'revenue', description: null, deprecated: null, entity: 'order', time: 'yes' },
  ...{ kind: 'simple', type: 'numeric', format: null },
};

/** Runs `cardFigure` against answers by grain, newest row first, and notes what it asks. */
async function figured(answers: Readonly<Record<string, readonly (readonly [string, unknown])[]>>) {
  const asked: string[] = [];
  const figure: CardFigure = await cardFigure(METRIC, 'auto', '2026-05-17', async (body) => {
    const group = body.group_by?.[0];
    const grain = typeof group === 'object' ? group.grain : '';
    const { start = '…', end } = body.time_constraint ?? {};
    asked.push(`${grain} ${start} ${end}`);
    const name = `metric_time__${grain}`;
    const rows = answers[start === '…' ? `all ${grain}` : grain] ?? [];
    return {
      ...{ request_id: 'r', form: 'metrics', row_count: rows.length, truncated: false },
      ...{ redacted_columns: [], redacted_fields: [], versions: { manifest: 'm', policy: 'p' } },
      columns: [
        { name, type: 'date', source: null, redacted: false },
        { name: 'revenue', type: 'numeric', source: null, redacted: false },
      ],
      rows: rows.map(([at, value]) => ({ [name]: at, revenue: value })),
    };
  });
  return { figure, asked };
}

test('a card takes the periods that suit', async (t) => {
  const months = await figured({
    month: [
      ['2026-04-01', '4'],
      ['2026-02-01', null],
      ['2026-01-01', '1'],
      ['2025-12-01', '0'],
    ],
  });
  t.strictSame(months.asked, ['month 2024-05-01 2026-04-30'], 'one query, of whole months');
  t.match(months.figure, { kind: 'series', grain: 'month', last: '4' });
  t.strictSame(months.figure.kind === 'series' && months.figure.periods.map(({ value }) => value), [
    ...[0, 1, null, null, 4],
  ]);
  const days = await figured({
    month: [['2026-04-01', 1]],
    day: [
      ['2026-05-16', 1],
      ['2026-05-15', 2],
    ],
  });
  t.strictSame(days.asked.slice(1), ['day 2026-04-17 2026-05-16']);
  t.match(days.figure, { grain: 'day', periods: [{ value: 2 }, { value: 1 }] });
  const old = await figured({ 'all month': [['2011-02-01', 3]] });
  t.strictSame(old.asked.slice(2), ['month … 2026-04-30']);
  t.match(old.figure, { grain: 'month', periods: [{ start: '2011-02-01', value: 3 }] });
  t.match((await figured({})).figure, { kind: 'none' });
  t.strictSame(changeBetween(3, 2, null), { direction: 'up', text: '+50%' });
  t.strictSame(changeBetween(0.1, 0.2, { kind: 'percent' }), { direction: 'down', text: '-10 points' });
  t.equal(changeBetween(1, 0, null), null);
  t.equal(changeBetween(1, null, null), null);
});

test('dashboards are kept, saved, imported and shared', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const dashboardsDir = temporary();
  const shared = {
    ...{ osl_dashboard: 1, title: 'For analysts', roles: ['analyst'] },
    panels: [{ title: 'Visits', metrics: ['visits'] }],
  };
  writeFileSync(join(dashboardsDir, 'analysts.json'), JSON.stringify(shared));
  const options = { ...SALES, settings: { dashboardsDir } };
  const { origin, rest } = await startGateway(t, options, SALES_CALLERS);
  const browser = await startBrowser(t);
  // A metric that has no time is among the cards.
  const visit = await Visit.start(browser, origin, { expects: /status of 422/ });
  const { page } = visit;
  const queries = async (): Promise<number> =>
    (await rest.test.records()).filter((r) => r.kind === 'decision' && r.action === 'query').length;
  const saved = async (from: Page, name: string): Promise<string> => {
    const [file] = await Promise.all([
      from.waitForEvent('download'),
      from.getByRole('button', { name }).first().click(),
    ]);
    return readFileSync(await file.path(), 'utf8');
  };
  await page.goto(`${origin}/console/#/metrics?metric=orders&by=order__status&compare=previous_year`);
  await visit.click('button', /^user:ann/);
  await visit.click('button', 'Ask it');
  await page.getByRole('gridcell').first().waitFor();
  t.match(await saved(page, 'Save CSV'), /^order__status,orders\r\npaid,\d{4}\r\n/);
  await visit.click('button', 'Add to dashboard');
  await page.getByRole('textbox', { name: 'Title of the panel' }).fill('By status');
  await accessible(t, page, 'adding a panel');
  await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
  await page
    .getByRole('region', { name: 'By status' })
    .getByRole('img', { name: /Bar chart/ })
    .waitFor();
  t.match(await saved(page, 'Save SVG'), /^<svg/);

  const content = JSON.parse(await saved(page, 'Save file'));
  t.match(content, { osl_dashboard: 1, title: 'My dashboard', panels: [{ compare: 'previous_year' }] });
  await page.getByRole('link', { name: 'All metrics' }).click();
  const input = page.getByLabel('Dashboard file');
  const give = (text: string) =>
    input.setInputFiles({ name: 'd.json', mimeType: 'application/json', buffer: Buffer.from(text) });
  await give(JSON.stringify({ ...content, panels: [{ ...content.panels[0], limit: 'many' }] }));
  await page.getByText('panels[0].limit').waitFor();
  await accessible(t, page, 'a file that is refused');
  const panels = [{ title: 'Total', metrics: ['orders'] }, ...content.panels];
  await give(JSON.stringify({ ...content, title: 'Imported', panels }));
  await page.getByRole('heading', { name: 'Imported' }).waitFor();
  await page.getByText('2,900').waitFor();
  await visit.click('button', 'Move Total down');
  const titles = (): Promise<readonly string[]> => page.locator('.panel h3:visible').allTextContents();
  t.strictSame((await titles()).slice(0, 2), ['By status', 'Total']);
  await page
    .getByRole('region', { name: 'By status' })
    .getByRole('img', { name: /Bar chart/ })
    .waitFor();
  await accessible(t, page, 'a dashboard');
  await drillFrom(page, page.getByRole('region', { name: 'By status' }));
  await visit.click('button', 'Share link');
  const link = await page.getByRole('textbox', { name: 'Link' }).inputValue();
  await page.keyboard.press('Escape');
  await page.reload();
  const before = await queries();
  await page.getByRole('button', { name: 'Show it' }).waitFor();
  t.equal(await queries(), before, 'the address alone asks nothing');
  await page.getByRole('link', { name: 'Metrics' }).click();
  await page.getByRole('button', { name: /^Imported 2 panels/ }).waitFor();
  await page.getByRole('button', { name: /^My dashboard 1 panel/ }).click();
  await visit.click('button', 'Delete');
  await page.getByRole('button', { name: /^Imported/ }).waitFor();
  t.equal(await page.getByRole('button', { name: /^My dashboard/ }).count(), 0);
  await page.getByRole('button', { name: /^For analysts shared/ }).click();
  await page.getByRole('region', { name: 'Visits' }).getByText('9,000').waitFor();
  await visit.click('button', 'Keep a copy');
  await page.getByRole('button', { name: 'Delete' }).waitFor();
  visit.clean(t);
  await visit.close();

  const small = { width: 390, height: 800, dark: true };
  const other = await Visit.start(browser, origin, { ...small, expects: /status of 422/ });
  await other.page.goto(link);
  await other.click('button', /^user:eu/);
  await other.page.getByText(/came from a link and has 2 panels/).waitFor();
  await other.click('button', 'Show it');
  await other.page.getByText('2,900').waitFor();
  await accessible(t, other.page, 'small and dark');
  t.equal(await other.page.evaluate('document.documentElement.scrollWidth'), 390);
  await other.click('button', 'Keep a copy');
  await other.page.getByRole('button', { name: 'Delete' }).waitFor();
  await other.page.getByRole('link', { name: 'All metrics' }).click();
  await other.page.getByRole('button', { name: /^Imported 2 panels/ }).waitFor();
  t.equal(await other.page.getByText('For analysts').count(), 0, 'of a role that they do not have');
  other.clean(t);
  await other.close();
});

/** Chooses a bar of a panel, which leads to its rows. */
async function drillFrom(page: Page, panel: Locator): Promise<void> {
  const canvas = panel.locator('canvas').first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  if (box === null) throw new Error('no chart');
  const dialog = page.getByRole('dialog', { name: 'Rows behind orders' });
  for (let y = 40; y < 140 && !(await dialog.isVisible()); y += 10)
    await page.mouse.click(box.x + 90, box.y + y);
  await dialog.getByRole('link', { name: 'Open rows of order in Ask' }).waitFor();
  await page.keyboard.press('Escape');
}
