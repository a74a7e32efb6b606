import { readFile } from 'node:fs/promises';
import { MemoryFS, PGlite } from '@electric-sql/pglite';
import { tarEntries } from '../../../base/tar.js';

/**
 * The data directory of one engine, in memory. Its files are parts of the image as it was read, which nobody else has:
 * the engine writes into them, and copies one only where it grows.
 */
export class ImageFiles extends MemoryFS {
  readonly #image: string;

  /** @param image a file, as `dumpDataDir('none')` wrote it */
  constructor(image: string) {
    super();
    this.#image = image;
  }

  override async initialSyncFs(): Promise<void> {
    const { pg } = this;
    if (pg === undefined) throw new Error('the files of an engine were asked for before it had begun');
    const { FS } = pg.Module;
    for (const { path, content } of tarEntries(await readFile(this.#image))) {
      const at = PGlite.paths.PGDATA + path;
      FS.mkdirTree(content === null ? at : at.slice(0, at.lastIndexOf('/')));
      if (content !== null) FS.writeFile(at, content, { canOwn: true });
    }
  }
}
