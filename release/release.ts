/**
 * Builds a release of a commit in a fresh clone, and verifies the result as users do:
 *
 *   npm run release -- [--ref REF] [--out FOLDER] [--key FILE] [--publish | --without-tests]
 *
 * Without `--publish` this is a dry run: everything except publishing, signed with a temporary key if none is given.
 * `--publish` requires a key, a tag for the version and a changelog heading, and runs all tests.
 */
import { createPublicKey } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { placeholdersIn, publishedKey, textsOf } from './placeholders.js';
import { provenanceOf } from './provenance.js';
import { run } from './run.js';
import { PUBLIC_KEY, passingKey, releaseKey, signFolder } from './sign.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
const OPTIONS = {
  ref: { type: 'string', default: 'HEAD' },
  out: { type: 'string', default: 'dist/release-files' },
  key: { type: 'string' },
  publish: { type: 'boolean', default: false },
  'without-tests': { type: 'boolean', default: false },
} as const;

interface ReleaseOptions {
  readonly ref: string;
  readonly out: string;
  readonly key: string | undefined;
  readonly publish: boolean;
  readonly tests: boolean;
}

function parseOptions(args: readonly string[]): ReleaseOptions {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const { ref, out, key, publish } = values;
  const tests = !values['without-tests'];
  if (publish && !tests)
    throw new Error('what is published is tested: --publish goes without --without-tests');
  if (publish && key === undefined) throw new Error('what is published is signed: name the key with --key');
  return { ref, out: resolve(ROOT, out), key, publish, tests };
}

const say = (text: string): boolean => process.stdout.write(`${text}\n`);

/** Clones the commit, so that only content of the history is released. */
async function cloned(ref: string): Promise<{ readonly checkout: string; readonly commit: string }> {
  const commit = (await run(ROOT, 'git', 'rev-parse', '--verify', `${ref}^{commit}`)).trim();
  const checkout = join(mkdtempSync(join(tmpdir(), 'osl-release-')), 'osl-gateway');
  await run(ROOT, 'git', 'clone', '--quiet', '--no-local', '--no-checkout', ROOT, checkout);
  await run(checkout, 'git', 'checkout', '--quiet', '--detach', commit);
  return { checkout, commit };
}

/** Version shared by all workspaces. @throws Error if they differ */
function versionOf(checkout: string): string {
  const [gateway, compiler] = ['package.json', 'compiler/package.json'].map(
    (file) =>
      JSON.parse(readFileSync(join(checkout, file), 'utf8')) as {
        readonly version: string;
        readonly dependencies: Readonly<Record<string, string>>;
      }, // files in npm's format
  );
  const needed = gateway?.dependencies['osl-compiler'];
  if (gateway === undefined || compiler?.version !== needed || compiler?.version !== gateway.version)
    throw new Error(
      `osl-gateway ${gateway?.version} wants osl-compiler ${needed}; here is ${compiler?.version}: all three must be one`,
    );
  return gateway.version;
}

/** Checks the tag and the changelog before a release is published. */
async function announced(checkout: string, version: string, commit: string): Promise<void> {
  const tagged = await run(checkout, 'git', 'rev-parse', '--verify', `v${version}^{commit}`).catch(() => '');
  if (tagged.trim() !== commit) throw new Error(`the tag v${version} is not on ${commit}`);
  const changelog = readFileSync(join(checkout, 'CHANGELOG.md'), 'utf8');
  const heading = changelog.split('\n').find((line) => line.startsWith(`## ${version} `));
  if (heading === undefined || heading.includes('unreleased'))
    throw new Error(`CHANGELOG.md has no heading for ${version} with its date`);
}

/**
 * Refuses to sign with a permanent key while the checkout has placeholders, or tells users to verify with another key.
 * Files of a temporary key are a dry run: the placeholders are printed.
 */
function checkPlaceholders(checkout: string, key: string | undefined): void {
  const read = textsOf(checkout);
  const placeholders = placeholdersIn(read);
  if (key === undefined) {
    for (const placeholder of placeholders) say(`a release would be refused: ${placeholder}`);
    return;
  }
  if (placeholders.length > 0)
    throw new Error(`nothing is released before it is replaced: ${placeholders.join('; ')}`);
  if (publishedKey(read)?.equals(createPublicKey(releaseKey(key))) !== true)
    throw new Error(`the public key in SECURITY.md is not that of ${key}`);
}

async function made(checkout: string, { tests }: ReleaseOptions): Promise<void> {
  say('npm ci');
  await run(checkout, 'npm', 'ci', '--no-audit', '--no-fund');
  if (tests) {
    say('npm run check');
    await run(checkout, 'npm', 'run', '-s', 'check');
  } else {
    say('npm run build (the tests are left out)');
    await run(checkout, 'npm', 'run', '-s', 'build');
  }
}

async function release(args: readonly string[]): Promise<void> {
  const started = new Date();
  const want = parseOptions(args);
  const { checkout, commit } = await cloned(want.ref);
  try {
    const version = versionOf(checkout);
    if (want.publish) await announced(checkout, version, commit);
    checkPlaceholders(checkout, want.key);
    say(`osl-gateway ${version} of ${commit}`);
    await made(checkout, want);
    rmSync(want.out, { recursive: true, force: true });
    mkdirSync(want.out, { recursive: true });
    await run(checkout, 'sh', 'deploy/pack.sh', want.out);
    // Run the checkout's own script, because the SBOM must describe the released commit.
    await run(
      checkout,
      process.execPath,
      'dist/release/sbom.js',
      join(want.out, `osl-gateway-${version}.cdx.json`),
    );
    const files = new Map(readdirSync(want.out).map((name) => [name, join(want.out, name)]));
    const statement = provenanceOf({
      files,
      repository:
        (await run(ROOT, 'git', 'config', '--get', 'remote.origin.url').catch(() => '')).trim() || ROOT,
      commit,
      started,
      ended: new Date(),
      parameters: { tests: want.tests },
    });
    writeFileSync(
      join(want.out, `osl-gateway-${version}.intoto.json`),
      `${JSON.stringify(statement, null, 2)}\n`,
    );
    signFolder(want.out, want.key === undefined ? passingKey() : releaseKey(want.key));
    say((await run(ROOT, 'sh', 'release/verify.sh', want.out, join(want.out, PUBLIC_KEY))).trim());
    await published(want, version);
  } finally {
    rmSync(resolve(checkout, '..'), { recursive: true, force: true });
  }
  for (const name of readdirSync(want.out)) say(join(want.out, name));
}

/** Publishes the packages; npm adds a provenance of its own if it runs in a supported CI. */
async function published({ publish, out }: ReleaseOptions, version: string): Promise<void> {
  const packages = ['osl-compiler', 'osl-gateway'].map((name) => join(out, `${name}-${version}.tgz`));
  for (const file of packages) {
    const command = ['publish', file, '--access', 'public', '--provenance'];
    if (!publish)
      say(`not published: npm ${command.slice(0, 1)} ${basename(file)} ${command.slice(2).join(' ')}`);
    else await run(out, 'npm', ...command);
  }
}

release(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
