import type { Dirent } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DocumentRow } from './rows.js';

export interface Size {
  readonly bytes: number;
  readonly files: number;
}

/**
 * Bytes and number of the regular files under `folder`. Directories named node_modules hold other packages,
 * symbolic links point elsewhere: neither is entered or counted. `folder` itself may be one: then all is 0.
 */
export async function sizeOf(folder: string): Promise<Size> {
  return (await lstat(folder)).isDirectory() ? sizeIn(folder) : { bytes: 0, files: 0 };
}

async function sizeIn(folder: string): Promise<Size> {
  const entries = await readdir(folder, { withFileTypes: true });
  const sizes = await Promise.all(entries.map((entry) => sizeOfEntry(folder, entry)));
  return sizes.reduce((a, b) => ({ bytes: a.bytes + b.bytes, files: a.files + b.files }), {
    bytes: 0,
    files: 0,
  });
}

async function sizeOfEntry(folder: string, entry: Dirent): Promise<Size> {
  const path = join(folder, entry.name);
  if (entry.isFile()) return { bytes: (await lstat(path)).size, files: 1 };
  if (entry.isDirectory() && entry.name !== 'node_modules') return sizeIn(path);
  return { bytes: 0, files: 0 };
}

const KINDS: readonly (readonly [RegExp, DocumentRow['kind']])[] = [
  [/^readme(\.(md|markdown|txt|rst))?$/i, 'readme'],
  [/^(changelog|changes|history)(\.(md|markdown|txt|rst))?$/i, 'changelog'],
];

/** README and CHANGELOG of the package in `folder`, by name; none where it is a symbolic link. */
export async function documentsIn(folder: string, packagePath: string): Promise<readonly DocumentRow[]> {
  if (!(await lstat(folder)).isDirectory()) return [];
  const documents: DocumentRow[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const kind = KINDS.find(([pattern]) => pattern.test(entry.name))?.[1];
    if (kind === undefined || !entry.isFile()) continue;
    const body = await textOf(join(folder, entry.name));
    if (body === '') continue;
    documents.push({
      id: `${packagePath}#${entry.name}`,
      package_path: packagePath,
      kind,
      file: entry.name,
      body,
    });
  }
  return documents.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** Bytes. The largest README on npm that we met has 300 KiB. */
const LARGEST_DOCUMENT = 1024 * 1024;

/** At most 1 MiB of it; NUL, which Postgres cannot hold, is left out. */
async function textOf(file: string): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const room = Buffer.alloc(Math.min((await handle.stat()).size, LARGEST_DOCUMENT));
    const { bytesRead, buffer } = await handle.read(room, 0, room.length, 0);
    return new TextDecoder().decode(buffer.subarray(0, bytesRead)).replaceAll('\0', '').trim();
  } finally {
    await handle.close();
  }
}
