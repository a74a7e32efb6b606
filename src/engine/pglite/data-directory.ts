import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { isSame, ownProcess } from '../../base/process-identity.js';
import { InUse } from '../../base/start-problem.js';
import { tarEntries } from '../../base/tar-stream.js';
import { codeOf } from '../../base/thrown.js';

/**
 * Path of the empty database made by `npm run build`; creating one at run time takes two seconds and 400 MB more memory
 * than serving it. Compressed from 31 MB to 4 MB, since it is read only once per database.
 */
export function dataImage(): string {
  const engine = dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite'));
  const { version } = JSON.parse(readFileSync(join(engine, '..', 'package.json'), 'utf8')) as {
    version: string; // cast: every npm package has a version
  };
  return join(PACKAGE_ROOT, 'dist', 'data', `empty-${version}.tar.gz`);
}

/** Unpacks the image into `dataDir`. Returns false and does nothing if there is no image or `dataDir` is not empty. */
export function unpackImage(dataDir: string): boolean {
  const image = dataImage();
  if (!existsSync(image) || (existsSync(dataDir) && readdirSync(dataDir).length > 0)) return false;
  const temporary = `${dataDir.replace(/\/+$/, '')}.making`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true, mode: 0o700 });
  for (const { path, content } of tarEntries(gunzipSync(readFileSync(image)))) {
    const at = join(temporary, path);
    if (content === null) mkdirSync(at, { recursive: true, mode: 0o700 });
    else {
      mkdirSync(dirname(at), { recursive: true, mode: 0o700 });
      writeFileSync(at, content, { mode: 0o600 });
    }
  }
  renameSync(temporary, dataDir); // atomic
  return true;
}

/** The major version of Postgres that the embedded engine is built from. */
const MAJOR = '18';

/** Throws an Error if another major version of Postgres created `dataDir`. */
export function checkMajor(dataDir: string): void {
  const file = join(dataDir, 'PG_VERSION');
  if (!existsSync(file)) return;
  const major = readFileSync(file, 'utf8').trim();
  if (major !== MAJOR) {
    throw new Error(`data directory ${dataDir} holds Postgres ${major}; this build runs Postgres ${MAJOR}`);
  }
}

/**
 * Acquires `<dataDir>.lock` and returns a function that releases it.
 *
 * Throws InUse if a living process holds it. The lock of a dead process is taken over.
 */
export function lockDataDir(dataDir: string): () => void {
  const file = `${dataDir.replace(/\/+$/, '')}.lock`;
  const self = ownProcess();
  const content = `${self.pid} ${self.ticks} ${self.boot}\n`;
  for (let attempt = 0; attempt < 3; attempt++) {
    if (create(file, content)) return () => release(file, content);
    const holder = readOrNull(file);
    if (holder === null) continue;
    if (isAlive(holder)) {
      const user = `process ${holder.split(' ')[0]} (${file})`;
      throw new InUse(
        `data directory ${dataDir} is in use by ${user}: an embedded database is open in one process at a time, so stop that one first`,
      );
    }
    removeStale(file, holder);
  }
  throw new Error(`the lock ${file} could not be taken`);
}

function create(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the stale lock away; puts the file back if another process has replaced the lock in the meantime. */
function removeStale(file: string, holder: string): void {
  const movedTo = `${file}.${process.pid}`;
  try {
    renameSync(file, movedTo);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  if (readOrNull(movedTo) !== holder) linkSync(movedTo, file);
  rmSync(movedTo);
}

function release(file: string, content: string): void {
  if (readOrNull(file) === content) rmSync(file, { force: true });
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function isAlive(holder: string): boolean {
  const [pid = '', ticks = '', boot = ''] = holder.trim().split(' ');
  return /^[1-9]\d*$/.test(pid) && isSame({ pid: Number(pid), ticks: Number(ticks), boot });
}
