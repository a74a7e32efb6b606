import type { Page } from 'playwright-core';
import { ask as send } from './browser.js';
import { MAP_PICTURES } from './map-pictures.js';

/** A picture of the console: who signs in, and the steps to what it shows. */
export interface Picture {
  readonly name: string;
  /** Folder of the screen in `console/src/screens/`. */
  readonly screen: string;
  readonly as: RegExp;
  /** Gateway that it is taken of: the demo unless it says otherwise, or the sales of the tests. */
  readonly world?: 'sales';
  readonly take: (page: Page) => Promise<void>;
}

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

/** Pictures of the docs, `docs/pictures/NAME.png`. */
export const PICTURES: readonly Picture[] = [
  {
    name: 'why',
    screen: 'ask',
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
    screen: 'ask',
    as: /^user:analyst/,
    take: async (page) => {
      // Beside the columns of an entity of which some are masked.
      await page.getByRole('treeitem', { name: 'person', exact: true }).locator('.ask-line-open').click();
      await ask(page, LICENSES);
      await page.getByRole('tab', { name: 'Chart' }).click();
      await page.locator('canvas').waitFor();
    },
  },
  {
    name: 'passages',
    screen: 'ask',
    as: /^user:analyst/,
    take: (page) => ask(page, PASSAGES),
  },
  {
    name: 'policy',
    screen: 'policy',
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
    screen: 'audit',
    as: /^user:admin/,
    take: async (page) => {
      await ask(page, LICENSES);
      await page.getByRole('link', { name: 'Audit' }).click();
      await page.getByLabel('Action', { exact: true }).fill('query');
      await page.getByText(/^\d records$/).waitFor();
      await page.getByRole('row', { name: /query/ }).first().click();
      await page.getByText(/succeeded, /).waitFor();
      // The next checkpoint covers it.
      for (let tries = 0; tries < 20 && (await page.getByText(/^Proved: /).count()) < 2; tries += 1) {
        await page.getByRole('button', { name: 'Prove and check' }).click();
        await page.waitForTimeout(500);
      }
      await page.getByRole('button', { name: 'Prove and check' }).waitFor();
    },
  },
  {
    name: 'operations',
    screen: 'operations',
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
