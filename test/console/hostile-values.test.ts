import type { Route } from 'playwright-core';
import { test } from 'tap';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

const MARKUP = '<img src=x onerror="globalThis.isTaken=1"><script>globalThis.isTaken=1</script>';
/** Fields that the screens read as one of a few words. */
const WORDS = new Set(['type', 'kind', 'masked', 'use', 'composition', 'version', 'etag', 'currency']);

/** Every text of a schema with markup behind it, names and references alike. */
function poisoned(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return WORDS.has(key) ? value : value + MARKUP;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, key));
  if (typeof value !== 'object') return value;
  if (value === null) return key === 'description' || key === 'deprecated' ? MARKUP : null;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, poisoned(member, name)]));
}

async function poison(route: Route): Promise<void> {
  const response = await route.fetch();
  await route.fulfill({ response, json: poisoned(await response.json()) });
}

const HOSTILE_REGION = `x'); {{ Metric('revenue') }} ${MARKUP}`;

test('nothing that is shown becomes markup', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const script = `${SALES.script}
    INSERT INTO sales.customers VALUES (100, '${MARKUP}', '${MARKUP}', $q$${HOSTILE_REGION}$q$);
    INSERT INTO sales.orders VALUES (100000, 100, 1, 17, $q$${MARKUP}$q$, '2026-01-01');`;
  const { origin } = await startGateway(t, { ...SALES, script }, SALES_CALLERS);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /status of 4\d\d/ });
  const { page } = visit;
  const untouched = async (what: string): Promise<void> => {
    t.equal(await page.evaluate('globalThis.isTaken'), undefined, what);
    t.equal(await page.locator('main img, main script').count(), 0, `${what}: no element was made of a text`);
    visit.clean(t, what);
  };
  await page.goto(`${origin}/console/#/map`);
  await visit.click('button', /^user:ann/);
  await page.getByRole('navigation', { name: 'Things in the picture' }).waitFor();

  await t.test('names and words of the schema, on the map', async (t) => {
    await page.route('**/osl/schema*', poison);
    // Two changes of the fragment can be one render: the map would keep the schema that it has.
    await page.reload();
    const list = page.getByRole('navigation', { name: 'Things in the picture' });
    await list.getByRole('button', { name: /^customer<img/ }).click();
    await page.getByRole('complementary').getByText(MARKUP).first().waitFor();
    await untouched('an entity');
    await list.getByRole('button', { name: /^revenue<img/ }).click();
    await page.getByRole('complementary', { name: /^metric revenue<img/ }).waitFor();
    await untouched('a metric');
    await page.getByRole('combobox').fill('<img');
    await page.getByRole('option').first().waitFor();
    await untouched('what is found');
    await page.getByRole('option', { name: /email/ }).click();
    await page.getByRole('button', { name: /^why\? email/ }).click();
    await page.getByRole('alert').waitFor();
    await untouched('a refusal that names it');
    await visit.click('button', 'Compare …');
    await visit.click('button', /^user:eu as/);
    await page.getByRole('navigation', { name: 'Differences' }).waitFor();
    await accessible(t, page, 'hostile names');
    await untouched('two callers');
  });

  await t.test('names and words of the schema, among the metrics', async () => {
    await page.goto(`${origin}/console/#/metrics`);
    await page.getByRole('button', { name: /^revenue<img/ }).waitFor();
    await untouched('metrics to pick from');
    await page.unroute('**/osl/schema*');
  });

  await t.test('values of rows: in a chart, a table, a filter, a link', async (t) => {
    await page.goto(`${origin}/console/#/metrics?metric=orders&by=customer__region`);
    await page.reload(); // the schema of before may still have been on its way
    await visit.click('button', 'Ask it');
    await page.getByRole('gridcell', { name: HOSTILE_REGION }).waitFor();
    await untouched('a table and a chart');
    await page.getByRole('combobox', { name: 'Add a filter' }).selectOption('customer__region');
    await page.getByRole('dialog').getByRole('checkbox', { name: HOSTILE_REGION }).check();
    await visit.click('button', 'Done');
    await page.getByText('1 row.').waitFor();
    t.strictSame(
      await page.getByRole('gridcell').allTextContents(),
      [HOSTILE_REGION, '1'],
      'and it is that row',
    );
    await untouched('a filter');
    await page.reload();
    await visit.click('button', 'Ask it');
    await page.getByText('1 row.').waitFor();
    await untouched('the link');
  });

  await t.test('links that somebody else wrote', async () => {
    const evil = encodeURIComponent(MARKUP);
    for (const hash of [
      `#/map?at=${evil}&column=${evil}&in=${evil}`,
      '#/map?in=cluster:99999',
      '#/map?at=entity:nothing',
      '#/map?in=__proto__&at=constructor',
      `#/metrics?metric=${evil}&by=${evil}&where=${evil}&order=${evil}`,
      `#/metrics?metric=revenue&where=${encodeURIComponent(JSON.stringify(['customer__region', 'is', MARKUP]))}`,
      '#/metrics?metric=__proto__&by=constructor',
    ]) {
      await page.goto(`${origin}/console/#/ask`);
      await page.goto(`${origin}/console/${hash}`);
      await page.getByRole('main').locator(':scope > *').first().waitFor();
      await page.waitForLoadState('networkidle');
      const ask = page.getByRole('button', { name: 'Ask it' });
      if (await ask.isVisible()) await ask.click();
      await page.waitForLoadState('networkidle');
      await untouched(hash.slice(0, 40));
      t.equal(await page.getByText('This page could not be loaded').count(), 0, hash.slice(0, 40));
    }
  });
  await visit.close();
});
