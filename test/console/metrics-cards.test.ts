import type { Page } from 'playwright-core';
import { test } from 'tap';
import { accessible, EDITOR, SKIP, startBrowser, Visit } from './support/browser.js';
import { type Gateway, startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

/** The last whole months, newest first, as the gateway returns them to this caller. */
async function lastMonths({ rest }: Gateway, subject: string, metric: string) {
  const today = new Date();
  const end = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), 0)).toISOString().slice(0, 10);
  const answer = await rest.ask(subject, {
    metrics: [metric],
    group_by: ['metric_time__month'],
    order_by: ['-metric_time__month'],
    time_constraint: { end },
    limit: 24,
  });
  const { rows } = answer.json() as { rows: readonly Record<string, string>[] };
  return rows.map((row) => ({
    month: new Date(`${row['metric_time__month']}T00:00:00Z`),
    value: Number(row[metric]),
  }));
}

/** Number of queries in the log. */
async function queries({ rest }: Gateway): Promise<number> {
  const records = await rest.test.records();
  return records.filter((r) => r.kind === 'decision' && r.action === 'query').length;
}

/** Watches metrics queries of a page: how many were sent, and the most at one time. */
function watchQueries(page: Page): { sent: number; most: number } {
  const seen = { sent: 0, most: 0 };
  let open = 0;
  const isQuery = (url: string): boolean => url.endsWith('/osl/query');
  page.on('request', (request) => {
    if (!isQuery(request.url())) return;
    seen.sent += 1;
    open += 1;
    seen.most = Math.max(seen.most, open);
  });
  page.on('requestfinished', (request) => {
    if (isQuery(request.url())) open -= 1;
  });
  return seen;
}

const EUROS = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR', maximumFractionDigits: 0 });
const MONTH = new Intl.DateTimeFormat('en', { month: 'short', year: 'numeric', timeZone: 'UTC' });
const card = (page: Page, name: string) =>
  page
    .getByRole('listitem')
    .filter({ has: page.getByRole('checkbox', { name: `Choose ${name}`, exact: true }) });

test('cards of metrics, and the rows behind a value', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const gateway = await startGateway(t, SALES, SALES_CALLERS);
  const { origin } = gateway;
  const browser = await startBrowser(t);

  await t.test('a card has the last value, the change and a line', async (t) => {
    const visit = await Visit.start(browser, origin, { expects: /status of 422/ });
    const { page } = visit;
    await page.goto(`${origin}/console/#/metrics`);
    await visit.click('button', /^user:ann/);
    const [last, before] = await lastMonths(gateway, 'user:ann', 'revenue');
    if (last === undefined || before === undefined) throw new Error('no months');
    const revenue = card(page, 'revenue');
    await revenue.getByText(/since/).waitFor();
    const text = await revenue.textContent();
    t.match(text, EUROS.format(last.value));
    t.match(text, MONTH.format(last.month));
    const change = Math.abs((last.value / before.value - 1) * 100).toFixed(1);
    t.match(text, `${change}% since ${MONTH.format(before.month)}`);
    t.match(text, last.value < before.value ? '▼ -' : '▲ +', 'by a sign, not by colour');
    t.match(await revenue.locator('svg').getAttribute('aria-label'), /^20 months, lowest €.* highest €/);
    t.match(await card(page, 'visits').textContent(), /9,000over all rows: visits has no time/);
    t.match(await card(page, 'orders_per_visit').textContent(), /E1001.*`?visit`? has no time dimension/);
    await page.getByRole('combobox', { name: 'Periods' }).selectOption('quarter');
    await revenue.locator('svg[aria-label^="7 quarters"]').waitFor();
    await accessible(t, page, 'cards');
    visit.clean(t);
    await visit.close();
  });

  await t.test('only cards in view are asked, three at a time, once', async (t) => {
    const visit = await Visit.start(browser, origin, { width: 420, height: 420, expects: /status of 422/ });
    const { page } = visit;
    const seen = watchQueries(page);
    await page.goto(`${origin}/console/#/metrics`);
    await visit.click('button', /^user:ann/);
    await card(page, 'revenue').getByText(/since/).waitFor();
    const first = seen.sent;
    t.ok(first >= 1 && first <= 3, `${first} of 6 in view`);
    await card(page, 'revenue_so_far').scrollIntoViewIfNeeded();
    await card(page, 'revenue_so_far').getByText(/since/).waitFor();
    await card(page, 'visits').scrollIntoViewIfNeeded();
    await card(page, 'visits').getByText('9,000').waitFor();
    const all = seen.sent;
    t.ok(all > first && all <= 6, `${all} queries for six cards`);
    t.ok(seen.most <= 3, `${seen.most} at a time`);
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 420);
    await page.getByRole('link', { name: 'Map' }).click();
    await page.getByRole('link', { name: 'Metrics' }).click();
    await card(page, 'revenue').getByText(/since/).waitFor();
    t.equal(seen.sent, all, 'kept for the session');
    await visit.click('button', 'Refresh');
    await card(page, 'revenue').getByText(/since/).waitFor();
    await page.waitForFunction('true');
    t.ok(seen.sent > all, 'until they are refreshed');
    visit.clean(t);
    await visit.close();
  });

  await t.test('groups that the policy withholds are gaps', async (t) => {
    const visit = await Visit.start(browser, origin, { expects: /status of (403|422)/ });
    const { page } = visit;
    await page.goto(`${origin}/console/#/metrics`);
    await visit.click('button', /^user:sum/);
    await card(page, 'orders')
      .getByText(/Aug|Jul|Jun/)
      .first()
      .waitFor();
    const shown = await lastMonths(gateway, 'user:sum', 'orders');
    const [first, last] = [shown.at(-1), shown[0]];
    if (first === undefined || last === undefined) throw new Error('no months');
    const months = (last.month.getUTCFullYear() - first.month.getUTCFullYear()) * 12;
    const span = months + last.month.getUTCMonth() - first.month.getUTCMonth() + 1;
    t.ok(shown.length < span, 'some are withheld');
    const line = card(page, 'orders').locator('svg');
    t.match(await line.getAttribute('aria-label'), `no value in ${span - shown.length} of them`);
    const path = (await line.locator('path').first().getAttribute('d')) ?? '';
    t.ok((path.match(/M/g) ?? []).length > 1, 'the line has gaps');
    t.notMatch(await line.getAttribute('aria-label'), /lowest 0/);
    await card(page, 'revenue_so_far').scrollIntoViewIfNeeded();
    await card(page, 'revenue_so_far')
      .getByText(/a running total would reveal its single periods/)
      .waitFor();
    await card(page, 'orders').getByRole('button').click();
    await page.getByRole('gridcell').nth(1).click();
    await page.getByText(/allow only aggregates of order, over groups of at least 145/).waitFor();
    await accessible(t, page, 'no rows to show');
    visit.clean(t);
    await visit.close();
  });

  await t.test('the rows behind a value are as many as it counts', async (t) => {
    const visit = await Visit.start(browser, origin);
    const { page } = visit;
    const link =
      '#/metrics?metric=orders&by=metric_time.month&by=customer__region&where=["order__status","is_not","open"]&from=2025-02-10&to=2025-04-20';
    await page.goto(`${origin}/console/${link}`);
    await visit.click('button', /^user:ann/);
    await visit.click('button', 'Ask it');
    await page.getByRole('gridcell').first().waitFor();
    const row = page.getByRole('row').filter({ hasText: '2025-02-01' }).filter({ hasText: 'eu' });
    const [, , orders] = await row.getByRole('gridcell').allTextContents();
    await row.getByRole('gridcell').nth(2).click();
    const open = page.getByRole('link', { name: 'Open rows of order in Ask' });
    await open.waitFor();
    await accessible(t, page, 'the query behind a value');
    const before = await queries(gateway);
    await open.click();
    await page.getByRole('textbox', { name: EDITOR }).waitFor();
    t.equal(await queries(gateway), before, 'it does not run by itself');
    await page.getByRole('textbox', { name: EDITOR }).click();
    await page.keyboard.press('Control+Enter');
    await page.getByText(`${orders} rows in`).waitFor();
    visit.clean(t);
    await visit.close();
  });

  await t.test('a bar leads to its rows, and so does a key', async (t) => {
    const visit = await Visit.start(browser, origin);
    const { page } = visit;
    await page.goto(`${origin}/console/#/metrics?metric=orders&by=order__status`);
    await visit.click('button', /^user:ann/);
    await visit.click('button', 'Ask it');
    const canvas = page.locator('.chart canvas').first();
    await canvas.waitFor();
    const box = await canvas.boundingBox();
    if (box === null) throw new Error('no chart');
    const dialog = page.getByRole('dialog', { name: 'Rows behind orders' });
    for (let y = 40; y < 140 && !(await dialog.isVisible()); y += 10)
      await page.mouse.click(box.x + 90, box.y + y);
    await dialog.getByText('order__status: paid').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('grid', { name: 'Answer' }).focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await dialog.getByText('order__status: open').waitFor();
    visit.clean(t);
    await visit.close();
  });
});
