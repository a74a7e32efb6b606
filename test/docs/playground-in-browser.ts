import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ready } from 'osl-compiler';
import type { Browser, Page } from 'playwright-core';
import type { Test } from 'tap';
import { playgroundExamples } from '../../site/build/playground-examples.js';
import { encodeLink } from '../../site/playground/share-link.js';
import { accessible } from '../console/support/browser.js';
import { ROOT } from '../tools/cli/support.js';
import { governedSql } from './playground-model.js';
import { BUILT, type ServedSite } from './site-server.js';

/** Text that would run, load or break something if any part of it became HTML. */
const HOSTILE = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>"'\`</textarea></pre>`;

/** The playground of the built site, used as a visitor would use it. */
export async function playgroundInBrowser(t: Test, site: ServedSite, browser: Browser): Promise<void> {
  await ready();
  const [example] = playgroundExamples(ROOT);
  if (example === undefined) throw new Error('there are no examples');
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  const faults: string[] = [];
  const asked: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  context.on('request', (request) => asked.push(request.url()));
  await page.goto(site.origin, { waitUntil: 'networkidle' });
  const ofCompiler = (path: string): boolean => /worker|\.wasm$/.test(path);
  t.notOk(site.requests.some(ofCompiler), 'other pages do not load the compiler');
  await page.goto(`${site.origin}/playground.html`, { waitUntil: 'networkidle' });
  t.equal(await sqlOf(page), governedSql(example), 'the SQL of the first example is that of the product');
  t.match(await page.locator('.pg-masked').textContent(), /person\.email[\s\S]*roles\.analyst\.grants\[0\]/);
  const sizes = site.requests
    .filter(ofCompiler)
    .map((path) => gzipSync(readFileSync(join(BUILT, path))).length);
  const kilobytes = sizes.reduce((sum, size) => sum + size, 0) / 1_000;
  t.ok(sizes.length === 2 && kilobytes < 750, `the compiler and the parser: ${Math.round(kilobytes)} kB`);
  const [served, sent] = [site.requests.length, asked.length];

  const result = page.locator('.pg-result:not([aria-busy])');
  await page.getByLabel('Question (OSL-SQL)').fill('select id, emial from person');
  await result.getByText('perhaps you meant').waitFor();
  t.match(await result.textContent(), /^Refused, in the questionE0512 column emial/);
  t.equal(await page.locator('.pg-question .t-fault').textContent(), 'emial', 'the place is underlined');

  await page.getByLabel('Question (OSL-SQL)').fill('select email from person');
  await page.getByLabel('Caller').selectOption('user:sue');
  await result.getByText('No masked column is used.').waitFor();
  const question = 'select email from person';
  t.equal(await sqlOf(page), governedSql({ ...example, question, chain: ['user:sue'] }));
  await page.getByRole('button', { name: 'Copy a link' }).click();
  await page.getByText('Copied.').waitFor();
  const link = String(await page.evaluate('navigator.clipboard.readText()'));
  t.match(link, /\/playground\.html#p1=/);

  await page.getByLabel('Policy (YAML)').fill(HOSTILE);
  await page.getByLabel('Question (OSL-SQL)').fill(HOSTILE);
  await result.getByRole('heading', { name: 'Refused, in the policy' }).waitFor();
  await accessible(t, page, 'the playground');
  await page.getByRole('heading', { name: 'What this is' }).scrollIntoViewIfNeeded();
  await page.waitForLoadState('networkidle');
  t.strictSame(site.requests.slice(served), [], 'nothing is asked for after it has loaded');
  t.strictSame(asked.slice(sent), []);

  const hostile = await encodeLink({
    question: `select 1 as "${HOSTILE.replaceAll('"', '')}", name from person where name = '${HOSTILE.replaceAll("'", '')}'`,
    manifest: example.manifest,
    policy: example.policy.replaceAll('user:ana', 'user:<b>ana'),
    chain: [HOSTILE, 'user:<b>ana'],
    roles: [HOSTILE],
  });
  const other = await context.newPage();
  other.on('pageerror', (error) => faults.push(error.message));
  await other.goto(link, { waitUntil: 'networkidle' });
  t.equal(await sqlOf(other), await sqlOf(page, link), 'a link shows the same again');
  t.equal(await other.getByLabel('Question (OSL-SQL)').inputValue(), question);
  t.equal(await other.getByLabel('Caller').inputValue(), 'user:sue');
  await other.goto(`${site.origin}/playground.html${hostile}`);
  await other.locator('.pg-fault').waitFor();
  t.equal(await other.getByLabel('On behalf of').inputValue(), HOSTILE, 'hostile text is shown as text');
  t.equal(await other.evaluate('window.ran'), undefined, 'and none of it runs');
  t.equal(await other.locator('.pg img, .pg script, .pg b').count(), 0);
  t.strictSame(faults, []);
}

/** The last statement that the page shows, once nothing is being compiled; of `link`, if there is one. */
async function sqlOf(page: Page, link?: string): Promise<string | null> {
  if (link !== undefined) {
    await page.goto('about:blank');
    await page.goto(link);
  }
  return page.locator('.pg-result:not([aria-busy]) .pg-sql').last().getAttribute('data-sql');
}
