import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { ROOT, Server, temporary } from '../tools/cli/support.js';
import { CHROMIUM, ask as send } from './support/browser.js';
import { startGateway } from './support/gateway.js';
import { MAP_PICTURES } from './support/map-pictures.js';
import { SALES, SALES_CALLERS } from './support/sales.js';

/**
 * `npm run pictures`: the pictures of the docs, taken of a demo that runs; one is of the gateway of the tests. Each is a step of a visit; names of pictures
 * after the command take these alone.
 */

interface Picture {
  readonly name: string;
  readonly as: RegExp;
  readonly dark?: boolean;
  /** Where it is taken: the demo unless it says otherwise, or the sales of the tests. */
  readonly world?: 'sales';
  readonly take: (page: Page) => Promise<void>;
}

const SIZE = { width: 1200, height: 720 };
const MOST_BYTES = 150_000;

async function ask(page: Page, text: string): Promise<void> {
  await send(page, text);
  await page.getByText(/rows? in/).waitFor();
}

const PEOPLE = `select p.name, p.email, count(*) as packages
from osl.entities.person p
join osl.entities.credit c on c.person_id = p.id
group by p.name, p.email order by packages desc, p.name limit 40`;
const LICENSES = `select license, count(*) as packages
from osl.entities.package
group by license order by packages desc limit 12`;
const PASSAGES = `select text, score, cite, highlights
from RETRIEVE(facet => 'readme', query => 'parse yaml files', top_k => 5, highlight => true)`;

/** A chart, beside the columns of an entity of which some are masked. */
async function takeChart(page: Page): Promise<void> {
  await page.getByRole('treeitem', { name: 'person', exact: true }).locator('.ask-line-open').click();
  await ask(page, LICENSES);
  await page.getByRole('tab', { name: 'Chart' }).click();
  await page.locator('canvas').waitFor();
}

const PICTURES: readonly Picture[] = [
  {
    name: 'why',
    as: /^user:analyst/,
    take: async (page) => {
      await ask(page, PEOPLE);
      await page
        .getByRole('gridcell', { name: /masked/ })
        .nth(3)
        .click();
      await page.getByText(/it is sensitive/).waitFor();
    },
  },
  {
    name: 'ask',
    as: /^user:analyst/,
    take: takeChart,
  },
  {
    name: 'ask-dark',
    as: /^user:analyst/,
    dark: true,
    take: takeChart,
  },
  {
    name: 'passages',
    as: /^user:analyst/,
    take: (page) => ask(page, PASSAGES),
  },
  {
    name: 'policy',
    as: /^user:admin/,
    take: async (page) => {
      await page.getByRole('link', { name: 'Policy' }).click();
      await page.getByLabel('Column', { exact: true }).fill('person');
      const email = page.getByRole('row', { name: /person\.email/ });
      await email.getByRole('gridcell').nth(2).click();
      await page.getByText('roles.analyst.grants[2]', { exact: true }).waitFor();
    },
  },
  {
    name: 'audit',
    as: /^user:admin/,
    take: async (page) => {
      await ask(page, LICENSES);
      await page.getByRole('link', { name: 'Audit' }).click();
      await page.getByLabel('Action', { exact: true }).fill('query');
      await page.getByText(/^\d records$/).waitFor();
      await page.getByRole('row', { name: /query/ }).first().click();
      await page.getByText(/ended ok/).waitFor();
      // The next checkpoint covers it.
      for (let tries = 0; tries < 20 && (await page.getByText(/^Proved: /).count()) < 2; tries += 1) {
        await page.getByRole('button', { name: 'Prove and check' }).click();
        await page.waitForTimeout(500);
      }
    },
  },
  {
    name: 'operations',
    as: /^user:admin/,
    take: async (page) => {
      // Over several steps of ten seconds, with pauses that differ.
      for (let i = 0; i < 60; i += 1) {
        await ask(page, LICENSES);
        await page.waitForTimeout(200 * (i % 12));
      }
      await page.getByRole('link', { name: 'Operations' }).click();
      const chart = page.getByRole('slider', { name: /^Questions/ });
      await chart.press('ArrowLeft');
      await chart.press('Enter');
      await page.getByRole('region', { name: 'Slowest statements' }).waitFor();
    },
  },
  ...MAP_PICTURES,
];

async function takePicture(
  browser: Browser,
  origin: string,
  picture: Picture,
  folder: string,
): Promise<void> {
  const { name, as, dark, take } = picture;
  const colorScheme = dark === true ? 'dark' : 'light';
  const context = await browser.newContext({ viewport: SIZE, colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  await page.goto(`${origin}/console/`);
  await page.getByRole('button', { name: as }).first().click();
  await page.getByText('Query your data').waitFor();
  await take(page);
  await page.mouse.move(0, 0);
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path, caret: 'hide' });
  await context.close();
  const { size } = statSync(path);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes, more than ${MOST_BYTES}`);
  process.stdout.write(`${path}: ${Math.round(size / 1_000)} kB\n`);
}

const wanted = process.argv.slice(2);
const pictures = PICTURES.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
const folder = join(ROOT, 'docs', 'pictures');
mkdirSync(folder, { recursive: true });
const closers: (() => unknown)[] = [];
const origins = new Map<Picture['world'], Promise<string>>();

async function startWorld(world: Picture['world']): Promise<string> {
  if (world === 'sales') {
    const t = { teardown: (close: () => unknown) => void closers.push(close) };
    return (await startGateway(t, SALES, SALES_CALLERS)).origin;
  }
  const server = new Server(['demo'], join(temporary(), 'data'));
  closers.push(() => server.signal('SIGTERM'));
  await server.said('Ctrl-C stops the server.');
  return `http://127.0.0.1:${String(server.record()['httpPort'])}`;
}

function originOf(world: Picture['world']): Promise<string> {
  const origin = origins.get(world) ?? startWorld(world);
  origins.set(world, origin);
  return origin;
}

try {
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? 'chromium', args: ['--no-sandbox'] });
  closers.push(() => browser.close());
  for (const picture of pictures) await takePicture(browser, await originOf(picture.world), picture, folder);
} finally {
  for (const close of closers.toReversed()) await close();
}
