import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { adminAsks } from '../service/operations/admin-listener.js';
import { TABLES } from '../service/operations/store.js';
import { asked } from '../service/operations/support.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import { connectPg } from '../support/pg-client.js';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { adminServer, enter, HOSTILE, tokenOf } from './support/served.js';

/** The screens of admins, in a real browser over `osl serve --console admin`. */

t.setTimeout(180_000);

const postgres = SKIP === false ? await startNativePostgres() : null;
if (SKIP !== false || postgres === null) {
  t.test('the screens of admins', { skip: SKIP === false ? NO_NATIVE : SKIP }, async () => undefined);
} else {
  t.teardown(() => postgres.stop());
  const owner = new pg.Client(postgres.url);
  await owner.connect();
  await owner.query(TABLES);
  await owner.end();
  const { server, place, origin } = await adminServer(t, postgres.readerUrl);
  const browser = await startBrowser(t);
  const admin = () => tokenOf(place, ['user:admin'], ['TENANT_ADMIN'], ['analyst', 'auditor']);
  const open = async (screen: string, over: Parameters<typeof Visit.start>[2] = {}): Promise<Visit> => {
    const visit = await Visit.start(browser, origin, over);
    await enter(visit, origin, await admin(), screen);
    return visit;
  };
  const ask = async (path: string, token: string, body: unknown = null) =>
    asked(server, path, body, { authorization: `Bearer ${token}` });

  await t.test(
    'the listener of REST has these routes for admins, and those that stop the server not',
    async (t) => {
      const token = await admin();
      t.equal((await ask('/admin/matrix', token)).status, 200);
      for (const path of ['/admin/shutdown', '/admin/drain', '/admin/reload', '/admin/resume'])
        t.equal((await ask(path, await admin(), {})).status, 404, path);
      const analyst = await tokenOf(place, ['user:analyst']);
      const agent = await tokenOf(place, ['user:admin', 'agent:helper'], ['TENANT_ADMIN']);
      for (const path of ['/admin/matrix', '/admin/sessions', '/admin/audit/records', '/admin/figures'])
        for (const who of [analyst, agent])
          t.match(await ask(path, who), { status: 403, body: /E2101/ }, `${path} of who is no admin`);
      t.match(await ask('/admin/sessions/1/end', agent, {}), { status: 403, body: /E2101/ });
      const used = await admin();
      t.match(await ask('/admin/sessions/1/end', used, {}), { status: 404, body: /E4040/ }, 'there is none');
      t.match(await ask('/admin/sessions/1/end', used, {}), { status: 401, body: /E3001/ }, 'a used token');
      const { body } = await asked(server, '/openapi.json');
      t.notMatch(body, /"\/admin/, 'the document that anybody may read is silent of it');
      const denied = await asked(server, '/admin/matrix', null, { origin: 'https://evil.example' });
      t.equal(denied.headers['access-control-allow-origin'], undefined, 'no page of another origin reads it');
    },
  );

  await t.test('who is no admin is not shown the screens, and hears nothing there', async (t) => {
    const visit = await Visit.start(browser, origin);
    await enter(visit, origin, await tokenOf(place, ['user:analyst']), 'policy');
    await visit.page.getByRole('heading', { name: 'Policy is not here' }).waitFor();
    t.equal(await visit.page.getByRole('link', { name: 'Audit' }).count(), 0);
    visit.clean(t);
    await visit.close();
  });

  await t.test('task: find who sees a column, and why a cell is masked', async (t) => {
    const visit = await open('policy');
    const { page } = visit;
    await page.getByRole('grid', { name: 'Who sees what' }).waitFor();
    await accessible(t, page, 'the matrix');
    await page.getByLabel('Column', { exact: true }).fill('account.name');
    await page.getByText('1 columns, 4 subjects').waitFor();
    t.equal(visit.clicks(), 0, 'who sees a column: no click, by typing its name');
    const row = page.getByRole('row', { name: /account\.name/ });
    const some = 'masked some rows';
    t.strictSame(await cells(row), [some, 'clear', some, 'nothing']);
    await row.getByRole('gridcell').nth(2).click();
    const why = page.getByRole('complementary', { name: 'Why' });
    await why.getByText('roles.analyst.grants[0]', { exact: true }).waitFor();
    t.match(await why.textContent(), /label pii, masked by redact/);
    t.ok((await why.textContent())?.includes(HOSTILE), 'a filter of the policy is shown as text');
    await accessible(t, page, 'an explanation');
    await page.getByLabel('Primary key of a row').fill('2');
    await visit.click('button', 'Check access');
    await why.getByText(/is seen, by roles\.analyst\.grants\[0\]/).waitFor();
    const opened = why.getByRole('table', { name: 'Cells of the row' });
    t.match(
      await opened.textContent(),
      /id.*clear.*analyst\.grants\[0\].*name.*masked.*analyst\.grants\[0\]/,
    );
    await accessible(t, page, 'the cells of a row');
    t.equal(visit.clicks(), 1, 'explain a masked cell: one click in the matrix, one for a row of it');
    await page.getByLabel('Acting for somebody').fill('user:admin > agent:helper');
    await page.getByRole('columnheader', { name: 'user:admin → agent:helper' }).waitFor();
    await page.getByLabel('Who sees it').selectOption('clear');
    await page.getByRole('columnheader', { name: 'user:analyst' }).waitFor({ state: 'detached' });
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('the matrix by keyboard', async (t) => {
    const visit = await open('policy');
    const { page } = visit;
    const grid = page.getByRole('grid', { name: 'Who sees what' });
    await grid.waitFor();
    await grid.focus();
    for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'End', 'Home', 'ArrowRight', 'Enter'])
      await page.keyboard.press(key);
    await page.getByRole('complementary', { name: 'Why' }).getByText('user:admin').waitFor();
    visit.clean(t);
    await visit.close();
  });

  await t.test('task: who gains by a draft; tests of the policy; requests for access', async (t) => {
    const fragment = `entities:
  account:
    source: db.shop.account
    primary_key: [id]
    columns: { id: { column: id }, name: { column: name }, label: { column: name } } # ${HOSTILE}
`;
    const kept = await ask('/osl/objects', await admin(), { fragment, state: 'draft' });
    t.equal(kept.status, 200, kept.body);
    const analyst = await tokenOf(place, ['user:analyst']);
    await ask('/osl/access-requests', analyst, { object: 'osl.entities.account.name', reason: HOSTILE });
    const visit = await open('policy');
    const { page } = visit;
    await visit.click('tab', 'Drafts');
    await visit.click('button', /^Draft /);
    await page.getByRole('heading', { name: 'Access gained and lost' }).waitFor();
    t.equal(visit.clicks(), 2, 'see who gains by a draft: two clicks');
    t.match(await page.getByRole('article').textContent(), /auditor.*gainsosl\.entities\.account\.label/s);
    await page.getByText('Draft source').click();
    await accessible(t, page, 'a draft');
    await visit.click('tab', 'Tests');
    await visit.click('button', 'Run the tests');
    await page.getByText('1 failed', { exact: true }).waitFor({ timeout: 60_000 });
    t.match(await page.getByRole('list', { name: 'Tests' }).textContent(), /<img src=x onerror=/);
    const claims = page.getByRole('list', { name: 'Claims' });
    t.match(await claims.textContent(), /proved: analysts see no label <img.*refuted: auditors.*row of big/s);
    await accessible(t, page, 'tests');
    await page.getByRole('link', { name: 'Requests' }).click();
    const requests = page.getByRole('list', { name: 'Requests' });
    await requests.getByText('- { on: account, columns: [name], unmask: [pii] }').waitFor();
    t.notOk((await page.content()).includes('onerror=&quot;hacked'), 'the reason is not in the log');
    await accessible(t, page, 'requests for access');
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('a shadow policy: whether there is one, and what it would change', async (t) => {
    const visit = await open('policy');
    const { page } = visit;
    await visit.click('tab', 'Shadow');
    await page.getByRole('heading', { name: 'No shadow policy' }).waitFor();
    await accessible(t, page, 'no shadow policy');
    const policy = (await readFile(place.policy, 'utf8')).replace(
      'columns: [id, name], rows',
      'columns: [id], rows',
    );
    const started = await adminAsks(server, 'POST', '/admin/policy/shadow/start', await admin(), { policy });
    t.equal(started.status, 200);
    const analyst = await tokenOf(place, ['user:analyst']);
    await ask('/osl/query', analyst, {
      osql: `select name as "${HOSTILE.replaceAll('"', '')}" from osl.entities.account where id = 4711`,
    });
    await visit.click('tab', 'Tests');
    await visit.click('tab', 'Shadow');
    const differences = page.getByRole('list', { name: 'Differences' });
    await differences.getByText('1 refused: E0512').waitFor({ timeout: 15_000 });
    t.match(
      await differences.textContent(),
      /user:analyst on osl\.entities\.account.*select name as _1 from/,
    );
    t.notMatch(await page.content(), /4711/);
    await accessible(t, page, 'the report of a shadow policy');
    const problem = {
      code: 'E5037',
      title: 'x',
      status: 503,
      detail: 'the log',
      hint: null,
      request_id: '1',
    };
    await page.route('**/admin/policy/shadow', (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify(problem) }),
    );
    await page.getByRole('button', { name: 'Try again' }).waitFor({ timeout: 15_000 });
    await page.unroute('**/admin/policy/shadow');
    await visit.click('button', 'Try again');
    await differences.waitFor();
    t.equal((await adminAsks(server, 'POST', '/admin/policy/shadow/stop', await admin(), {})).status, 200);
    await harmless(t, page);
    await visit.close();
  });

  await t.test('task: verify the log, and check a record’s proof here', async (t) => {
    const analyst = await tokenOf(place, ['user:analyst']);
    const { headers } = await ask('/osl/query', analyst, { osql: 'select id from osl.entities.account' });
    const id = String(headers['x-request-id']);
    const visit = await open('audit');
    const { page } = visit;
    const records = page.getByRole('grid', { name: 'Records' });
    await records.waitFor();
    await accessible(t, page, 'records');
    await page.setViewportSize({ width: 1440, height: 900 });
    // A text: what runs in the page is none of this program's.
    const clipped = await page.evaluate(`['cancelled E0516', 'incomplete E0517'].map((text, i) => {
      const badge = document.querySelectorAll('.records .badge')[i];
      badge.textContent = text;
      return badge.parentElement.scrollWidth > badge.parentElement.clientWidth;
    })`);
    t.strictSame(clipped, [false, false], 'the longest results are whole at 1440 px');
    await page.getByLabel('Subject', { exact: true }).fill('user:analyst');
    await page.getByLabel('Object', { exact: true }).fill('account');
    await records.getByRole('row', { name: /query/ }).first().waitFor();
    await page.getByLabel('Request', { exact: true }).fill(id);
    // Outcomes are shown of a request that is named alone.
    await records.getByRole('row', { name: / ok$/ }).waitFor();
    await records.getByRole('row').nth(1).click();
    const story = page.getByRole('complementary', { name: 'One request' });
    await story.getByText(/query \(structured\) over rest, about account: allowed/).waitFor();
    await story.getByText(/succeeded, 2 rows returned/).waitFor();
    await until(async () => {
      await page.getByRole('button', { name: 'Prove and check' }).click();
      await page.waitForTimeout(300);
      return (await story.getByText(/^Proved: /).count()) === 2;
    });
    await accessible(t, page, 'a proof');
    const saving = page.waitForEvent('download');
    await visit.click('button', 'Save the proof');
    const file = join(dirname(place.policy), 'proof.txt');
    await (await saving).saveAs(file);
    t.equal(visit.clicks(), 1, 'check a record’s proof: the record, prove, save');

    await visit.click('tab', 'Verify');
    await visit.click('button', 'Verify the log');
    await page.getByText('Every chain holds.').waitFor({ timeout: 60_000 });
    t.equal(visit.clicks(), 2, 'verify the log: two clicks');
    await accessible(t, page, 'a verified log');

    await visit.click('tab', 'Check a proof');
    const key = await readFile(join(place.dataDir, 'audit', 'checkpoint.vkey'), 'utf8');
    await page.getByLabel(/The key/).fill(key);
    await page.getByLabel(/Choose a proof/).setInputFiles(file);
    await page
      .getByText(/^Proved: /)
      .nth(1)
      .waitFor();
    const text = await readFile(file, 'utf8');
    const at = text.indexOf('extra ') + 30;
    const flipped = join(dirname(place.policy), 'flipped.txt');
    writeFileSync(flipped, `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`);
    await page.getByLabel(/Choose a proof/).setInputFiles(flipped);
    await page.getByText('Not proved').waitFor();
    await page.getByText(/not what was signed/).waitFor();
    const hostile = join(dirname(place.policy), 'hostile.txt');
    writeFileSync(hostile, HOSTILE);
    await page.getByLabel(/Choose a proof/).setInputFiles(hostile);
    await page.getByText(/a proof begins with/).waitFor();
    await accessible(t, page, 'a proof that is none');
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('records of hostile words are text', async (t) => {
    const visit = await open('audit');
    const { page } = visit;
    await page.getByLabel('Action', { exact: true }).fill(HOSTILE);
    await page.getByRole('heading', { name: 'No record matches' }).waitFor();
    await page.getByLabel('Action', { exact: true }).fill('audit.read');
    await page.getByRole('combobox', { name: 'Records' }).selectOption('event');
    const records = page.getByRole('grid', { name: 'Records' });
    await records.getByRole('row').nth(3).click();
    const story = page.getByRole('complementary', { name: 'One request' });
    await story.getByText('Details').first().waitFor();
    for (const particulars of await story.getByText('Details').all()) await particulars.click();
    await until(async () => {
      const rows = await records.getByRole('row').count();
      for (let i = 1; i < Math.min(rows, 6); i += 1) {
        await records.getByRole('row').nth(i).click();
        await story.getByText('Details').first().waitFor();
        for (const particulars of await story.getByText('Details').all()) await particulars.click();
        if ((await story.textContent())?.includes('onerror=') === true) return true;
      }
      return false;
    });
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('task: end a session', async (t) => {
    const client = await connectPg({
      port: server.record().pgPort,
      user: 'user:analyst',
      password: await tokenOf(place, ['user:analyst']),
      application_name: HOSTILE.slice(0, 60),
    });
    client.on('error', () => undefined);
    await client.query('select id from osl.entities.account');
    const ended = new Promise((resolve) => client.once('end', resolve));
    const visit = await open('operations');
    const { page } = visit;
    const row = page.getByRole('row', { name: /user:analyst/ });
    await row.waitFor();
    t.ok((await row.textContent())?.includes('<img src=x'), 'what the client calls itself is text');
    await accessible(t, page, 'sessions');
    await visit.click('button', 'End');
    await page.getByRole('heading', { name: 'End the session?' }).waitFor();
    await accessible(t, page, 'a confirmation');
    await visit.click('button', 'End the session');
    await ended;
    await row.waitFor({ state: 'detached' });
    t.equal(visit.clicks(), 2, 'end a session: two clicks');
    for (const [tab, words] of [
      ['Latency', 'p50'],
      ['Pools', 'questions'],
      ['Limits', 'limits.subject[0]: rows per hour, each subject'],
      ['Freshness', 'nothing: the manifest file alone'],
      ['Lineage', 'No lineage receivers configured'],
    ] as const) {
      await visit.click('tab', tab);
      await page.getByText(words).first().waitFor();
      await accessible(t, page, tab);
    }
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('the pools of a connector and of its standby are told apart', async (t) => {
    const visit = await open('operations');
    const { page } = visit;
    const pool = {
      ...{ process: 'server', connector: 'shop', purpose: 'questions' },
      size: 4,
      open: 1,
      waiting: 0,
    };
    const pools = [null, 'eu-1'].map((standby) => ({ ...pool, standby, running: 1, reach: 'open' }));
    await page.route('**/admin/pools', (route) => route.fulfill({ json: { request_id: 'r', pools } }));
    await visit.click('tab', 'Pools');
    await until(async () => (await page.getByRole('rowheader', { name: /^shop/ }).count()) === 2);
    t.strictSame(await page.getByRole('rowheader', { name: /^shop/ }).allTextContents(), [
      'shop',
      'shop/eu-1',
    ]);
    await visit.close();
  });

  await t.test('a page of requests that cannot be loaded says so, whatever else failed before', async (t) => {
    const visit = await open('requests', { expects: /Failed to load resource/ });
    const { page } = visit;
    await page.route('**/admin/access-requests*', (route) =>
      route.fulfill({ json: { request_id: 'r', requests: [], next: 'older' } }),
    );
    await page.reload();
    await page.getByRole('button', { name: 'Older access requests' }).waitFor();
    await page.route('**/{osl,admin}/**', (route) => route.abort());
    await page.waitForRequest('**/osl/approvals', { timeout: 30_000 });
    await page.waitForTimeout(500);
    await visit.click('button', 'Older access requests');
    await page.getByText('The gateway cannot be reached.').waitFor();
    t.pass('it is told');
    await visit.close();
  });

  await t.test('task: see what was slow, and when', async (t) => {
    const token = await tokenOf(place, ['user:analyst']);
    const secret = `select name from osl.entities.account where name <> '${HOSTILE}' and id = 4711`;
    t.equal((await ask('/osl/query', token, { osql: secret })).status, 200);
    t.equal((await ask('/osl/query', token, { osql: 'select id from osl.entities.nothing' })).status, 400);
    const visit = await open('operations');
    const { page } = visit;
    const chart = page.getByRole('slider', { name: 'Questions per second: time' });
    await chart.waitFor();
    await accessible(t, page, 'charts over time');
    // The step of the question is over within 10 s, and the page asks every 5 s.
    await until(async () => {
      await chart.press('End');
      for (let i = 0; i < 6 && !/questions [\d.]*[1-9]/.test(await textOf(chart)); i += 1)
        await chart.press('ArrowLeft');
      return /^\d\d:\d\d:\d\d: questions [\d.]*[1-9]/.test(await textOf(chart));
    });
    const time = page.getByRole('figure', { name: 'Time of a question' });
    t.match(await time.textContent(), /half within \(p50\) [\d.]+ m?s/, 'all charts show that moment');
    await chart.press('Enter');
    const chosen = page.getByRole('region', { name: 'Statements of the chosen time' });
    const shape = 'select name from osl.entities.account where name <> ? and id = ?';
    await chosen.getByText(shape).first().waitFor();
    t.equal(visit.clicks(), 0, 'by keyboard alone');
    t.notMatch(await chosen.textContent(), /4711|onerror/);
    await accessible(t, page, 'the statements of a minute');
    for (const [way, words] of [
      ['By surface', /^REST$/],
      ['By connector', /^db \(\d+ sessions\)$/],
    ] as const) {
      await visit.click('button', way);
      await page.getByRole('figure').getByText(words).first().waitFor();
    }
    await page.getByRole('figure', { name: 'Errors per minute' }).getByText('Table').click();
    await page
      .getByRole('region', { name: 'Errors per minute, as a table' })
      .getByText('no connector')
      .waitFor();
    await accessible(t, page, 'a chart as a table');
    await visit.click('button', 'Last day');
    await page
      .getByText(/Click a chart|Slowest/)
      .first()
      .waitFor();
    await harmless(t, page);
    visit.clean(t);
    await visit.close();
  });

  await t.test('an invalid policy is told of, with file and line, until it is mended', async (t) => {
    const visit = await open('operations');
    const { page } = visit;
    const good = await readFile(place.policy, 'utf8');
    writeFileSync(place.policy, good.replace('roles:\n', 'rolls:\n'));
    server.hangUp();
    const alert = page.getByRole('alert').filter({ hasText: 'The newest policy is missing or invalid' });
    await alert.waitFor();
    t.match(
      await alert.textContent(),
      /policy\.yaml:\d+:\d+: .*The last valid policy stays in force for \d+ min more/,
    );
    await accessible(t, page, 'a warning of the policy');
    writeFileSync(place.policy, good);
    server.hangUp();
    await alert.waitFor({ state: 'detached' });
    visit.clean(t);
    await visit.close();
  });

  await t.test('a second change with a token that was used is told, and nothing is lost', async (t) => {
    const visit = await open('operations', { expects: /401|404/ });
    const { page } = visit;
    const clients = await Promise.all(
      [1, 2].map(async () => {
        const client = await connectPg({
          port: server.record().pgPort,
          user: 'user:analyst',
          password: await tokenOf(place, ['user:analyst']),
        });
        client.on('error', () => undefined);
        return client;
      }),
    );
    const rows = page.getByRole('row', { name: /user:analyst/ });
    await until(async () => (await rows.count()) === 2);
    await visit.click('button', 'End');
    await visit.click('button', 'End the session');
    await until(async () => (await rows.count()) === 1);
    await visit.click('button', 'End');
    await visit.click('button', 'End the session');
    await page
      .getByText(/sign in again/i)
      .first()
      .waitFor();
    t.equal(await rows.count(), 1, 'the other session goes on');
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
    await visit.close();
  });

  await t.test('a tab that is hidden asks nothing; narrow and dark', async (t) => {
    const visit = await open('operations', { width: 400, height: 760, dark: true });
    const { page } = visit;
    await page.getByRole('tab', { name: 'Sessions' }).waitFor();
    await accessible(t, page, 'operations at 400 px in the dark');
    t.equal(await overflow(page), false, 'nothing beyond the width of the page');
    let asks = 0;
    page.on('request', () => {
      asks += 1;
    });
    await page.evaluate(
      "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    await page.waitForLoadState('networkidle');
    asks = 0;
    await page.waitForTimeout(6_500);
    t.equal(asks, 0, 'longer than two looks are apart');
    await page.evaluate(
      "Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    await until(async () => asks > 0);
    for (const screen of ['policy', 'audit']) {
      await page.goto(`${origin}/console/#/${screen}`);
      await page.getByRole('grid').first().waitFor();
      await accessible(t, page, `${screen} at 400 px in the dark`);
      t.equal(await overflow(page), false, screen);
    }
    visit.clean(t);
    await visit.close();
  });
}

async function cells(row: ReturnType<Page['getByRole']>): Promise<readonly string[]> {
  const texts = await row.getByRole('gridcell').allTextContents();
  return texts.map((text) => text.replace(/[^a-z ]/g, '').trim());
}

/** Nothing that was shown became code or markup. */
async function harmless(t: Test, page: Page): Promise<void> {
  t.equal(await page.evaluate('typeof hacked'), 'undefined');
  t.equal(await page.locator('img[src="x"]').count(), 0);
}

function overflow(page: Page): Promise<unknown> {
  return page.evaluate('document.documentElement.scrollWidth > innerWidth');
}

async function until(is: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await is())) {
    if (Date.now() > end) throw new Error('it did not come');
    await sleep(50);
  }
}

async function textOf(slider: Locator): Promise<string> {
  return (await slider.getAttribute('aria-valuetext')) ?? '';
}
