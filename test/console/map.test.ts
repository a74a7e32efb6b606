import { test } from 'tap';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

test('the map as its caller sees it', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const { origin, rest } = await startGateway(t, SALES, SALES_CALLERS);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin);
  const { page } = visit;
  await page.goto(`${origin}/console/#/map`);
  await visit.click('button', /^user:ann/);
  const list = page.getByRole('navigation', { name: 'Things in the picture' });
  await list.getByRole('button', { name: 'customer', exact: true }).waitFor();
  visit.clicks();

  await t.test('the list beside the picture has what it has', async (t) => {
    t.strictSame(await list.getByRole('button').allTextContents(), [
      'customer',
      'order',
      'product',
      'visit',
      'orders',
      'orders_per_visit',
      'returned_share',
      'revenue',
      'revenue_so_far',
      'visits',
    ]);
    await accessible(t, page, 'the map');
    visit.clean(t);
  });

  await t.test('the stroke goes to the search, wherever the focus is', async (t) => {
    const search = page.getByRole('combobox', { name: 'Search the map' });
    const isThere = () => page.evaluate("document.activeElement?.type === 'search'");
    t.equal(await isThere(), false);
    await page.keyboard.press('/');
    t.equal(await isThere(), true, 'right after signing in');
    await page.keyboard.press('/');
    t.equal(await search.inputValue(), '/', 'within it, it is a letter');
    await search.fill('');
    await list.getByRole('button').first().focus();
    await page.keyboard.press('Control+/');
    t.equal(await isThere(), false);
    await page.keyboard.press('/');
    t.equal(await isThere(), true, 'from the list');
  });

  await t.test('task: what this caller sees of a column, and why: search, pick, ask', async (t) => {
    await page.getByRole('combobox', { name: 'Search the map' }).fill('email');
    await visit.click('option', /customer\.email/);
    const panel = page.getByRole('complementary', { name: 'entity customer' });
    const row = panel.getByRole('listitem').filter({ has: page.getByRole('button', { name: 'why? email' }) });
    t.match(await row.textContent(), /email.*text.*masked/);
    await visit.click('button', 'why? email');
    await panel.getByText('it is sensitive, and your grant shows only its masked value').waitFor();
    t.equal(visit.clicks(), 2, 'two clicks and a word');
    t.match(page.url(), /at=entity%3Acustomer&column=email/, 'a link leads here again');
    await accessible(t, page, 'the panel');
    const records = await rest.test.records();
    t.ok(
      records.some((r) => r.kind === 'decision' && r.action === 'why'),
      'the question is in the log',
    );
    visit.clean(t);
  });

  await t.test('arrows move along edges, Enter opens, Escape closes', async (t) => {
    await page.keyboard.press('Tab');
    await visit.click('button', 'Close');
    await page.getByRole('application').focus();
    const here = page.getByRole('status').filter({ hasText: /edge/ });
    await page.keyboard.press('ArrowRight');
    await here.waitFor({ state: 'attached' });
    const seen = new Set<string>();
    for (const key of [
      'ArrowRight',
      'ArrowDown',
      'ArrowLeft',
      'ArrowUp',
      'ArrowRight',
      'ArrowLeft',
      'ArrowDown',
    ]) {
      await page.keyboard.press(key);
      seen.add((await here.textContent()) ?? '');
    }
    t.ok(seen.size > 2, [...seen].join('; '));
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').waitFor();
    await page.getByRole('application').focus();
    await page.keyboard.press('Escape');
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    for (const key of ['+', '+', '-', '0']) await page.keyboard.press(key);
    await page.keyboard.press('/');
    t.equal(await page.evaluate('document.activeElement.getAttribute("role")'), 'combobox');
    visit.clean(t);
  });

  await t.test('from an entity to a question about it', async () => {
    await list.getByRole('button', { name: 'order', exact: true }).click();
    await visit.click('link', 'Ask this');
    await page.waitForURL(/#\/ask\?q=select\+id.*osl\.entities\.%22order%22/);
    await page.goBack();
    await list.getByRole('button', { name: 'order', exact: true }).waitFor();
  });

  await t.test('task: compare two callers', async (t) => {
    visit.clicks();
    await visit.click('button', 'Compare …');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^user:eu/ })
      .waitFor();
    await accessible(t, page, 'the second sign-in');
    await visit.click('button', /^user:eu as/);
    const differences = page.getByRole('navigation', { name: 'Differences' });
    await differences.waitFor();
    t.equal(visit.clicks(), 2, 'two clicks');
    t.match(await differences.textContent(), /customer.*email masked │.*not at all/);
    t.match(await differences.textContent(), /product.*only user:ann sees it/);
    await page.getByText('user:eu', { exact: true }).waitFor();
    t.equal(await page.getByRole('application').count(), 2);
    await accessible(t, page, 'two callers');
    await differences.getByRole('button', { name: /^customer/ }).click();
    const panel = page.getByRole('complementary', { name: 'entity customer' });
    await panel.getByText('user:eu: not at all').first().waitFor();
    await visit.click('button', 'Stop comparing');
    await differences.waitFor({ state: 'detached' });
    visit.clean(t);
  });
  await visit.close();
});

test('a gateway that fails is told of, and asked again', { skip: SKIP, timeout: 300_000 }, async (t) => {
  const { origin } = await startGateway(t, SALES, SALES_CALLERS);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /ERR_FAILED/ });
  const { page } = visit;
  await page.route('**/osl/schema*', (route) => route.abort());
  await page.goto(`${origin}/console/#/map`);
  await visit.click('button', /^user:ann/);
  await page.getByRole('alert').getByText('the gateway cannot be reached').waitFor();
  await accessible(t, page, 'a map that cannot be had');
  await page.unroute('**/osl/schema*');
  await visit.click('button', 'Try again');
  await page.getByRole('navigation', { name: 'Things in the picture' }).waitFor();
  visit.clean(t);
  await visit.close();
});

test('an empty map, one that cannot be had, and one whose token has ended', {
  skip: SKIP,
  timeout: 300_000,
}, async (t) => {
  const { origin, rest } = await startGateway(t, SALES, SALES_CALLERS);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /status of (401|403|503)/ });
  const { page } = visit;
  await page.goto(`${origin}/console/#/map`);
  await visit.click('button', /^user:nil/);
  await page.getByText('You have no access yet').waitFor();
  await accessible(t, page, 'nothing to see');
  visit.clean(t);
  await visit.close();

  const late = await Visit.start(browser, origin, { expects: /status of (401|403)/ });
  const old = await rest.test.token('user:ann', { issuedAt: Math.floor(Date.now() / 1000) - 280 });
  await late.page.goto(`${origin}/console/#/map`);
  await late.page.getByRole('textbox', { name: 'Actor token' }).fill(old);
  await late.click('button', 'Sign in');
  await late.page.getByRole('navigation', { name: 'Things in the picture' }).waitFor();
  await late.page.getByRole('button', { name: /Sign in again/i }).waitFor();
  t.ok(await late.page.getByRole('application').isVisible(), 'what was there stays');
  await accessible(t, late.page, 'the token has ended');
  late.clean(t);
  await late.close();
});
