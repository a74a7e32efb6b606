import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { settingsFrom } from '../../src/service/settings.js';
import { SHOP_MANIFEST } from '../support/shop.js';
import { accessible, ask, SKIP, startBrowser, Visit } from './support/browser.js';
import { startGateway } from './support/gateway.js';

/** Notes the longest task of the page from now on, in ms. */
const LONGEST_TASK =
  "globalThis.longest = 0; new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) longest = Math.max(longest, duration); }).observe({ type: 'longtask' })";

test('a million rows, a question that is cancelled, and screens of any size', { skip: SKIP }, async (t) => {
  // More than the page keeps, so that its own cap is what ends an answer.
  const { caps } = settingsFrom({ OSL_MAX_ROWS: '2000000' }, '/');
  const { rest, origin } = await startGateway(t, {
    settings: { caps },
    manifest: `${SHOP_MANIFEST}\nfeatures: { joins: any }\n`,
  });
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin);
  const { page } = visit;
  await page.goto(`${origin}/console/`);
  await page.getByRole('button', { name: /^user:ann/ }).click();
  await page.getByText('Query your data').waitFor();

  await t.test('a million rows are there, from the first to the last', async (t) => {
    await ask(page, "select g as n, g || ' of many' as words from generate_series(1, 1000000) g");
    await page.getByText(/^1,000,000 rows in/).waitFor({ timeout: 120_000 });
    await page.getByRole('grid').focus();
    await page.keyboard.press('Control+End');
    await page.getByRole('gridcell', { name: '1000000 of many' }).waitFor();
    await page.keyboard.press('Control+Home');
    await page.getByRole('gridcell', { name: '1 of many', exact: true }).waitFor();
    t.ok((await page.getByRole('row').count()) < 100, 'few of them are drawn');
    t.equal(await page.getByRole('grid').getAttribute('aria-rowcount'), '1000001');
    visit.clean(t);
  });

  await t.test('a million texts are sorted while the page goes on', async (t) => {
    await page.evaluate(LONGEST_TASK);
    await page.getByRole('button', { name: 'words', exact: true }).click();
    await page.locator('[aria-sort=ascending]').waitFor({ timeout: 120_000 });
    const longest = Math.round(Number(await page.evaluate('longest')));
    t.comment(`longest task ${longest} ms`);
    t.ok(longest < 1_000, 'far less than the sort takes as a whole');
    await page.getByRole('gridcell', { name: '100000 of many' }).waitFor();
    visit.clean(t);
  });

  await t.test('beyond that the page cuts, says so, and still knows what is masked', async (t) => {
    await ask(
      page,
      'select c.email, g as n from osl.entities.customer c cross join generate_series(1, 600000) g',
    );
    await page
      .getByText(/Cut here: the page keeps 1,000,000 rows.*There are more/)
      .waitFor({ timeout: 120_000 });
    await page.getByRole('button', { name: 'Why is email masked?' }).waitFor();
    await page
      .getByRole('gridcell', { name: /^masked: / })
      .first()
      .waitFor();
    visit.clean(t);
  });

  await t.test('a question that is cancelled ends in the database too', async (t) => {
    const endless =
      'select count(*) as n from generate_series(1, 200000) a cross join generate_series(1, 200000) b';
    await ask(page, endless);
    await page.getByText(/^0 rows so far/).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText(/^Cancelled after 0 rows/).waitFor();
    const outcome = async () =>
      (await rest.test.records()).findLast((r) => r.kind === 'outcome' && r.action === 'query')?.outcome;
    while ((await outcome()) !== 'cancelled') await new Promise((resolve) => setTimeout(resolve, 50));
    t.pass('its outcome is on record as cancelled');
    visit.clean(t);
  });

  await t.test(
    'after a cancel, the rows that had come stay, and their file says that there are more',
    async (t) => {
      await ask(page, "select g as n, g || ' of many' as words from generate_series(1, 1000000) g");
      await page.getByText(/^[1-9][\d,]* rows so far, \d+\.\d s$/).waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
      const told = await page.getByText(/^Cancelled after .*These rows stay here/).textContent();
      const rows = Number(/after ([\d,]+) rows/.exec(told ?? '')?.[1]?.replaceAll(',', ''));
      t.ok(rows > 0 && rows < 1_000_000, `${rows} rows`);
      t.equal(await page.getByRole('grid').getAttribute('aria-rowcount'), String(rows + 1));
      await visit.click('button', 'Download');
      const saving = page.waitForEvent('download');
      await visit.click('button', 'CSV');
      const download = await saving;
      t.equal(download.suggestedFilename(), 'answer-incomplete.csv');
      t.equal(readFileSync(await download.path(), 'utf8').split('\r\n').length, rows + 2);
      await page.keyboard.press('Escape');
      visit.clean(t);
    },
  );
  await visit.close();

  for (const [width, height, dark] of [
    [390, 800, false],
    [390, 800, true],
    [1280, 800, true],
    [3840, 2160, false],
  ] as const) {
    await t.test(`${width} wide, ${dark ? 'dark' : 'light'}`, async (t) => {
      const other = await Visit.start(browser, origin, { width, height, dark });
      await other.page.goto(`${origin}/console/`);
      await accessible(t, other.page, 'the sign-in');
      await other.page.getByRole('button', { name: /^user:ann/ }).click();
      await ask(other.page, 'select id, name, email, born from osl.entities.customer');
      await other.page
        .getByRole('gridcell', { name: /masked/ })
        .first()
        .click();
      await other.page.getByText(/it is sensitive/).waitFor();
      await accessible(t, other.page, 'an answer');
      const wide = await other.page.evaluate('document.documentElement.scrollWidth - innerWidth');
      t.ok(Number(wide) <= 0, 'nothing is wider than the page');
      other.clean(t);
      await other.close();
    });
  }
});
