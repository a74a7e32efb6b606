import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { ROOT, Server, temporary } from '../tools/cli/support.js';
import { CHROMIUM, ask as send } from './support/browser.js';
import { MAP_PICTURES } from './support/map-pictures.js';

/**
 * `npm run pictures`: the pictures of the docs, taken of a demo that runs. Each is a step of a visit; names of pictures
 * after the command take these alone.
 */

interface Picture {
  readonly name: string;
  readonly as: RegExp;
  readonly dark?: boolean;
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
      for (let i = 0; i < 5; i += 1) await ask(page, LICENSES);
      await page.getByRole('link', { name: 'Operations' }).click();
      await page.getByRole('tab', { name: 'Latency' }).click();
      await page.locator('canvas').waitFor();
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
const server = new Server(['demo'], join(temporary(), 'data'));
try {
  await server.said('Ctrl-C stops the server.');
  const origin = `http://127.0.0.1:${String(server.record()['httpPort'])}`;
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? 'chromium', args: ['--no-sandbox'] });
  try {
    for (const picture of pictures) await takePicture(browser, origin, picture, folder);
  } finally {
    await browser.close();
  }
} finally {
  await server.signal('SIGTERM');
}
