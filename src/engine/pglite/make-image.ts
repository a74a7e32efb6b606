import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { gzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { dataImage } from './data-directory.js';

/**
 * Creates the image of an empty database; run by `npm run build`. WAL segments are small, since the image and every
 * database made from it contain some.
 */
const file = dataImage();
if (!existsSync(file)) {
  const pg = await PGlite.create({ initDbStartParams: ['--wal-segsize=1'] });
  await pg.exec('checkpoint');
  const image = await pg.dumpDataDir('none');
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}`;
  await writeFile(temporary, gzipSync(new Uint8Array(await image.arrayBuffer()), { level: 9 }));
  await rename(temporary, file); // atomic, since two builds may do this at once
  await pg.close();
}
