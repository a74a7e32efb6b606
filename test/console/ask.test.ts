import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import type { Page } from 'playwright-core';
import { test } from 'tap';
import { accessible, ask, EDITOR, SKIP, startBrowser, Visit, write } from './support/browser.js';
import { startGateway } from './support/gateway.js';

function written(page: Page): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: lines are elements, which it parts.
  return page.getByRole('textbox', { name: EDITOR }).innerText();
}

/** Parquet's times as they are stored: the reader's own parsers round them to milliseconds. */
const EXACT = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (value: number) => value,
};

async function enter(page: Page, origin: string, who: RegExp, hash = ''): Promise<void> {
  await page.goto(`${origin}/console/${hash}`);
  await page.getByRole('button', { name: who }).click();
  await page.getByRole('textbox', { name: EDITOR }).waitFor();
}

test('Ask, task by task', { skip: SKIP }, async (t) => {
  const { rest, origin } = await startGateway(t);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /status of 400/ });
  const { page } = visit;
  await enter(page, origin, /^user:ann/);

  await t.test('the first view is small, and it is well for everybody', async (t) => {
    await page.getByText('Query your data').waitFor();
    const loaded = (await page.evaluate(
      "performance.getEntriesByType('resource').map((e) => e.name).filter((n) => n.includes('/console/assets/'))",
    )) as readonly string[];
    t.ok(loaded.length >= 4, `${loaded.length} files`);
    const bytes = loaded.map((url) => gzipSync(readFileSync(`dist${new URL(url).pathname}`)).length);
    const total = bytes.reduce((sum, n) => sum + n, 0);
    t.comment(`${Math.round(total / 1024)} kB gzipped at first view`);
    t.ok(total < 250_000, `${total} bytes, gzipped`);
    t.notOk(
      loaded.some((url) => /echarts|oidc|parquet/.test(url)),
      'charts, Parquet and sign-in by a provider come when asked for',
    );
    await accessible(t, page, 'before a question', 'every');
    visit.clean(t);
  });

  await t.test('completion knows the caller’s own schema', async (t) => {
    await write(page, 'select c. from osl.entities.customer c');
    await page.keyboard.press('Home');
    for (let i = 0; i < 'select c.'.length; i += 1) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Control+Space');
    await page.getByRole('option', { name: /^email.*masked/ }).waitFor();
    await page.getByRole('option', { name: /^name/ }).click();
    t.match(await written(page), /select c\.name from/);
    visit.clean(t);
  });

  await t.test('the list beside the editor: searched, opened by keys, and names inserted', async (t) => {
    await write(page, 'select ');
    const search = page.getByRole('searchbox', { name: 'Search the schema' });
    await search.fill('email');
    await page.getByRole('treeitem', { name: /^email text masked$/ }).click();
    t.equal(await written(page), 'select email');
    await search.fill('revenue');
    await page.getByRole('treeitem', { name: /metric numeric/ }).click();
    t.equal(await written(page), 'select email, measure(revenue)');
    await search.fill('customer');
    await page.keyboard.press('Tab');
    for (const key of ['Home', 'ArrowRight', 'ArrowDown', 'ArrowDown', 'Enter'])
      await page.keyboard.press(key);
    t.equal(await written(page), 'select email, measure(revenue), name', 'by keys alone');
    t.equal(
      await page.getByRole('treeitem', { name: 'customer', exact: true }).getAttribute('aria-expanded'),
      'true',
    );
    await accessible(t, page, 'the list', 'every');
    await search.fill('nothing of that name');
    await page.getByText('Nothing with these words.').waitFor();
    await search.fill('');
    await visit.click('button', 'Schema');
    t.equal(await search.count(), 0, 'it can be closed');
    await visit.click('button', 'Schema');
    visit.clean(t);
  });

  await t.test('a masked cell is explained, in two clicks from the answer', async (t) => {
    await ask(
      page,
      'select id, name, email, note from osl.entities.customer c left join osl.entities."order" o on o.customer_id = c.id order by id limit 5'
        .replace('id, name', 'c.id, c.name')
        .replace('order by id', 'order by c.id'),
    );
    await page
      .getByRole('gridcell', { name: /masked/ })
      .first()
      .waitFor();
    t.ok((await page.getByRole('columnheader', { name: /email/ }).count()) === 1);
    visit.clicks();
    await visit.click('gridcell', /masked/);
    const panel = page.getByRole('complementary', { name: 'Why is this masked?' });
    await panel.getByText(/it is sensitive/).waitFor();
    t.equal(visit.clicks(), 1);
    t.match(await panel.textContent(), /osl\.entities\.customer\.email/);
    await accessible(t, page, 'an answer and why', 'every');
    await panel.getByRole('textbox').fill('to write to customers');
    await visit.click('button', 'Request access');
    await panel.getByText(/On record/).waitFor();
    const asked = (await rest.test.records()).filter((r) => r.action === 'request_access');
    t.match(asked[0], { kind: 'decision', subject: 'user:ann', decision: 'allow' });
    visit.clean(t);
  });

  await t.test('a figure by month becomes a chart, in one click, and a file', async (t) => {
    await ask(
      page,
      'select date_trunc(\'month\', placed_at) as month, sum(amount) as amount from osl.entities."order" group by 1 order by 1',
    );
    await page.getByText(/rows? in/).waitFor();
    visit.clicks();
    await visit.click('tab', 'Chart');
    t.equal(visit.clicks(), 1);
    await page.getByRole('img', { name: /^Line chart of amount by month/ }).waitFor();
    for (const [name, file, begins] of [
      ['Save PNG', 'answer.png', '\u0089PNG'],
      ['Save SVG', 'answer.svg', '<svg'],
    ] as const) {
      const saved = page.waitForEvent('download');
      await visit.click('button', name);
      const download = await saved;
      t.equal(download.suggestedFilename(), file);
      t.ok(
        readFileSync(await download.path())
          .toString('latin1')
          .startsWith(begins),
        `${file} begins as one does`,
      );
    }
    await accessible(t, page, 'a chart', 'every');
    await ask(page, 'select region, count(*) as n from osl.entities.customer group by region');
    await page.getByRole('img', { name: /^Bar chart of n by region/ }).waitFor();
    visit.clean(t);
  });

  await t.test('an error is seen where it is, and its fix is taken in one click', async (t) => {
    await ask(page, 'select nam from osl.entities.customer');
    const alert = page.getByRole('alert');
    await alert.getByText('E0512').waitFor();
    t.match(
      await alert.textContent(),
      /column nam is not declared[\s\S]*\^\^\^[\s\S]*perhaps you meant name/,
    );
    await accessible(t, page, 'an error', 'every');
    visit.clicks();
    await visit.click('button', 'Use name');
    t.equal(visit.clicks(), 1);
    t.match(await written(page), /select name from/);
    await page.keyboard.press('Control+Enter');
    await page.getByText(/rows in/).waitFor();
    visit.clean(t);
  });

  await t.test('the plan says what is read, masked, and by which grants', async (t) => {
    await write(page, 'select name, email from osl.entities.customer');
    await visit.click('button', 'Explain');
    await page.getByRole('heading', { name: 'Grants used' }).waitFor();
    t.match(
      await page.getByRole('region', { name: 'Answer' }).textContent(),
      /scan osl\.entities\.customer[\s\S]*email masked[\s\S]*Grants usedg\w+/,
    );
    await accessible(t, page, 'a plan', 'every');
    visit.clean(t);
  });

  await t.test('an answer has a receipt, and whoever is shown it checks it in the browser', async (t) => {
    await ask(page, 'select id, email from osl.entities.customer order by id limit 3');
    await page.getByText(/3 rows in/).waitFor();
    visit.clicks();
    await visit.click('button', 'Receipt');
    t.equal(visit.clicks(), 1);
    const dialog = page.getByRole('dialog', { name: 'Receipt' });
    const receipt = await dialog.getByRole('textbox', { name: 'Receipt' }).inputValue();
    t.match(await dialog.getByRole('textbox', { name: 'Salt' }).inputValue(), /^[\w-]{22}$/);
    await accessible(t, page, 'a receipt', 'every');
    const saving = page.waitForEvent('download');
    await visit.click('button', 'Save as a file');
    t.equal(readFileSync(await (await saving).path(), 'utf8'), receipt);
    await page.keyboard.press('Escape');

    await page.getByRole('link', { name: 'Receipts' }).click();
    const key = readFileSync(join(rest.test.auditDir, 'checkpoint.vkey'), 'utf8');
    await page.getByLabel(/The key/).fill(key);
    const pasted = page.getByRole('textbox', { name: 'Or paste a receipt' });
    await pasted.fill(receipt);
    await page.getByText(/^Proved: the outcome/).waitFor();
    t.strictSame(await page.locator('.proof dd').allTextContents(), [
      'user:ann',
      ...(await rest.test.records()).slice(-1).map(({ ts }) => ts),
      'osl.entities.customer',
      '3',
      'customer.email',
    ]);
    await accessible(t, page, 'a receipt that holds', 'every');
    const at = receipt.indexOf('extra ') + 30;
    await pasted.fill(`${receipt.slice(0, at)}${receipt[at] === 'A' ? 'B' : 'A'}${receipt.slice(at + 1)}`);
    await page.getByText('Not proved').waitFor();
    await page.evaluate(
      'const { subtle } = crypto, verify = subtle.verify.bind(subtle); subtle.verify = (...of) => new Promise((end) => setTimeout(() => end(verify(...of)), 1000))',
    );
    await pasted.fill(receipt);
    await pasted.fill('something else');
    await page.getByText(/a proof begins with/).waitFor();
    await page.waitForTimeout(2_000);
    t.equal(await page.getByText(/^Proved/).count(), 0, 'no verdict on what is no longer there');
    await page.getByRole('link', { name: 'Ask' }).click();
    await page.getByRole('textbox', { name: EDITOR }).waitFor();
    visit.clean(t);
  });

  await t.test('a question is saved, and shared by a link that asks nothing by itself', async (t) => {
    await write(page, 'select count(*) from osl.entities.customer');
    visit.clicks();
    await visit.click('button', 'Save');
    await page.getByRole('textbox', { name: 'Name' }).fill('how many customers');
    await visit.click('button', 'Save question');
    await visit.click('button', 'Share');
    const link = await page.getByRole('textbox', { name: 'Link' }).inputValue();
    t.equal(visit.clicks(), 3, 'three clicks');
    await accessible(t, page, 'a dialogue', 'every');
    await page.keyboard.press('Escape');
    t.match(link, /\/console\/#\/ask\?q=select/);

    const before = (await rest.test.records()).filter((r) => r.action === 'query').length;
    const other = await Visit.start(browser, origin);
    await enter(other.page, link.replace(/\/console.*/, ''), /^user:ada/, link.replace(/.*\/console\//, ''));
    t.equal(await written(other.page), 'select count(*) from osl.entities.customer');
    await other.page.getByText('Query your data').waitFor();
    const after = (await rest.test.records()).filter((r) => r.action === 'query').length;
    t.equal(after, before, 'nothing was asked');
    await other.click('button', 'Run');
    await other.page.getByText(/1 row in/).waitFor();
    const asked = (await rest.test.records()).findLast((r) => r.action === 'query' && r.kind === 'decision');
    t.equal(asked?.subject, 'user:ada', 'who opened it asks');
    other.clean(t);
    await other.close();

    await visit.click('button', 'History');
    await visit.click('tab', /Saved/);
    await visit.click('button', /how many customers/);
    t.equal(await written(page), 'select count(*) from osl.entities.customer');
    visit.clean(t);
  });

  await t.test('the keyboard leaves the editor by Escape and Tab, and reaches the answer', async (t) => {
    await ask(page, 'select id, name from osl.entities.customer order by id');
    await page.getByText(/rows in/).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Run');
    await page.getByRole('grid').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    t.match(
      await page.evaluate("document.querySelector('[role=grid]').getAttribute('aria-activedescendant')"),
      /-1-1$/,
    );
    visit.clean(t);
  });

  await t.test('an answer is sorted by a click, and downloaded with its exact values', async (t) => {
    const shown = () => page.getByRole('row').getByRole('gridcell').allTextContents();
    await ask(
      page,
      `select t.n, t.x from (select 1 as n, '10000000000000000000000000000000000000002'::numeric as x
       union all select 2, null union all select 3, '10000000000000000000000000000000000000001'::numeric
       union all select 4, '-0.5'::numeric) t order by t.n`,
    );
    await page.getByText(/4 rows in/).waitFor();
    const head = page.getByRole('columnheader', { name: /^x/ });
    t.equal(await head.getAttribute('aria-sort'), 'none');
    await page.getByRole('button', { name: 'x', exact: true }).focus();
    for (const [direction, order] of [
      ['ascending', ['4', '3', '1', '2']],
      ['descending', ['1', '3', '4', '2']],
      ['none', ['1', '2', '3', '4']],
    ] as const) {
      await page.keyboard.press('Enter');
      await page
        .locator(`[role=columnheader][aria-sort=${direction}]`)
        .nth(direction === 'none' ? 1 : 0)
        .waitFor();
      t.strictSame(
        (await shown()).filter((_, i) => i % 2 === 0),
        order,
        direction,
      );
    }
    const saved = async (format: string) => {
      const saving = page.waitForEvent('download');
      await page.getByRole('dialog').getByRole('button', { name: format }).click();
      const download = await saving;
      return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
    };
    const texts = `select e'=1+1 "a",\n' as a, '' as b, null::text as "c,d", 9007199254740993 as n`;
    await ask(page, texts);
    await page.getByText(/1 row in/).waitFor();
    await visit.click('button', 'Download');
    await accessible(t, page, 'the formats', 'every');
    const csv = await saved('CSV');
    t.equal(csv.name, 'answer.csv');
    t.equal(csv.bytes.toString(), 'a,b,"c,d",n\r\n"=1+1 ""a"",\n","",,9007199254740993\r\n');
    await page.keyboard.press('Escape');

    const columns =
      'id, flag, small, big, real4, real8, exact, words, token, day, clock, local, moment, span, bytes, numbers, texts';
    const typed = `select ${columns} from osl.entities.sample where id <> 2 order by id`;
    await ask(page, typed);
    await page.getByText(/2 rows in/).waitFor();
    await page.getByRole('button', { name: 'id', exact: true }).dblclick();
    await page.locator('[aria-sort=descending]').waitFor();
    await visit.click('button', 'Download');
    await page.getByText('2 rows, sorted as shown', { exact: false }).waitFor();
    const { rows, columns: described, ...members } = JSON.parse((await saved('JSON')).bytes.toString());
    const direct = await fetch(`${origin}/osl/query`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await rest.test.token('user:ann')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ osql: typed.replace(/by id$/, 'by id desc') }),
    });
    const answer = (await direct.json()) as { readonly rows: unknown; readonly columns: unknown };
    t.strictSame([rows, described], [answer.rows, answer.columns], 'JSON is what the gateway sends');
    t.match(members, { row_count: 2, truncated: false, redacted_columns: [] });
    t.notOk('receipt' in members);
    const { bytes } = await saved('Parquet');
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const [other, one] = await parquetReadObjects({ file, parsers: EXACT, utf8: false });
    t.strictSame(
      { ...one },
      {
        id: 1,
        flag: true,
        small: -7,
        big: 9007199254740993n,
        real4: 1.5,
        real8: 0.1,
        exact: '12345678901234567890.10',
        words: 'a "b" \\ \n\t\u0001 é 😀',
        token: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        day: 20_484,
        clock: 86_341_500_000n,
        local: 1_769_903_941_500_000n,
        moment: 1_769_903_941_250_000n,
        span: '1 year 2 days 03:04:05',
        bytes: Uint8Array.from([0xde, 0xad, 0xbe, 0xef, 0]),
        numbers: [1, null, 3],
        texts: ['a,b', 'c"d\\', null, 'NULL', ''],
      },
    );
    t.match(other, { id: 3, flag: null, big: null, real4: Number.POSITIVE_INFINITY, texts: null });
    await page.keyboard.press('Escape');

    await ask(page, 'select id, day from osl.entities.sample');
    await page.getByText(/3 rows in/).waitFor();
    await visit.click('button', 'Download');
    await page.getByRole('button', { name: 'Parquet' }).click();
    await page.getByText('Column day contains infinity, which Parquet cannot represent').waitFor();
    await page.keyboard.press('Escape');
    visit.clean(t);
  });

  await t.test('a token that ends keeps what was typed', async (t) => {
    await visit.click('button', 'Sign out');
    const issuedAt = Math.floor(Date.now() / 1_000) - 292;
    await page
      .getByRole('textbox', { name: 'Actor token' })
      .fill(await rest.test.token('user:ann', { issuedAt }));
    await visit.click('button', 'Sign in');
    await ask(page, 'select 41 as answer');
    await page.getByText(/1 row in/).waitFor();
    await page.getByRole('searchbox').fill('mail');
    await write(page, 'select 42 as answer');
    await page.getByText('Your token has expired. What you typed is kept.').waitFor({ timeout: 60_000 });
    t.equal(await written(page), 'select 42 as answer');
    await page.getByRole('gridcell', { name: '41' }).waitFor();
    t.equal(await page.getByRole('searchbox').inputValue(), 'mail', 'nothing typed is lost');
    await accessible(t, page, 'a token that has ended', 'every');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('main').getByText('Your token has expired.', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('The schema could not be loaded').waitFor();
    await page.getByRole('main').getByText('Your token has expired.', { exact: true }).waitFor();
    t.equal(await page.getByText('Looking what you may ask about').count(), 0);
    await accessible(t, page, 'a token that had ended before the page was loaded', 'every');
    await visit.click('button', 'Sign in again');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^user:ann/ })
      .click();
    await page.getByRole('heading', { name: 'Query your data' }).waitFor();
    t.equal(await page.evaluate('document.activeElement.id'), 'main', 'the focus is not lost');
    t.equal(await written(page), 'select 42 as answer');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText(/1 row in/).waitFor();
    visit.clean(t);
  });
  await visit.close();
});

test('what others wrote is text: in rows, names, errors, passages and what is kept', {
  skip: SKIP,
}, async (t) => {
  const EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  const { origin } = await startGateway(t);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin, { expects: /status of 400/ });
  const { page } = visit;
  await enter(page, origin, /^user:ann/);
  const literal = `'${EVIL}'`;
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['a value', `select ${literal} as a, id from osl.entities.customer`, /rows in/],
    ['a column', `select 1 as "${EVIL.replaceAll('"', '""')}"`, /1 row in/],
    [
      'a category of a chart',
      `select region || ${literal} as a, count(*) as n from osl.entities.customer group by 1`,
      /rows in/,
    ],
    [
      'a passage',
      `select ${literal} as text, 1 as score, jsonb_build_object('doc_id', ${literal}, 'start', 0, 'end', 1) as cite`,
      /1 row in/,
    ],
    ['a name in an error', `select "${EVIL.replaceAll('"', '""')}" from osl.entities.customer`, /E0512/],
    ['a text in an error', `select ${literal} 1`, /E0511/],
  ];
  for (const [what, question, told] of cases) {
    await ask(page, question);
    await page.getByText(told).first().waitFor();
    for (const name of ['Chart', 'Passages', 'Table']) {
      const tab = page.getByRole('tab', { name });
      if ((await tab.count()) > 0) await tab.click();
    }
    t.ok((await page.getByText('<img src=x', { exact: false }).count()) > 0, `${what} is shown as it is`);
    t.equal(
      await page.evaluate("document.querySelectorAll('img[src=x], script:not([src])').length"),
      0,
      what,
    );
  }
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill(EVIL.slice(0, 119));
  await page.getByRole('button', { name: 'Save question' }).click();
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByText('<img src=x', { exact: false }).first().waitFor();
  t.equal(await page.evaluate("document.querySelectorAll('img[src=x]').length"), 0, 'a saved name');
  await page.keyboard.press('Escape');
  t.match(await page.title(), /Ask · OSL Gateway/, 'nothing ran');
  t.equal(
    await page.evaluate(
      "(() => { try { document.createElement('div').innerHTML = '<b>x</b>'; return 'taken'; } catch { return 'refused'; } })()",
    ),
    'refused',
    'no string becomes markup in this page at all',
  );
  visit.faults.splice(0); // the last question was a fault on purpose
  await visit.close();
});
