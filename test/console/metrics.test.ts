import { test } from 'tap';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

test('figures, picked without typing', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const { origin, rest } = await startGateway(t, SALES, SALES_CALLERS);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /status of 4(00|22)/ });
  const { page } = visit;
  await page.goto(`${origin}/console/#/metrics`);
  await visit.click('button', /^user:ann/);
  await page.getByRole('heading', { name: 'Choose a metric' }).waitFor();
  await accessible(t, page, 'the first view');
  const cells = (): Promise<readonly string[]> => page.getByRole('gridcell').allTextContents();
  const group = (name: RegExp) =>
    page.getByRole('region', { name: 'Group by' }).getByRole('checkbox', { name });
  const open = async (hash: string, at = visit): Promise<void> => {
    await at.page.goto(`${origin}/console/${hash}`);
    await at.click('button', 'Ask it');
  };
  visit.clicks();

  await t.test('task: revenue by month, as a chart and a table', async (t) => {
    await visit.click('button', /^revenue\b.*simple · order/);
    await page.getByRole('img', { name: /Line chart of revenue by metric_time__month, 20 points/ }).waitFor();
    t.equal(visit.clicks(), 1, 'one click');
    t.strictSame((await cells()).slice(0, 2), ['2025-01-01', '€7,580']);
    await accessible(t, page, 'a chart');
    visit.clean(t);
  });

  await t.test('task: with the year before', async (t) => {
    const asked = (await rest.test.records()).filter(
      (r) => r.kind === 'decision' && r.action === 'query',
    ).length;
    await page.getByRole('combobox', { name: 'Compare with' }).selectOption('previous_year');
    await page.getByText('compared with 2024-01-01 to 2025-08-31').waitFor();
    const row = page.getByRole('row').filter({ hasText: '2026-01-01' });
    t.strictSame(await row.getByRole('gridcell').allTextContents(), [
      '2026-01-01',
      '€10,181',
      '€7,580',
      '+34.3%',
    ]);
    const now = (await rest.test.records()).filter(
      (r) => r.kind === 'decision' && r.action === 'query',
    ).length;
    t.ok(now - asked >= 2, 'by a second governed question');
    await page.getByRole('combobox', { name: 'Compare with' }).selectOption('previous_period');
    await page.getByText('compared with 2024-12-01 to 2026-07-31').waitFor();
    const month = page.getByRole('row').filter({ hasText: '2026-01-01' });
    t.match((await month.getByRole('gridcell').allTextContents())[2], /^€7,\d/, 'the month before');
    await page.getByRole('combobox', { name: 'Compare with' }).selectOption('none');
    visit.clean(t);
  });

  await t.test('by category, and only what the figures share', async (t) => {
    await group(/^time/).uncheck();
    await group(/^category/).check();
    await page.getByRole('img', { name: /Bar chart of revenue by product__category, 4 points/ }).waitFor();
    await page
      .getByRole('region', { name: 'Metrics' })
      .getByRole('checkbox', { name: /^visits/ })
      .check();
    await page.getByText('E1001').waitFor();
    await group(/^category not shared/).click();
    await group(/^category/).waitFor({ state: 'detached' });
    t.ok(await group(/^region/).isVisible(), 'both lead to a customer');
    t.equal(await group(/^time/).count(), 0, 'visits have no time');
    await group(/^region/).check();
    await page.getByRole('row').filter({ hasText: 'asia' }).first().waitFor();
    t.match((await cells()).slice(0, 3), [/asia|eu|us/, /€\d/, /\d/]);
    visit.clean(t);
  });

  await t.test('a metric of several entities is offered what they share', async (t) => {
    await open('#/metrics?metric=orders_per_visit');
    await group(/^region/).check();
    await page.getByRole('row').filter({ hasText: 'asia' }).first().waitFor();
    t.equal(await group(/^category/).count(), 0);
  });

  await t.test('a filter is picked from the values that there are', async (t) => {
    await open('#/metrics?metric=orders&by=order__status');
    await page.getByRole('row').filter({ hasText: 'returned' }).waitFor();
    await page.getByRole('combobox', { name: 'Add a filter' }).selectOption('customer__region');
    await page.getByRole('dialog').getByRole('checkbox', { name: 'eu' }).check();
    await accessible(t, page, 'values to pick from');
    await visit.click('button', 'Done');
    await page.getByRole('button', { name: 'customer__region is eu', exact: true }).waitFor();
    await page.getByText('3 rows.').waitFor();
    const figures = (await cells())
      .filter((c) => /^[\d,]+$/.test(c))
      .map((c) => Number(c.replaceAll(',', '')));
    const answer = await rest.ask('user:ann', {
      metrics: ['orders'],
      where: "{{ Dimension('customer__region') }} = 'eu'",
    });
    t.match(answer.json(), { rows: [{ orders: figures.reduce((a, b) => a + b, 0) }] });
    visit.clean(t);
  });

  await t.test('what the server refuses is shown as it says it', async (t) => {
    await open('#/metrics?metric=visits&metric=revenue&by=product__category');
    await page.getByText('E1001').waitFor();
    t.match(
      await page.getByRole('alert').textContent(),
      /metric visits takes rows of visit, and relationship buyer/,
    );
  });

  await t.test('a link carries the question and no rights', async (t) => {
    const link = `${origin}/console/#/metrics?metric=revenue&by=product__category&compare=previous_year`;
    await page.goto(link);
    await page.getByText('This query came from a link').waitFor();
    const before = (await rest.test.records()).length;
    await page.getByRole('region', { name: 'Metrics' }).getByRole('checkbox').first().waitFor();
    t.equal((await rest.test.records()).length, before, 'it asks nothing by itself');
    await visit.click('button', 'Ask it');
    await page.getByRole('gridcell').first().waitFor();
    await visit.click('button', 'Share link');
    t.equal(await page.getByRole('textbox', { name: 'Link' }).inputValue(), link);
    await page.keyboard.press('Escape');
    await visit.click('button', 'curl');
    const curl = await page.getByRole('textbox', { name: 'curl' }).inputValue();
    t.match(curl, /\$OSL_TOKEN/);
    t.notMatch(curl, /eyJ/);
    await page.keyboard.press('Escape');
    const other = await Visit.start(browser, origin, { expects: /status of 400/ });
    await other.page.goto(link);
    await other.click('button', /^user:eu/);
    await other.click('button', 'Ask it');
    await other.page.getByText('E0512').waitFor();
    other.clean(t);
    await other.close();
  });

  await t.test('keys alone pick a figure', async (t) => {
    await page.goto(`${origin}/console/#/metrics`);
    const first = page.getByRole('button', { name: /^revenue\b.*since/ });
    await first.focus();
    await page.keyboard.press('Enter');
    await group(/^time/).focus();
    await page.keyboard.press('Space');
    await page.getByText('€174,215').first().waitFor();
    await group(/^status/).focus();
    await page.keyboard.press('Space');
    await page.getByRole('row').filter({ hasText: 'returned' }).waitFor();
    visit.clean(t);
  });
  await visit.close();

  await t.test('at 400 pixels, and in the dark', async (t) => {
    const small = await Visit.start(browser, origin, { width: 400, height: 800, dark: true });
    await small.page.goto(`${origin}/console/#/metrics?metric=revenue&by=customer__region`);
    await small.click('button', /^user:ann/);
    await small.click('button', 'Ask it');
    await small.page.getByRole('img', { name: /Bar chart/ }).waitFor();
    await accessible(t, small.page, 'small and dark');
    t.equal(
      await small.page.evaluate('document.documentElement.scrollWidth'),
      400,
      'nothing scrolls sideways',
    );
    await small.click('button', 'Pick');
    await small.page.getByRole('region', { name: 'Metrics' }).waitFor();
    await accessible(t, small.page, 'picking');
    small.clean(t);
    await small.page.goto(`${origin}/console/#/map?at=entity:customer`);
    await small.page.getByRole('complementary', { name: 'entity customer' }).waitFor();
    await accessible(t, small.page, 'the map, small and dark');
    t.equal(await small.page.evaluate('document.documentElement.scrollWidth'), 400);
    await small.click('button', 'Close');
    await small.click('button', 'List');
    await small.page.getByRole('navigation', { name: 'Things in the picture' }).waitFor();
    small.clean(t);
    await small.close();
  });

  await t.test('who has no metrics is told so', async (t) => {
    const nil = await Visit.start(browser, origin, { expects: /status of 403/ });
    await nil.page.goto(`${origin}/console/#/metrics`);
    await nil.click('button', /^user:nil/);
    await nil.page.getByText('You have no access yet').waitFor();
    await accessible(t, nil.page, 'no metrics');
    nil.clean(t);
    await nil.close();
  });
});
