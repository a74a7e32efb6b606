/**
 * Builds a single file with Node and the gateway: `npm run executable -- [FILE]`, for the current system and Node
 * version. It contains the packages as npm installs them, and unpacks them on first start (`executable-main.cjs`).
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { run } from './run.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
/** Marker in Node's binary that enables an embedded application. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
/** Brotli quality; takes half the time of 11 for a tenth more bytes. */
const QUALITY = 9;

const START = `module.exports = (own) => import(own ?? './node_modules/osl-gateway/bin/osl.js').catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
`;

interface InstalledFiles {
  readonly files: readonly (readonly [path: string, size: number])[];
  readonly content: Buffer;
}

/** Installs the packages into an empty folder, as a user would. */
async function installed(folder: string): Promise<InstalledFiles> {
  const [packed, app] = [join(folder, 'packed'), join(folder, 'app')];
  await run(ROOT, 'sh', 'deploy/pack.sh', packed);
  const tarballs = readdirSync(packed).map((name) => join(packed, name));
  await run(folder, 'sh', join(ROOT, 'deploy', 'install.sh'), app, ...tarballs);
  writeFileSync(join(app, 'start.cjs'), START);
  const files = readdirSync(app, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.includes('.bin/') && statSync(join(app, path)).isFile())
    .toSorted();
  const contents = files.map((path) => readFileSync(join(app, path)));
  return {
    files: files.map((path, i) => [path, contents[i]?.length ?? 0]),
    content: Buffer.concat(contents),
  };
}

async function executable(file: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'osl-executable-'));
  try {
    const { files, content } = await installed(folder);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const digest = createHash('sha256').update(JSON.stringify(files)).update(content).digest('hex');
    const index = { name: `${version}-${digest.slice(0, 16)}`, files };
    writeFileSync(join(folder, 'index'), JSON.stringify(index));
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: 24,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    };
    writeFileSync(join(folder, 'content'), brotliCompressSync(content, { params }));
    const config = {
      main: join(ROOT, 'release', 'executable-main.cjs'),
      output: join(folder, 'blob'),
      disableExperimentalSEAWarning: true,
      assets: { index: join(folder, 'index'), content: join(folder, 'content') },
    };
    writeFileSync(join(folder, 'sea.json'), JSON.stringify(config));
    await run(folder, process.execPath, '--experimental-sea-config', 'sea.json');
    mkdirSync(dirname(file), { recursive: true });
    copyFileSync(process.execPath, file);
    chmodSync(file, 0o755);
    const postject = join(ROOT, 'node_modules', 'postject', 'dist', 'cli.js');
    const blob = join(folder, 'blob');
    await run(ROOT, process.execPath, postject, file, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.stdout.write(`${file}: ${(statSync(file).size / 1e6).toFixed(0)} MB\n`);
}

const [given = `dist/osl-gateway-${process.platform}-${process.arch}`] = process.argv.slice(2);
await executable(resolve(ROOT, given));
