import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { PACKAGE_ROOT } from '../../base/package-root.js';
import { tarEntries } from '../../base/tar-stream.js';

/**
 * Path of the empty database made by `npm run build`; creating one at run time takes two seconds and 400 MB more
 * memory than serving it. Compressed from 31 MB to 4, since it is read only once per database.
 */
export function dataImage(): string {
  const engine = dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite'));
  const { version } = JSON.parse(readFileSync(join(engine, '..', 'package.json'), 'utf8')) as {
    version: string; // published by npm
  };
  return join(PACKAGE_ROOT, 'dist', 'data', `empty-${version}.tar.gz`);
}

/** Unpacks the image into the empty `dataDir`. False, with `dataDir` unchanged, if that fails. */
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
  renameSync(making, dataDir); // atomic
  return true;
}
