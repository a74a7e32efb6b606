import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import t, { test } from 'tap';
import { allPages } from '../../site/build/pages.js';
import { sitePath } from '../../site/build/stage.js';
import { accessible, SKIP, startBrowser } from '../console/support/browser.js';
import { ROOT } from '../tools/cli/support.js';
import { playgroundInBrowser } from './playground-in-browser.js';
import { BUILT, buildSite, fileOf, serveSite } from './site-server.js';

/** The site, installed and built as its package says, and then read as a browser would read it. */
t.setTimeout(600_000);

interface Html {
  readonly anchors: ReadonlySet<string>;
  /** Of `a`, `link`, `script` and `img`, with the element's name. */
  readonly links: readonly { readonly element: string; readonly href: string }[];
}

const unescaped = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&');

function readHtml(text: string): Html {
  const anchors = new Set(
    [...text.matchAll(/<[a-z][^>]*? id="([^"]+)"/g)].map(([, id = '']) => unescaped(id)),
  );
  const links = [...text.matchAll(/<(a|link|script|img|source|iframe)\b[^>]*? (?:href|src)="([^"]*)"/g)].map(
    ([, element = '', href = '']) => ({ element, href: unescaped(href) }),
  );
  return { anchors, links };
}

test('the site is built from docs/, and no link on it leads nowhere', (t) => {
  t.equal(buildSite(), null);
  const names = readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  );
  const pages = new Map(names.map((name) => [name, readHtml(readFileSync(join(BUILT, name), 'utf8'))]));

  t.test('links, anchors, pictures, scripts', (t) => {
    const broken: string[] = [];
    let followed = 0;
    for (const [page, { links }] of pages) {
      for (const { element, href } of links) {
        if (/^(https?:|mailto:)/.test(href)) {
          if (element !== 'a') broken.push(`${page}: ${element} asks another server: ${href}`);
          continue;
        }
        if (href.startsWith('data:')) continue;
        followed += 1;
        const [path = '', anchor = ''] = href.split('#');
        const file = path === '' ? page : fileOf(posix.resolve('/', posix.dirname(page), path));
        const target =
          path.endsWith('/') && path !== ''
            ? fileOf(`${posix.resolve('/', posix.dirname(page), path)}/`)
            : file;
        const there = pages.has(target) || existsSync(join(BUILT, target));
        if (!there) broken.push(`${page}: there is no ${href}`);
        else if (anchor !== '' && pages.get(target)?.anchors.has(decodeURIComponent(anchor)) === false)
          broken.push(`${page}: no anchor ${href}`);
      }
    }
    t.strictSame(broken, []);
    t.ok(followed > 5_000, `${followed} links`);
    const styles = readdirSync(join(BUILT, 'assets')).filter((name) => name.endsWith('.css'));
    for (const name of styles)
      t.notMatch(readFileSync(join(BUILT, 'assets', name), 'utf8'), /@import|url\(["']?(https?:)?\/\//, name);
    t.end();
  });

  t.test('every page is within two clicks of the first', (t) => {
    const clicks = new Map([['index.html', 0]]);
    for (const [page, so] of clicks) {
      for (const { element, href } of pages.get(page)?.links ?? []) {
        if (element !== 'a' || /^(https?:|mailto:|#)/.test(href)) continue;
        const [path = ''] = href.split('#');
        const resolved = posix.resolve('/', posix.dirname(page), path);
        const to = fileOf(path.endsWith('/') ? `${resolved.replace(/\/$/, '')}/` : resolved);
        if (!clicks.has(to)) clicks.set(to, so + 1);
      }
    }
    const docs = allPages(join(ROOT, 'docs'));
    t.ok(docs.length > 100, `${docs.length} pages`);
    const far = docs.filter(({ path }) => {
      const file = sitePath(`docs/${path}`, false).replace(/\.md$/, '.html');
      return !((clicks.get(file) ?? Number.POSITIVE_INFINITY) <= 2);
    });
    t.strictSame(
      far.map(({ path }) => path),
      [],
    );
    t.end();
  });

  t.test('llms.txt lists every page, and each can be had as Markdown', (t) => {
    const list = readFileSync(join(BUILT, 'llms.txt'), 'utf8');
    const listed = [...list.matchAll(/^- \[[^\]]+\]\(([^)]+)\): (.+)$/gm)];
    const docs = allPages(join(ROOT, 'docs')).filter(({ path }) => path !== 'README.md');
    t.strictSame(listed.map(([, path]) => path).toSorted(), docs.map(({ path }) => path).toSorted());
    const full = readFileSync(join(BUILT, 'llms-full.txt'), 'utf8');
    for (const { path } of docs) {
      const text = readFileSync(join(ROOT, 'docs', path), 'utf8');
      t.equal(readFileSync(join(BUILT, path), 'utf8'), text, path);
      t.ok(full.includes(text.trim()), path);
    }
    t.end();
  });

  t.test('it can be searched, without a server', (t) => {
    const assets = readdirSync(join(BUILT, 'assets'), { recursive: true, encoding: 'utf8' });
    const index = assets.find((name) => /@localSearchIndexroot/.test(name));
    t.ok(index !== undefined, 'there is an index');
    const text = readFileSync(join(BUILT, 'assets', index ?? ''), 'utf8');
    for (const word of ['dominance', 'psqlodbc', 'retrieve']) t.ok(text.toLowerCase().includes(word), word);
    t.end();
  });
  t.end();
});

test('a browser sees it, small and large, light and dark, and asks no other server', {
  skip: SKIP,
}, async (t) => {
  const site = await serveSite();
  t.teardown(() => site.close());
  const { origin } = site;
  const browser = await startBrowser(t);
  const faults: string[] = [];
  for (const [width, colorScheme] of [
    [400, 'light'],
    [1440, 'dark'],
  ] as const) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:'))
        faults.push(request.url());
    });
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('response', (response) => {
      if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
    });
    for (const path of ['', 'architecture.html', 'cookbook/regions.html', 'playground.html']) {
      await page.goto(`${origin}/${path}`, { waitUntil: 'networkidle' });
      const wide = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      t.equal(wide, 0, `${path} at ${width}: nothing sticks out`);
      await accessible(t, page, `${path} at ${width}, ${colorScheme}`);
    }
    if (width > 1_000) {
      const isDark = (): Promise<unknown> =>
        page.evaluate("document.documentElement.classList.contains('dark')");
      t.ok(await isDark(), 'dark, as the browser asks');
      await page.getByRole('switch', { name: /theme/ }).first().click();
      t.notOk(await isDark(), 'and light by the switch');
      for (const [words, place] of [
        ['break glass reason', /(on-call|policy|0091|threat)/],
        ['row filter tenant', /cookbook\/tenants/],
      ] as const) {
        await page.getByRole('button', { name: 'Search' }).first().click();
        await page.locator('#localsearch-input').fill(words);
        await page.locator('#localsearch-list a').first().click();
        await page.waitForURL(place);
      }
    }
    await context.close();
  }
  t.strictSame(faults, []);
});

test('the playground compiles in the browser what the gateway compiles, and sends nothing', {
  skip: SKIP,
}, async (t) => {
  const site = await serveSite();
  t.teardown(() => site.close());
  await playgroundInBrowser(t, site, await startBrowser(t));
});
