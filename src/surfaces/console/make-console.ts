import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PACKAGE_ROOT } from '../../base/package-root.js';

/**
 * Run by `npm run build`: builds `console/` into `dist/console/` with Vite if its sources have changed. Skipped if
 * Node is too old for Vite, so that the rest of the build still succeeds.
 */
const SOURCE = join(PACKAGE_ROOT, 'console');
const BUILT = join(PACKAGE_ROOT, 'dist', 'console');
const STAMP = join(PACKAGE_ROOT, 'dist', 'console.stamp');
/** Input files of the build, in addition to the folders below. */
const FILES = [
  ...['index.html', 'package.json', 'vite.config.js'].map((name) => join(SOURCE, name)),
  ...['errors/errors.ts', 'text/sql-text.ts', 'types/types.ts'].map((name) =>
    join(PACKAGE_ROOT, 'compiler', 'src', name),
  ),
];
const FOLDERS = [join(SOURCE, 'src'), join(SOURCE, 'public')];
const LOCK = join(PACKAGE_ROOT, 'package-lock.json');

function computeStamp(): string {
  const hash = createHash('sha256');
  const files = [...FILES, ...FOLDERS.flatMap(filesIn), ...(existsSync(LOCK) ? [LOCK] : [])];
  for (const file of files) hash.update(`${file.slice(PACKAGE_ROOT.length)}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function filesIn(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function canBuild(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
}

function build(): number {
  const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin', 'vite.js');
  const args = [vite, 'build', '--logLevel', 'warn'];
  return spawnSync(process.execPath, args, { cwd: SOURCE, stdio: 'inherit' }).status ?? 1;
}

const stamp = computeStamp();
const previousStamp = existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : '';
if (stamp !== previousStamp || !existsSync(join(BUILT, 'index.html'))) {
  if (!canBuild()) {
    process.stderr.write('the console is not built: that takes Node 20.19, 22.12 or newer\n');
  } else {
    const status = build();
    if (status !== 0) process.exit(status);
    mkdirSync(dirname(STAMP), { recursive: true });
    writeFileSync(STAMP, stamp);
  }
}
