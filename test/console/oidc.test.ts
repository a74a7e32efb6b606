import { test } from 'tap';
import { startShopIdentity } from '../identity/shop-identity.js';
import type { RestFixture } from '../surfaces/rest/fixture.js';
import { SKIP, startBrowser, Visit } from './support/browser.js';
import { consoleOptions, startGateway } from './support/gateway.js';

test('signing in with a provider, in the browser', { skip: SKIP }, async (t) => {
  const identity = await startShopIdentity();
  t.teardown(() => identity.close());
  const { issuer } = identity.provider;
  let started: RestFixture | null = null;
  const { rest, origin } = await startGateway(t, {
    policy: identity.policy,
    settings: { issuersFile: identity.issuersFile },
    console: consoleOptions({ localTokens: false, logins: () => started?.test.service.logins() ?? [] }),
  });
  started = rest;
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { also: [issuer] });
  const { page } = visit;

  await t.test('the page may call the provider, and says with whom one signs in', async (t) => {
    const { headers } = await rest.send('/console/');
    t.match(String(headers['content-security-policy']), `connect-src 'self' ${issuer};`);
    await page.goto(`${origin}/console/#/ask?q=select%20name%20from%20osl.entities.customer`);
    await visit.click('button', `Sign in with ${new URL(issuer).host}`);
    await page.locator('input[name=login]').fill('erin');
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    const consent = page.locator('button[type=submit]');
    await Promise.race([consent.click(), page.getByRole('button', { name: /Asking as/ }).waitFor()]);
    await page.getByRole('button', { name: /Signed in as user:erin/ }).waitFor();
    t.equal(new URL(page.url()).search, '', 'no code stays in the address');
    visit.faults.splice(0); // what the provider's own pages load is none of ours
    t.match(
      await page.getByRole('textbox', { name: /Question/ }).textContent(),
      /select name/,
      'the link is still there',
    );
  });

  await t.test('her own rows, by the rules of the policy', async (t) => {
    await visit.click('button', 'Run');
    await page.getByText(/rows? in/).waitFor();
    const asked = (await rest.test.records()).findLast((r) => r.kind === 'decision' && r.action === 'query');
    t.match(asked, { subject: 'user:erin', decision: 'allow' });
    t.ok((await rest.test.records()).some((r) => r.action === 'exchange' && r.subject === 'user:erin'));
    const kept = await page.evaluate('JSON.stringify([localStorage, document.cookie])');
    t.notMatch(kept, /eyJ/, 'no token outlives the tab');
    await page.reload();
    await page.getByRole('button', { name: /Signed in as user:erin/ }).waitFor();
    visit.clean(t);
  });

  await t.test('an answer that nobody asked the provider for signs nobody in', async (t) => {
    const other = await Visit.start(browser, origin);
    await other.page.goto(`${origin}/console/?code=stolen&state=guessed`);
    await other.page
      .getByRole('alert')
      .getByText(/did not begin to sign in/)
      .waitFor();
    t.equal(new URL(other.page.url()).search, '');
    other.clean(t);
    await other.close();
  });
  await t.test('a token of the gateway that is none is told', async (t) => {
    const other = await Visit.start(browser, origin, { also: [issuer] });
    await other.page.route('**/oauth/token', (route) => route.fulfill({ json: { access_token: 'none' } }));
    await other.page.goto(`${origin}/console/`);
    await other.click('button', `Sign in with ${new URL(issuer).host}`);
    await other.page.locator('input[name=login]').fill('erin');
    await other.page.locator('input[name=password]').fill('any');
    await other.page.locator('button[type=submit]').click();
    const told = other.page.getByRole('alert').getByText(/returned no actor token/);
    await Promise.race([other.page.locator('button[type=submit]').click(), told.waitFor()]);
    await told.waitFor();
    other.faults.splice(0); // what the provider's own pages load is none of ours
    t.equal(new URL(other.page.url()).search, '');
    await other.close();
  });
  await visit.close();
});
