import { execFile } from 'node:child_process';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { bundle } from '../../../release/bundle.js';
import { placeholdersIn, publishedKey, type ReadText, textsOf } from '../../../release/placeholders.js';
import { sbomOf } from '../../../release/sbom.js';
import { PUBLIC_KEY, passingKey, SIGNATURE, SUMS, signFolder } from '../../../release/sign.js';
import { ROOT, temporary } from '../cli/support.js';

/** What a release is made with, and that whoever has one can tell a changed byte. The whole of one is made at night. */
const run = promisify(execFile);
const VERIFY = join(ROOT, 'release', 'verify.sh');

interface Ended {
  readonly code: number;
  readonly said: string;
}

const ended = (command: string, ...args: readonly string[]): Promise<Ended> =>
  run(command, args, { cwd: ROOT, maxBuffer: 1 << 24 }).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      said: error.stdout + error.stderr,
    }),
  );

/** A release of two files, signed; and the public key as its users have it, from elsewhere. */
function signed(): { readonly folder: string; readonly key: string } {
  const folder = join(temporary(), 'files');
  mkdirSync(folder);
  writeFileSync(join(folder, 'osl-gateway-0.1.0.tgz'), Buffer.alloc(5_000, 7));
  writeFileSync(join(folder, 'osl-gateway-0.1.0.cdx.json'), '{}\n');
  signFolder(folder, passingKey());
  const key = join(temporary(), PUBLIC_KEY);
  copyFileSync(join(folder, PUBLIC_KEY), key);
  return { folder, key };
}

t.test('whoever has the public key can tell a release from one with another byte', async (t) => {
  const { folder, key } = signed();
  const whole = await ended('sh', VERIFY, folder, key);
  t.match(whole, { code: 0, said: /every file is as it was signed/ }, whole.said);
  for (const name of ['osl-gateway-0.1.0.tgz', 'osl-gateway-0.1.0.cdx.json', SUMS, SIGNATURE]) {
    const file = join(folder, name);
    const content = readFileSync(file);
    const other = Buffer.from(content);
    const place = Math.floor(other.length / 2);
    other[place] = (other[place] ?? 0) ^ 1;
    writeFileSync(file, other);
    const { code, said } = await ended('sh', VERIFY, folder, key);
    t.not(code, 0, name);
    t.notMatch(said, /every file is as it was signed/, name);
    writeFileSync(file, content);
  }
  t.match(await ended('sh', VERIFY, folder, key), { code: 0 }, 'put right, it is good again');
});

t.test('a release that somebody else signed is none, with its own key beside it', async (t) => {
  const { folder, key } = signed();
  signFolder(folder, passingKey());
  t.not((await ended('sh', VERIFY, folder, key)).code, 0);
});

t.test('what is published is tested, signed, tagged and announced, or it is not', async (t) => {
  const publish = (...args: readonly string[]): Promise<Ended> =>
    ended(
      process.execPath,
      join(ROOT, 'dist', 'release', 'release.js'),
      '--publish',
      '--out',
      temporary(),
      ...args,
    );
  const file = join(temporary(), 'key.pem');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  t.match(await publish('--key', file, '--without-tests'), { code: 1, said: /what is published is tested/ });
  t.match(await publish(), { code: 1, said: /what is published is signed/ });
  t.match(await publish('--key', file), { code: 1, said: /the tag v0\.1\.0 is not on [0-9a-f]{40}/ });
});

/** The files with the placeholders replaced, as before a release. */
function filled(key: string): ReadText {
  const read = textsOf(ROOT);
  return (file) =>
    read(file)
      .replace('example.org/osl-gateway.git', '192.0.2.1/osl-gateway.git')
      .replace(/-----BEGIN PUBLIC KEY-----\n[\s\S]*?-----END PUBLIC KEY-----\n/, key);
}

t.test('nothing is signed for good while there are placeholders', async (t) => {
  const p256 = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const other = generateKeyPairSync('ed25519');
  const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString();
  const all = [
    'repository in package.json is a placeholder',
    'repository in compiler/package.json is a placeholder',
    'the public key in SECURITY.md is a placeholder',
  ];
  t.strictSame(placeholdersIn(textsOf(ROOT)), all, 'those of this checkout');
  t.strictSame(placeholdersIn(filled(pem(p256.publicKey))), [], 'none is left in a filled copy');
  t.ok(publishedKey(filled(pem(p256.publicKey)))?.equals(p256.publicKey));
  t.strictSame(placeholdersIn(filled(pem(other.publicKey))), all.slice(2), 'a key of another kind is none');
  const absent: ReadText = (file) => (file.endsWith('.json') ? '{}' : '# Security\n');
  t.strictSame(placeholdersIn(absent), all, 'nor may they be left out');
  const file = join(temporary(), 'key.pem');
  writeFileSync(file, p256.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  const script = join(ROOT, 'dist', 'release', 'release.js');
  const out = temporary();
  const refused = await ended(process.execPath, script, '--without-tests', '--out', out, '--key', file);
  t.equal(refused.code, 1);
  t.match(refused.said, /nothing is released before it is replaced: repository in package\.json/);
  t.strictSame(readdirSync(out), []);
});

t.test('the bill of materials has what is installed, and what was taken in', async (t) => {
  // A place of its own: another test packs what is in dist/package.
  const place = join(temporary(), 'bundle');
  await bundle(place);
  const { components, dependencies, metadata } = await sbomOf(ROOT, place);
  const named = (name: string) =>
    components.find((c) => (c.group === undefined ? c.name : `${c.group}/${c.name}`) === name);
  const { dependencies: direct } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const [name, version] of Object.entries(direct)) t.match(named(name), { version }, name);
  for (const name of ['libpg-query', 'pg-protocol', 'find-my-way'])
    t.ok(named(name), `${name}, which others need`);
  const inside = { properties: [{ name: 'osl:taken-in', value: 'true' }] };
  for (const name of ['commander', 'apache-arrow', 'react', 'cytoscape']) t.match(named(name), inside, name);
  for (const name of ['tap', 'typescript', 'esbuild', 'vite']) t.notOk(named(name), `${name} only builds`);
  const refs = new Set(components.map((c) => c['bom-ref']));
  refs.add(metadata.component['bom-ref']);
  t.same(refs.size, components.length + 1, 'each once');
  for (const { ref, dependsOn = [] } of dependencies)
    for (const other of dependsOn) t.ok(refs.has(other), `${ref} needs ${other}`);
});
