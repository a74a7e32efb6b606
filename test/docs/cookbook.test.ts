import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { recipePage, recipesOf } from '../../site/build/cookbook.js';
import { osl, ROOT, temporary } from '../tools/cli/support.js';

t.setTimeout(240_000);

const PAGES = join(ROOT, 'docs', 'cookbook');
const recipes = recipesOf(ROOT);

/** A glass is broken by a caller of a server, and by no test of a policy: `cookbook-served.test.ts` breaks it. */
const UNHELD: Readonly<Record<string, readonly string[]>> = {
  'on-call': ['roles.on_call.grants[0]: the grant taken away'],
};

interface Report {
  readonly ok: boolean;
  readonly files: readonly {
    readonly file: string;
    readonly results: readonly {
      readonly name: string;
      readonly ok: boolean;
      readonly faults: readonly string[];
    }[];
    readonly coverage: {
      readonly unheld: readonly { readonly rule: string; readonly change: string }[];
    } | null;
  }[];
}

test('each recipe has a page, whose listings are its files', (t) => {
  const pages = readdirSync(PAGES).filter((name) => name !== 'README.md');
  t.strictSame(pages.toSorted(), recipes.map((name) => `${name}.md`).toSorted());
  t.ok(recipes.length >= 12, `${recipes.length} recipes`);
  const list = readFileSync(join(PAGES, 'README.md'), 'utf8');
  for (const name of recipes) {
    const path = join(PAGES, `${name}.md`);
    const page = readFileSync(path, 'utf8');
    const meant = recipePage(ROOT, name, page);
    if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(path, meant);
    t.equal(readFileSync(path, 'utf8'), meant, `${name}: OSL_WRITE_DOCS=1 npm test writes it anew`);
    t.match(list, `](${name}.md)`, `${name} is listed`);
  }
  t.end();
});

test('every test of every recipe passes, and each rule of its policy is held by one', async (t) => {
  const files = recipes.map((name) => join('examples', 'cookbook', name, 'policy.test.yaml'));
  const run = await osl(['policy', 'test', ...files, '--json']);
  t.equal(run.code, 0, run.stderr);
  const { files: reports } = JSON.parse(run.stdout) as Report; // what the command documents
  t.equal(reports.length, recipes.length);
  for (const [i, { results, coverage }] of reports.entries()) {
    const name = recipes[i] ?? '';
    t.strictSame(
      results.filter(({ ok }) => !ok),
      [],
      name,
    );
    const unheld = coverage?.unheld.map(({ rule, change }) => `${rule}: ${change}`);
    t.strictSame(unheld, UNHELD[name] ?? [], name);
  }
});

test('a page whose policy somebody makes wider fails', async (t) => {
  const page = readFileSync(join(PAGES, 'tenants.md'), 'utf8');
  const [, policy = ''] = /<!-- policy\.yaml -->\n\n```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const wider = policy.replace(
    "columns: [id, name], rows: account = attribute('account')",
    'columns: [id, name]',
  );
  t.not(wider, policy);
  t.throws(() => {
    const changed = page.replace(policy, wider);
    if (recipePage(ROOT, 'tenants', changed) !== changed) throw new Error('the listing is not the file');
  });
  const dir = temporary();
  cpSync(join(ROOT, 'examples', 'cookbook', 'tenants'), dir, { recursive: true });
  writeFileSync(join(dir, 'policy.yaml'), wider);
  const run = await osl(['policy', 'test', '--no-coverage'], { cwd: dir });
  t.equal(run.code, 1);
  t.match(run.stdout, /FAILED a member sees the projects of the own account/);
  t.match(run.stdout, /FAILED a user without an account sees no rows/);
});
