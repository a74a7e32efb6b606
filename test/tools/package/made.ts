/**
 * What takes minutes to make, made whole: a release in a clean clone, dry, and the single executable, which is then used.
 * Steps of the nightly run: `node dist/test/tools/package/made.js`.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
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
