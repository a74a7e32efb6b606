import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { EXIT, Failure } from '../exit.js';
import { visible } from '../output.js';

/** Writes all of the files or none, and over none that is there. */
export async function writeNew(files: readonly (readonly [string, string])[]): Promise<void> {
  for (const [file] of files)
    if (existsSync(file))
      throw new Failure(EXIT.usage, `error: ${visible(file)} exists, and is not overwritten`);
  for (const [file, text] of files) await writeFile(file, text, { flag: 'wx' });
}
