import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test, test } from 'tap';
import { EXAMPLE, osl, ROOT, temporary } from './support.js';

t.setTimeout(240_000);

const PAGE = join(ROOT, 'docs', 'policy-tests.md');

interface Report {
  readonly ok: boolean;
  readonly files: readonly {
    readonly results: readonly {
      readonly name: string;
      readonly ok: boolean;
      readonly faults: readonly string[];
    }[];
    readonly coverage: {
      readonly changes: number;
      readonly held: number;
      readonly unheld: readonly { readonly rule: string; readonly change: string }[];
    } | null;
  }[];
}

/** The example in a folder of its own, with its files changed. */
function example(changes: Readonly<Record<string, (text: string) => string>> = {}): string {
  const dir = temporary();
  cpSync(EXAMPLE, dir, { recursive: true });
  for (const [file, change] of Object.entries(changes)) {
    const path = join(dir, file);
    const before = readFileSync(path, 'utf8');
    const after = change(before);
    if (after === before) throw new Error(`nothing to change in ${file}`);
    writeFileSync(path, after);
  }
  return dir;
}

async function report(t: Test, dir: string, exit: number, ...flags: readonly string[]): Promise<Report> {
  const run = await osl(['policy', 'test', join(dir, 'policy.test.yaml'), '--json', ...flags]);
  t.equal(run.code, exit, run.stderr);
  return JSON.parse(run.stdout) as Report; // what the command documents
}

test('the example’s tests hold each rule of its policy', async (t) => {
  const run = await osl(['policy', 'test', join(EXAMPLE, 'policy.test.yaml'), '--min-coverage', '100']);
  t.equal(run.code, 0, run.stdout);
  t.match(run.stdout, /18 tests, all pass/);
  t.match(run.stdout, /100 % of the policy's rules are held/);
});

test('the page’s example says what the page says', async (t) => {
  const page = readFileSync(PAGE, 'utf8');
  const [, file = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const [, output = ''] = /\$ osl policy test\n([\s\S]*?)```/.exec(page) ?? [];
  const dir = temporary();
  cpSync(join(ROOT, 'examples', 'reference'), dir, { recursive: true });
  writeFileSync(join(dir, 'policy.test.yaml'), file);
  const run = await osl(['policy', 'test'], { cwd: dir });
  t.equal(run.code, 0, run.stderr);
  const written = page.replace(`$ osl policy test\n${output}`, () => `$ osl policy test\n${run.stdout}`);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, written);
  t.equal(readFileSync(PAGE, 'utf8'), written, 'OSL_WRITE_DOCS=1 writes it anew');
});

/** What somebody may do to a policy by mistake, and the tests that must say so. */
const MISTAKES: Readonly<
  Record<string, { readonly change: (policy: string) => string; readonly failing: readonly string[] }>
> = {
  'an address in the clear': {
    change: (policy) => policy.replace('url], unmask: [person] }', 'url], unmask: [person, pii] }'),
    failing: [
      'an analyst sees who wrote a package, and no address',
      'an analyst cannot find people by an address',
    ],
  },
  'every package for counsel': {
    change: (policy) => policy.replace("rows: license_class <> 'permissive'", 'rows: "true"'),
    failing: [
      'counsel sees what is not under permissive terms',
      'counsel reads what visible packages say, without addresses',
      'so it is with their change logs',
      'an agent sees no more than counsel whom it acts for',
    ],
  },
  'people for admins': {
    change: (policy) =>
      policy.replace(
        /(admin:\n {4}description: Packages and how.*\n {4}grants:\n)/,
        '$1      - { on: person, columns: [id, name] }\n',
      ),
    failing: ['an admin sees nobody'],
  },
};

test('a mistake in the policy fails the tests that say what was meant', async (t) => {
  for (const [mistake, { change, failing }] of Object.entries(MISTAKES)) {
    const { ok, files } = await report(t, example({ 'policy.yaml': change }), 1);
    t.equal(ok, false, mistake);
    const failed = files.flatMap((f) => f.results.filter((r) => !r.ok).map((r) => r.name));
    t.strictSame(failed, failing, mistake);
    t.equal(files[0]?.coverage, null, 'what tests hold is told of a policy that passes');
  }
});

test('rules that no test holds are named', async (t) => {
  const without = (tests: string): string =>
    tests.replace(/ {2}- name: counsel reads what visible packages say[\s\S]*?(?= {2}- name: an agent)/, '');
  const dir = example({ 'policy.test.yaml': without });
  const { files } = await report(t, dir, 0);
  t.strictSame(files[0]?.coverage?.unheld, [
    { rule: 'roles.copyleft.grants[1]', change: 'the grant taken away' },
    { rule: 'roles.copyleft.grants[2]', change: 'the grant taken away' },
  ]);
  await report(t, dir, 1, '--min-coverage', '100');
  await report(t, dir, 0, '--min-coverage', '80');
});

test('a file that is wrong says where, or in which test', async (t) => {
  const cases: readonly (readonly [change: (tests: string) => string, message: RegExp])[] = [
    [
      (tests) => tests.replace('masked: [email]', 'masks: [email]'),
      /policy\.test\.yaml:\d+:\d+.*unknown key `masks`/s,
    ],
    [
      (tests) => tests.replace('    as: user:analyst\n', ''),
      /test `an analyst sees who wrote a package.*`: name the caller/,
    ],
    [
      (tests) => tests.replace('demo.supply.credit:', 'demo.supply.credits:'),
      /has no table `demo.supply.credits`/,
    ],
    [
      (tests) => tests.replace('install_bytes: 100', 'install_bytes: many'),
      /rows of `supply.package` do not fit/,
    ],
    [
      (tests) => tests.replace('expect: { sees: clear }', 'expect: { sees: clear, row_count: 1 }'),
      /nothing is expected but `sees`/,
    ],
  ];
  for (const [change, message] of cases) {
    const run = await osl([
      'policy',
      'test',
      join(example({ 'policy.test.yaml': change }), 'policy.test.yaml'),
    ]);
    t.equal(run.code, 2, run.stdout);
    t.match(run.stderr, message);
    t.equal(run.stdout, '');
  }
  const none = await osl(['policy', 'test'], { cwd: temporary() });
  t.equal(none.code, 2);
  t.match(
    none.stderr,
    /^error: there is no policy\.test\.yaml in this folder\n {2}hint: name a file of tests/,
  );
  const dir = example();
  const [, begun = ''] = none.stderr.split('\n\n');
  writeFileSync(join(dir, 'policy.test.yaml'), begun.replace('NAME', 'package'));
  t.match(await osl(['policy', 'test', '--no-coverage'], { cwd: dir }), {
    code: 0,
    stdout: /1 test, all pass/,
  });
  const missing = await osl(['policy', 'test', 'nowhere.yaml']);
  t.equal(missing.code, 2);
  t.match(missing.stderr, /nowhere\.yaml/);
});
