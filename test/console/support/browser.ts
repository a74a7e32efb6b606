import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser of this machine, found by name; null where there is none. */
export const CHROMIUM: string | null =
  NAMES.map((name) => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim()).find(
    (path) => path !== '',
  ) ?? null;

/** Reason for a skip where there is no browser. */
export const SKIP: string | false = CHROMIUM === null ? 'there is no Chromium on this machine' : false;

/** A browser that is closed with the test. */
export async function startBrowser(t: Pick<Test, 'teardown'>): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? 'chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  t.teardown(() => browser.close());
  return browser;
}

export interface VisitOptions {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  /** Faults of the console that a test means to cause, such as an answer of 400. */
  readonly expects?: RegExp;
  /** Origins beside the console's own that it means to ask: those of a provider to sign in with. */
  readonly also?: readonly string[];
}

/** A page in a profile of its own, which notes whatever a page of ours must never do. */
export class Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Requests to another origin, violations of the policy, and what the console said as an error. */
  readonly faults: string[] = [];
  readonly #expects: RegExp;
  #clicks = 0;

  private constructor(page: Page, context: BrowserContext, expects: RegExp) {
    this.page = page;
    this.context = context;
    this.#expects = expects;
  }

  static async start(browser: Browser, origin: string, options: VisitOptions = {}): Promise<Visit> {
    const context = await browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.dark === true ? 'dark' : 'light',
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    const visit = new Visit(page, context, options.expects ?? /^$/);
    await visit.#watch([origin, ...(options.also ?? [])]);
    return visit;
  }

  async #watch(origins: readonly string[]): Promise<void> {
    this.page.on('request', (request) => {
      const url = request.url();
      if (!origins.some((origin) => url.startsWith(`${origin}/`)) && !/^(blob|data|about):/.test(url))
        this.faults.push(`asks another origin: ${url}`);
      if (url.startsWith('data:')) this.faults.push('asks for a data: URL');
    });
    this.page.on('pageerror', (error) => this.faults.push(`throws: ${error.message}`));
    this.page.on('console', (message) => {
      if (message.type() === 'error' && !this.#expects.test(message.text()))
        this.faults.push(`says: ${message.text()}`);
    });
    await this.page.exposeFunction('noteViolation', (what: string) => this.faults.push(`violates: ${what}`));
    // A text: what runs in the page is none of this program's.
    await this.page.addInitScript(
      "addEventListener('securitypolicyviolation', (e) => noteViolation(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber))",
    );
  }

  /** Clicks what has this role and name, and counts it. */
  async click(role: Parameters<Page['getByRole']>[0], name: string | RegExp): Promise<void> {
    this.#clicks += 1;
    await this.page.getByRole(role, { name }).first().click();
  }

  /** Clicks since the last count. */
  clicks(): number {
    const clicks = this.#clicks;
    this.#clicks = 0;
    return clicks;
  }

  /** Fails on what the page must never do. */
  clean(t: Pick<Test, 'strictSame'>, what = 'no other origin, no violation of the policy, no error'): void {
    t.strictSame(this.faults, [], what);
    this.faults.length = 0;
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}

/** The box of the question on the console's first page. */
export const EDITOR = /Question in OSL-SQL/;

/** Writes a question over the present one; completions that are shown are put away. */
export async function write(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: EDITOR }).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
  await page.keyboard.press('Escape');
}

/** Writes a question and sends it. */
export async function ask(page: Page, text: string): Promise<void> {
  await write(page, text);
  await page.keyboard.press('Control+Enter');
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeFinding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly string[];
}

/** Fails on what axe-core finds in the page as it stands: what is serious or critical, or `every` violation. */
export async function accessible(
  t: Pick<Test, 'strictSame'>,
  page: Page,
  what: string,
  counted: 'serious' | 'every' = 'serious',
): Promise<void> {
  // By the debugger's own hand, which the policy of the page does not bind.
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact, nodes: v.nodes.map((n) => n.target.join(' ') + ' ' + n.failureSummary) })))",
  )) as readonly AxeFinding[];
  const isCounted = ({ impact }: AxeFinding): boolean =>
    counted === 'every' || impact === 'serious' || impact === 'critical';
  t.strictSame(found.filter(isCounted), [], `${what}: nothing that axe-core finds (${counted})`);
}
