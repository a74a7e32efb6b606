import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { benchmarkPage, picturesOf } from '../../site/build/benchmarks.js';
import { resultsOf } from '../../site/build/figures.js';
import { spine } from '../../site/build/spine.js';
import { buildSite, serveSite } from '../docs/site-server.js';
import { ROOT, Server, temporary } from '../tools/cli/support.js';
import { CHROMIUM } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { PICTURE_NAMES, PLAYGROUND, RECORD, sourceDigest, stalePictures } from './support/picture-sources.js';
import { PICTURES, type Picture } from './support/pictures.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

/**
 * `npm run pictures`: draws the charts of the docs and the picture of the spine, and takes the screenshots whose sources
 * have changed: of a demo that runs, and of the built site. `npm run pictures -- all` takes every one, and names after
 * the command take these.
 */

const DOCS = join(ROOT, 'docs');
const OPTIONS: BrowserContextOptions = {
  viewport: { width: 1200, height: 720 },
  colorScheme: 'light',
  reducedMotion: 'reduce',
};
const MOST_BYTES = 160_000;

function draw(): void {
  const results = resultsOf(readFileSync(join(ROOT, 'bench', 'RESULTS.md'), 'utf8'));
  const page = join(DOCS, 'benchmarks.md');
  writeFileSync(page, benchmarkPage(readFileSync(page, 'utf8'), results));
  for (const [path, svg] of [...picturesOf(results), ['pictures/spine.svg', spine()] as const])
    writeFileSync(join(DOCS, path), svg);
}

async function save(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  const path = join(DOCS, 'pictures', `${name}.png`);
  await page.screenshot({ path, caret: 'hide' });
  const { size } = statSync(path);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MOST_BYTES}`);
  const record: unknown = JSON.parse(readFileSync(RECORD, 'utf8'));
  const all = { ...(record as object), [name]: sourceDigest(name) };
  const known = Object.entries(all).filter(([key]) => PICTURE_NAMES.includes(key));
  const sorted = Object.fromEntries(known.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(RECORD, `${JSON.stringify(sorted, null, 2)}\n`);
  process.stdout.write(`${path}: ${Math.round(size / 1_000)} kB\n`);
}

async function takeConsole(browser: Browser, pictures: readonly Picture[]): Promise<void> {
  const closers: (() => unknown)[] = [];
  const origins = new Map<Picture['world'], string>();
  try {
    for (const { name, world, as, take } of pictures) {
      const origin = origins.get(world) ?? (await startWorld(world, closers));
      origins.set(world, origin);
      const context = await browser.newContext(OPTIONS);
      const page = await context.newPage();
      await page.goto(`${origin}/console/`);
      await page.getByRole('button', { name: as }).first().click();
      await page.getByText('Query your data').waitFor();
      await take(page);
      await save(page, name);
      await context.close();
    }
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

/** Returns the origin of a gateway, which `closers` will end. */
async function startWorld(world: Picture['world'], closers: (() => unknown)[]): Promise<string> {
  if (world === 'sales') {
    const t = { teardown: (close: () => unknown) => void closers.push(close) };
    return (await startGateway(t, SALES, SALES_CALLERS)).origin;
  }
  const server = new Server(['demo'], join(temporary(), 'data'));
  closers.push(() => server.signal('SIGTERM'));
  await server.said('Ctrl-C stops the server.');
  return `http://127.0.0.1:${String(server.record()['httpPort'])}`;
}

async function takePlayground(browser: Browser): Promise<void> {
  const fault = buildSite();
  if (fault !== null) throw new Error(fault);
  const site = await serveSite();
  try {
    const page = await browser.newPage({ ...OPTIONS, viewport: { width: 1200, height: 840 } });
    await page.goto(`${site.origin}/playground.html`, { waitUntil: 'networkidle' });
    await page.locator('.pg-masked').waitFor();
    await save(page, PLAYGROUND);
  } finally {
    site.close();
  }
}

const named = process.argv.slice(2);
const wanted = named.includes('all') ? PICTURE_NAMES : named.length > 0 ? named : stalePictures();
mkdirSync(join(DOCS, 'pictures'), { recursive: true });
draw();
const ofConsole = PICTURES.filter(({ name }) => wanted.includes(name));
const browser = await chromium.launch({ executablePath: CHROMIUM ?? 'chromium', args: ['--no-sandbox'] });
try {
  if (ofConsole.length > 0) await takeConsole(browser, ofConsole);
  if (wanted.includes(PLAYGROUND)) await takePlayground(browser);
} finally {
  await browser.close();
}
