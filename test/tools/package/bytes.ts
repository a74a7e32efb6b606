import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Of all files in a folder, as `npm` says it of packages: what they hold, not what a file system gives them. */
export function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0);
}
