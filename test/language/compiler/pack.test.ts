import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

/** The package as npm would publish it, in an empty folder, runs what its README shows. */
const run = promisify(execFile);
const root = fileURLToPath(new URL('../../../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'osl-compiler-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
t.setTimeout(600_000);

const readme = readFileSync(join(root, 'compiler/README.md'), 'utf8');

function block(language: string): string {
  const found = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(readme)?.[1];
  if (found === undefined) throw new Error(`the README has no ${language} block`);
  return found;
}

/** Compiles a program of the folder as strict TypeScript does. */
const strictly = (file: string): Promise<unknown> => {
  const flags =
    '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --module nodenext --target es2023';
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  return run(process.execPath, [tsc, ...flags.split(' '), file], { cwd: folder });
};

const npm = (args: readonly string[]): Promise<{ stdout: string }> =>
  run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });

t.test('npm pack makes a tarball with nothing but the build, README and LICENSE', async (t) => {
  const { stdout } = await run(
    'npm',
    [
      'pack',
      '-w',
      'compiler',
      '--pack-destination',
      folder,
      '--json',
      '--ignore-scripts',
      '--loglevel=error',
    ],
    { cwd: root },
  );
  const [packed]: unknown[] = JSON.parse(stdout);
  const files = JSON.stringify(packed);
  t.match(files, '"path":"dist/index.js"');
  t.match(files, '"path":"dist/index.d.ts"');
  t.match(files, '"path":"LICENSE"');
  t.match(files, '"path":"README.md"');
  t.notMatch(files, '"path":"src/');
  t.notMatch(files, '"path":"test/');
});

t.test('it installs with one dependency and runs the example of its README', async (t) => {
  const tarball = readdirSync(folder).find((f) => f.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack made no tarball');
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  // From what is installed here already, so that the test needs no network.
  const here = ['libpg-query', '@pgsql/types'].map((name) => join(root, 'node_modules', name));
  await npm(['install', '--offline', '--install-links', `./${tarball}`, ...here]);
  const installed: unknown = JSON.parse(
    readFileSync(join(folder, 'node_modules/osl-compiler/package.json'), 'utf8'),
  );
  t.match(installed, { dependencies: { 'libpg-query': String } });
  t.same(
    readdirSync(join(folder, 'node_modules'))
      .filter((n) => !n.startsWith('.'))
      .sort(),
    ['@pgsql', 'libpg-query', 'osl-compiler'],
  );

  const example = block('ts');
  t.ok(example.split('\n').filter((l) => /^[a-z]/.test(l)).length <= 10, 'ten statements');
  writeFileSync(join(folder, 'example.ts'), example);
  await strictly('example.ts');
  const { stdout } = await run(process.execPath, ['example.js'], { cwd: folder });
  t.equal(stdout, block('text'), 'it prints what the README says');
  writeFileSync(join(folder, 'untied.ts'), example.replace("team = 'core'", "team = attribute('team')"));
  await strictly('untied.ts');
  const untied = run(process.execPath, ['untied.js'], { cwd: folder });
  await t.rejects(
    untied,
    /TypeError: a row filter says attribute\('team'\) of nobody: pass it through forChain/,
  );
});
