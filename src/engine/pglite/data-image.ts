import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { tarEntries } from '../../base/tar-stream.js';

/**
 * Path of the empty database that `npm run build` makes: to make one takes two seconds, and 400 MB more than to serve it. Zipped,
 * since it is read once for each database: 4 MB, not 31.
 */
export function dataImage(): string {
  const engine = dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite'));
  const { version } = JSON.parse(readFileSync(join(engine, '..', 'package.json'), 'utf8')) as {
    version: string; // npm's own file
  };
  return join(PACKAGE_ROOT, 'dist', 'data', `empty-${version}.tar.gz`);
}

/** True if `dataDir`, where nothing is yet, is an empty database now; else it is there as it was. */
export function unpackImage(dataDir: string): boolean {
  const image = dataImage();
  if (!existsSync(image) || (existsSync(dataDir) && readdirSync(dataDir).length > 0)) return false;
  const making = `${dataDir.replace(/\/+$/, '')}.making`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { recursive: true, mode: 0o700 });
  for (const { path, content } of tarEntries(gunzipSync(readFileSync(image)))) {
    const at = join(making, path);
    if (content === null) mkdirSync(at, { recursive: true, mode: 0o700 });
    else {
      mkdirSync(dirname(at), { recursive: true, mode: 0o700 });
      writeFileSync(at, content, { mode: 0o600 });
    }
  }
  renameSync(making, dataDir); // whole or not at all
  return true;
}
