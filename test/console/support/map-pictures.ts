import type { Page } from 'playwright-core';

/** Pictures of the docs that show the Map and the Metrics, of the demo: who asks, and how to come there. */
export const MAP_PICTURES = [
  {
    name: 'map',
    screen: 'map',
    as: /^user:analyst/,
    take: async (page: Page): Promise<void> => {
      await go(page, '#/map?at=entity:person&column=email');
      await page.getByRole('button', { name: 'why? email' }).click();
      await page.getByText('it is sensitive').waitFor();
    },
  },
  {
    name: 'map-two-callers',
    screen: 'map',
    as: /^user:analyst/,
    take: async (page: Page): Promise<void> => {
      await go(page, '#/map');
      await page.getByRole('button', { name: 'Compare …' }).click();
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^user:counsel/ })
        .first()
        .click();
      await page.getByRole('navigation', { name: 'Differences' }).waitFor();
      await page.getByRole('application').nth(1).waitFor();
    },
  },
  {
    name: 'metrics',
    screen: 'metrics',
    // The demo has no times, so its metrics have no lines.
    world: 'sales',
    as: /^user:ann/,
    take: async (page: Page): Promise<void> => {
      await go(page, '#/metrics');
      await page.locator('svg.sparkline').nth(3).waitFor();
    },
  },
] as const;

async function go(page: Page, hash: string): Promise<void> {
  await page.goto(`${new URL(page.url()).origin}/console/${hash}`);
  await page.waitForLoadState('networkidle');
}
