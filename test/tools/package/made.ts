/**
 * What takes minutes to make, made whole: a release in a clean clone, dry; the single executable, which is then used; the
 * bundle, by which the tests of the command line pass.
 * Steps of the nightly run: `node dist/test/tools/package/made.js`.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { osl, ROOT, Server, temporary } from '../cli/support.js';

const run = promisify(execFile);
t.setTimeout(1_800_000);
const made = (name: string, ...args: readonly string[]) =>
  run(process.execPath, [join(ROOT, 'dist', 'release', name), ...args], { cwd: ROOT, maxBuffer: 1 << 24 });

t.test('a dry run makes a whole release of the commit that is checked out', async (t) => {
  const out = join(temporary(), 'files');
  const { stdout } = await made('release.js', '--without-tests', '--out', out);
  t.match(stdout, /every file is as it was signed/);
  t.match(stdout, /^a release would be refused: repository in package\.json is a placeholder$/m);
  t.match(stdout, /not published: npm publish osl-compiler-.*\n.*not published: npm publish osl-gateway-/);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  t.same(readdirSync(out).toSorted(), [
    'SHA256SUMS',
    'SHA256SUMS.sig',
    `osl-compiler-${version}.tgz`,
    `osl-gateway-${version}.cdx.json`,
    `osl-gateway-${version}.intoto.json`,
    `osl-gateway-${version}.tgz`,
    'osl-release.pub',
  ]);
  const statement = JSON.parse(
    readFileSync(join(out, `osl-gateway-${version}.intoto.json`), 'utf8'),
  ) as unknown;
  const commit = (await run('git', ['rev-parse', 'HEAD'], { cwd: ROOT })).stdout.trim();
  t.match(statement, {
    subject: [{ name: `osl-compiler-${version}.tgz` }, {}, { name: `osl-gateway-${version}.tgz` }],
    predicate: { buildDefinition: { resolvedDependencies: [{ digest: { gitCommit: commit } }] } },
  });
});

t.test('the single executable is the command, and needs nothing beside it', async (t) => {
  const file = join(temporary(), 'osl');
  t.comment((await made('executable.js', file)).stdout.trim());
  const cache = join(temporary(), 'cache');
  const env = { XDG_CACHE_HOME: cache };
  const program = { node: file, flags: [], script: null };
  const ask = (...args: readonly string[]) => osl(args, { program, env, cwd: temporary() });
  t.equal((await ask('--help')).stdout, (await osl(['--help'])).stdout);
  const dataDir = join(temporary(), 'data');
  const server = new Server(['demo'], dataDir, env, program);
  await server.said('Ctrl-C stops the server.');
  const answer = await ask(
    'query',
    '--data-dir',
    dataDir,
    '--subject',
    'user:analyst',
    '--json',
    'select count(*) as n from package where name = $$fastify$$'.replaceAll('$$', "'"),
  );
  t.match(answer, { code: 0 }, answer.stderr);
  t.match(JSON.parse(answer.stdout), { rows: [{ n: '1' }] });
  t.match(await server.signal('SIGINT'), { code: 0 });
  t.match(await ask('audit', 'verify', '--data-dir', dataDir), { code: 0, stdout: /the chain holds/ });
  t.equal(readdirSync(join(cache, 'osl-gateway')).length, 1, 'unpacked once');
});

t.test('the tests of the command line pass by the bundle', async (t) => {
  await made('bundle.js');
  const bin = join(temporary(), 'osl.mjs');
  writeFileSync(
    bin,
    `import { run } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist', 'package', 'osl.js')).href)};\nawait run(process.argv);\n`,
  );
  const folder = join(ROOT, 'dist', 'test', 'tools', 'cli');
  // `start` counts the modules of the checkout.
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.js') && name !== 'start.test.js');
  t.ok(files.length > 10);
  const only = process.env['OSL_TEST_ONLY']?.split(',');
  for (const file of files.filter(
    (name) => only === undefined || only.includes(name.replace('.test.js', '')),
  )) {
    const { code, tail } = await run(process.execPath, [join(folder, file)], {
      cwd: ROOT,
      env: { ...process.env, OSL_TEST_BIN: bin, TAP_TIMEOUT: '600' },
      maxBuffer: 1 << 26,
    }).then(
      () => ({ code: 0, tail: '' }),
      (error: { code: number; stdout: string }) => ({ code: error.code, tail: error.stdout.slice(-4_000) }),
    );
    t.equal(code, 0, `${file} ${tail}`);
  }
});
