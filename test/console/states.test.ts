import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import type { Locator, Page } from 'playwright-core';
import t, { test } from 'tap';
import { demoSignIn } from '../../src/surfaces/console/demo.js';
import { files } from '../service/operations/store.js';
import { type Place, served } from '../service/operations/support.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import { IS_WHOLE } from '../support/part.js';
import { accessible, EDITOR, SKIP, startBrowser, Visit, write } from './support/browser.js';
import { FAULTS, type Fault, type FaultProxy, startFaultProxy } from './support/fault-proxy.js';
import { consoleOptions, startGateway } from './support/gateway.js';
import { SALES, SALES_CALLERS } from './support/sales.js';
import { enter, tokenOf } from './support/served.js';

/**
 * Each page of the console while it is empty, loading, refused, and after the token has expired: what is seen, and what
 * can be done. The gateway is real; a proxy before it lets requests fail.
 */

t.setTimeout(600_000);

/** A page or panel, and what it requests. */
interface PageCase {
  readonly name: string;
  /** Done once before. */
  readonly prepare?: (page: Page) => Promise<void>;
  /** Comes to the page from another one. */
  readonly open: (page: Page) => Promise<void>;
  /** Paths of the requests that fail. */
  readonly path: RegExp;
  /** Words while it is loading. */
  readonly loading: string;
  /** True if another page has to be loaded before. */
  readonly isWithin?: boolean;
  /** Finds the element that is seen once it has loaded. */
  readonly healthy: (page: Page) => Locator;
}

/** Goes to an address by way of another screen, so that its page loads anew, and opens a tab. */
const at =
  (hash: string, tab: string | null = null) =>
  async (page: Page): Promise<void> => {
    await page.evaluate("location.hash = '#/receipts'");
    await page.getByText('Checked in your browser; nothing is sent').waitFor();
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    if (tab !== null) await page.getByRole('tab', { name: tab, exact: true }).click();
  };

const words = (text: string | RegExp) => (page: Page) => page.getByText(text).first();
const button = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).click();

const ANSWER = '#/metrics?metric=orders';
const DASHBOARD = `#/metrics?${new URLSearchParams({ shared: 'Sales' })}`;
const QUESTION = 'select count(*) as orders from osl.entities.order';

const PAGES: readonly PageCase[] = [
  {
    name: 'Ask: the schema',
    // It is kept while the page stays.
    open: async (page) => {
      await page.evaluate("location.hash = '#/ask'");
      await page.reload();
    },
    path: /^\/osl\/schema/,
    loading: 'Loading the schema …',
    healthy: words('Query your data'),
  },
  {
    name: 'Ask: the plan',
    open: button('Explain'),
    path: /^\/osl\/query/,
    loading: 'Loading the plan …',
    healthy: (page) => page.getByRole('heading', { name: 'Grants used' }),
  },
  {
    name: 'Ask: an answer',
    open: button('Run'),
    path: /^\/osl\/query/,
    loading: 'Running …',
    healthy: words(/^1 row in/),
  },
  {
    name: 'Map',
    open: at('#/map'),
    path: /^\/osl\/schema/,
    loading: 'Loading your map …',
    healthy: (page) => page.getByRole('navigation', { name: 'Things in the picture' }),
  },
  {
    name: 'Metrics',
    open: at('#/metrics'),
    path: /^\/osl\/schema/,
    loading: 'Loading your metrics …',
    healthy: words('Choose a metric'),
  },
  {
    name: 'Metrics: an answer',
    prepare: async (page) => {
      // The query of an address that came from elsewhere waits for its reader.
      await at(ANSWER)(page);
      await button('Ask it')(page);
    },
    open: at(ANSWER),
    path: /^\/osl\/query/,
    loading: 'Loading the answer …',
    healthy: words('2,900'),
  },
  {
    name: 'a shared dashboard',
    prepare: async (page) => {
      await at(DASHBOARD)(page);
      await button('Show it')(page);
    },
    open: at(DASHBOARD),
    path: /^\/osl\/dashboards/,
    loading: 'Loading the dashboard …',
    healthy: (page) => page.getByRole('region', { name: 'All orders' }),
  },
  {
    name: 'a panel of a dashboard',
    isWithin: true,
    open: button('Refresh'),
    path: /^\/osl\/query/,
    loading: 'Loading the answer …',
    healthy: words('2,900'),
  },
  {
    name: 'Policy: who sees what',
    open: at('#/policy', 'Who sees what'),
    path: /^\/admin\/matrix/,
    loading: 'Loading who sees what …',
    healthy: (page) => page.getByRole('grid', { name: 'Who sees what' }),
  },
  {
    name: 'Policy: drafts',
    open: at('#/policy', 'Drafts'),
    path: /^\/osl\/objects/,
    loading: 'Loading drafts …',
    healthy: words('No drafts'),
  },
  {
    name: 'Policy: tests',
    open: at('#/policy', 'Tests'),
    path: /^\/admin\/policy\/tests/,
    loading: 'Loading the tests …',
    healthy: words('This policy has no tests'),
  },
  {
    name: 'Policy: shadow',
    open: at('#/policy', 'Shadow'),
    path: /^\/admin\/policy\/shadow/,
    loading: 'Loading the comparison …',
    healthy: words('No shadow policy'),
  },
  {
    name: 'Requests',
    open: at('#/requests'),
    path: /^\/osl\/approvals/,
    loading: 'Loading requests …',
    healthy: words('No requests'),
  },
  {
    name: 'Audit: search',
    open: at('#/audit', 'Search'),
    path: /^\/admin\/audit\/records/,
    loading: 'Loading records …',
    healthy: (page) => page.getByRole('grid'),
  },
  {
    name: 'Audit: verify',
    open: at('#/audit', 'Verify'),
    path: /^\/admin\/audit\/verification/,
    loading: 'Loading the last verification …',
    healthy: words('Not verified since the server started.'),
  },
  {
    name: 'Operations',
    open: at('#/operations'),
    path: /^\/admin\/standing/,
    loading: 'Loading the state of the server …',
    healthy: words('requests since start'),
  },
  {
    name: 'Operations: over time',
    isWithin: true,
    open: at('#/operations'),
    path: /^\/admin\/history/,
    loading: 'Loading the last hour …',
    healthy: (page) => page.getByRole('slider', { name: /^Questions/ }),
  },
  {
    name: 'Operations: limits',
    isWithin: true,
    open: at('#/operations', 'Limits'),
    path: /^\/admin\/limits/,
    loading: 'Loading limits …',
    healthy: words('Requests of one subject in a second'),
  },
  {
    name: 'Operations: freshness',
    isWithin: true,
    open: at('#/operations', 'Freshness'),
    path: /^\/admin\/freshness/,
    loading: 'Loading the state of indexes and rollups …',
    healthy: words('Indexes of text'),
  },
];

/** Words of a page about a fault. */
const WORDS: Readonly<Record<Exclude<Fault, 'held'>, readonly (string | RegExp)[]>> = {
  refused: ['The gateway cannot be reached.', /Check your connection, and that the gateway is running/],
  malformed: ['This response, with status 200, is not one of the gateway.', /such as a proxy/],
  foreign: ['This response, with status 502, is not one of the gateway.', /such as a proxy/],
  failed: ['E5000', /Your question is not the cause.*give the ID of the request/, 'request of-the-proxy'],
  forbidden: ['E2101', 'you have no right to this', /Ask the policy owner/],
  limited: ['E4290', /From \d+:\d\d.* it works again: in 1\d min/],
};

const AGAIN = { name: 'Try again', exact: true } as const;

/** Opens a page whose requests fail, and lets it recover. */
async function failing(page: Page, proxy: FaultProxy, one: PageCase, fault: Fault): Promise<void> {
  const main = page.getByRole('main');
  proxy.fail(one.path, fault);
  await one.open(page);
  if (fault === 'held') await main.getByText(one.loading).first().waitFor();
  else for (const text of WORDS[fault]) await main.getByRole('alert').getByText(text).first().waitFor();
  // The question itself has to change.
  const canRepeat = fault !== 'held' && !(fault === 'forbidden' && one.name.startsWith('Ask: '));
  if (canRepeat) await main.getByRole('button', AGAIN).first().waitFor();
  proxy.heal();
  if (fault === 'held') await one.healthy(page).waitFor();
  else if (canRepeat || one.name === 'Ask: the schema') await recover(page, one.healthy(page));
}

/** Asks again until it has loaded: a page that polls may have done so before the button is clicked. */
async function recover(page: Page, healthy: Locator): Promise<void> {
  const again = page.getByRole('main').getByRole('button', AGAIN).first();
  const end = Date.now() + 60_000;
  for (;;) {
    if (await again.isVisible()) await again.click({ timeout: 1_000 }).catch(() => undefined);
    const isHealthy = await healthy.waitFor({ timeout: 3_000 }).then(
      () => true,
      () => false,
    );
    if (isHealthy) return;
    if (Date.now() > end) throw new Error('it did not recover');
  }
}

const DASHBOARD_FILE = {
  ...{ osl_dashboard: 1, title: 'Sales', roles: ['analyst'] },
  panels: [
    { title: 'All orders', metrics: ['orders'] },
    { title: 'By status', metrics: ['orders'], group_by: ['order__status'] },
  ],
};

/** `osl serve` over the sales, with a dashboard for analysts; `user:ann` is an admin. */
async function salesServer(readerUrl: string): Promise<{ readonly origin: string; readonly place: Place }> {
  const place = files(
    SALES.manifest
      .replace('tenant: sales', 'tenant: demo')
      .replace('kind: pglite', 'kind: postgres\n    url_env: STORE_URL'),
    SALES.policy
      .replace('tenant: sales', 'tenant: demo')
      .replace('user:ann: { ceiling: [analyst] }', 'user:ann: { ceiling: [analyst], admin: [TENANT_ADMIN] }'),
  );
  const dashboards = join(dirname(place.policy), 'dashboards');
  mkdirSync(dashboards);
  writeFileSync(join(dashboards, 'sales.json'), JSON.stringify(DASHBOARD_FILE));
  const env = { STORE_URL: readerUrl, OSL_CONSOLE: 'admin', OSL_ADMIN_PORT: '0', OSL_DASHBOARDS: dashboards };
  const server = await served(t, place, env);
  return { origin: `http://127.0.0.1:${server.record().httpPort}`, place };
}

/** Pages where there is nothing, as seen by who has no access, and by an admin. */
const EMPTY: readonly (readonly [hash: string, tab: string | null, text: string])[] = [
  ['#/ask', null, 'You have no access yet'],
  ['#/map', null, 'You have no access yet'],
  ['#/metrics', null, 'You have no access yet'],
  ['#/policy', null, 'Policy is not here'],
];
const EMPTY_OF_ADMIN: typeof EMPTY = [
  [
    `#/metrics?${new URLSearchParams({ dashboard: 'Gone' })}`,
    null,
    'There is no dashboard of this title here.',
  ],
  ['#/operations', 'Limits', 'The policy has none.'],
  ['#/operations', 'Freshness', 'The manifest declares no facet.'],
  ['#/operations', 'Lineage', 'No lineage receivers configured'],
];

const postgres = SKIP === false ? await startNativePostgres() : null;
if (SKIP !== false || postgres === null) {
  t.test('states of the pages', { skip: SKIP === false ? NO_NATIVE : SKIP }, async () => undefined);
} else {
  t.teardown(() => postgres.stop());
  const owner = new pg.Client(postgres.url);
  await owner.connect();
  await owner.query(
    `${SALES.script}; grant usage on schema sales to osl_reader; grant select on all tables in schema sales to osl_reader`,
  );
  await owner.end();
  const { origin: gateway, place } = await salesServer(postgres.readerUrl);
  const proxy = await startFaultProxy(t, gateway);
  const { origin } = proxy;
  const browser = await startBrowser(t);
  const admin = (issuedAt?: number) => tokenOf(place, ['user:ann'], ['TENANT_ADMIN'], ['analyst'], issuedAt);
  const expects = /Failed to load resource/;

  // Its token expires during the tests below.
  const kept = await Visit.start(browser, origin);
  await enter(kept, origin, await admin(Math.floor(Date.now() / 1_000) - 275), 'ask');
  await write(kept.page, 'select half');
  await at(DASHBOARD)(kept.page);
  await button('Show it')(kept.page);
  await kept.page.getByText('2,900').first().waitFor();

  await t.test('the console itself, and signing in', async (t) => {
    const visit = await Visit.start(browser, origin, { expects });
    const { page } = visit;
    for (const fault of ['held', ...faultsFor(0)] as const) {
      proxy.fail(/^\/console\/settings\.json/, fault);
      await page.goto(`${origin}/console/`);
      if (fault === 'held') await page.getByText('Loading the console …').waitFor();
      else for (const text of WORDS[fault]) await page.getByRole('alert').getByText(text).first().waitFor();
      proxy.heal();
      if (fault !== 'held') await page.getByRole('button', AGAIN).click();
      await page.getByRole('textbox', { name: 'Actor token' }).waitFor();
    }
    visit.clean(t);
    await visit.close();
  });

  await t.test('loading and failed', async (t) => {
    const visit = await Visit.start(browser, origin, { expects });
    const { page } = visit;
    await enter(visit, origin, await admin(), 'ask');
    await write(page, QUESTION);
    proxy.fail(/^\/osl\/schema/, 'held');
    await at('#/map')(page);
    await page.getByText('The gateway has not answered yet.').waitFor();
    await accessible(t, page, 'a page that waits', 'every');
    proxy.heal();
    await page.getByRole('navigation', { name: 'Things in the picture' }).waitFor();
    await at('#/ask')(page);
    for (const [i, one] of PAGES.entries()) {
      await one.prepare?.(page);
      for (const fault of ['held', ...faultsFor(i)] as const) await failing(page, proxy, one, fault);
      t.pass(one.name);
    }
    visit.clean(t);
    await visit.close();
  });

  await t.test('expired: each page says so, and signing in again brings it back', async (t) => {
    const visit = await Visit.start(browser, origin, { width: 390, dark: true });
    const { page } = visit;
    const main = page.getByRole('main');
    await enter(visit, origin, await admin(Math.floor(Date.now() / 1_000) - 301), 'ask');
    await write(page, QUESTION);
    for (const one of PAGES.filter(({ isWithin }) => isWithin !== true)) {
      await one.open(page);
      await main.getByRole('alert').getByText('Your token has expired.').first().waitFor();
      await main.getByRole('button', { name: 'Sign in again' }).first().waitFor();
      t.pass(one.name);
    }
    t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390, 'at 390 pixels too');
    await accessible(t, page, 'a page whose token has expired', 'every');
    await at('#/audit', 'Search')(page);
    await page.getByRole('searchbox', { name: 'Action' }).fill('query');
    await main.getByRole('button', { name: 'Sign in again' }).click();
    await signInAgain(page, await admin());
    await page.getByRole('grid').waitFor();
    t.equal(await page.getByRole('searchbox', { name: 'Action' }).inputValue(), 'query', 'what was typed');
    visit.clean(t);
    await visit.close();
  });

  await t.test('a dashboard and a query that were open while the token expired', async (t) => {
    const { page } = kept;
    await page.getByText('Your token has expired. What you typed is kept.').waitFor({ timeout: 60_000 });
    await page.getByText('2,900').first().waitFor();
    await button('Refresh')(page);
    const panel = page.getByRole('region', { name: 'All orders' });
    await panel.getByText('Your token has expired.').waitFor();
    await panel.getByRole('button', { name: 'Sign in again' }).click();
    await signInAgain(page, await admin());
    await panel.getByText('2,900').waitFor();
    t.equal(new URL(page.url()).hash, DASHBOARD, 'the same address');
    await page.evaluate("location.hash = '#/ask'");
    t.equal(await page.getByRole('textbox', { name: EDITOR }).textContent(), 'select half');
    kept.clean(t);
    await kept.close();
  });

  await t.test('empty: who has no access, and a server that has nothing yet', async (t) => {
    const visit = await Visit.start(browser, origin, { expects });
    const { page } = visit;
    for (const [token, cases] of [
      [await tokenOf(place, ['user:nil'], [], []), EMPTY],
      [await admin(), EMPTY_OF_ADMIN],
    ] as const) {
      await enter(visit, origin, token, 'receipts');
      for (const [hash, tab, text] of cases) {
        await at(hash, tab)(page);
        await page.getByRole('main').getByText(text).first().waitFor();
        t.pass(text);
      }
      await button('Sign out')(page);
    }
    visit.clean(t);
    await visit.close();
  });
}

test('tokens that can be renewed are renewed unnoticed', { skip: SKIP, timeout: 300_000 }, async (t) => {
  let minted = 0;
  const demo = demoSignIn(SALES_CALLERS, async (chain) => {
    minted += 1;
    // Of four seconds, so that none outlives the next look at the page.
    return (await started).rest.test.token(chain.at(-1) ?? '', {
      chain,
      issuedAt: Math.floor(Date.now() / 1_000) - 296,
    });
  });
  const started = startGateway(t, { ...SALES, console: consoleOptions({ demo }) });
  const proxy = await startFaultProxy(t, (await started).origin);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, proxy.origin, { expects: /Failed to load resource/ });
  const { page } = visit;
  await page.goto(`${proxy.origin}/console/`);
  await visit.click('button', /^user:ann/);
  await page.getByText('Query your data').waitFor();
  await write(page, 'select 42 as answer');
  const first = minted;
  await page.waitForTimeout(4_500);
  t.equal(await page.getByText('Your token has expired').count(), 0);
  await button('Run')(page);
  await page.getByRole('gridcell', { name: '42' }).waitFor();
  t.ok(minted > first, 'with a new token');

  proxy.fail(/demo-token/, 'refused');
  await button('Run')(page);
  await page.getByText('The gateway cannot be reached.').waitFor();
  t.equal(await page.getByText('Your token has expired').count(), 0, 'that can pass');
  proxy.heal();
  await button('Try again')(page);
  await page.getByRole('gridcell', { name: '42' }).waitFor();

  proxy.fail(/demo-token/, 'forbidden');
  await button('Run')(page);
  await page.getByText('Your token has expired. What you typed is kept.').waitFor();
  proxy.heal();
  await page.getByRole('main').getByRole('button', { name: 'Sign in again' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^user:ann/ })
    .click();
  await page.getByText('You have signed in again.').waitFor();
  await button('Try again')(page);
  await page.getByRole('gridcell', { name: '42' }).waitFor();
  visit.clean(t);
  await visit.close();
});

/** Faults that page number `i` is shown with: one of them, all by night. */
function faultsFor(i: number): readonly Exclude<Fault, 'held'>[] {
  const all = FAULTS.filter((fault) => fault !== 'held');
  return IS_WHOLE ? all : all.filter((_, at) => at === i % all.length);
}

async function signInAgain(page: Page, token: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Actor token' }).fill(token);
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click();
}
