import { randomUUID } from 'node:crypto';
import { type FileHandle, link, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './thrown.js';

/** Creates or replaces a file atomically. Content and name are durable when the promise resolves. */
export async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const making = `${path}.new`;
  await using(open(making, 'w', 0o600), async (file) => {
    await file.writeFile(bytes);
    await file.sync();
  });
  await rename(making, path);
  await syncNames(dirname(path));
}

/**
 * Creates a file atomically and durably. Returns false if it exists; if several processes try at once, one succeeds.
 */
export async function createWhole(path: string, text: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flush: true });
    await link(draft, path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false; // thrown only by `link`
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await syncNames(dirname(path));
  return true;
}

/** Removes a file durably; it is not an error if the file does not exist. */
export async function removeWhole(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncNames(dirname(path));
}

/** Renames a file within its directory durably; nothing happens if it does not exist. */
export async function renameWhole(from: string, to: string): Promise<void> {
  await ifThere(rename(from, to), undefined);
  await syncNames(dirname(to));
}

/** Returns the content of a file; null if it does not exist. @throws the system's error */
export function bytesOf(path: string): Promise<Buffer | null> {
  return ifThere(readFile(path), null);
}

/** Lists the names in a directory; empty if it does not exist. @throws the system's error */
export function namesIn(dir: string): Promise<readonly string[]> {
  return ifThere(readdir(dir), []);
}

async function ifThere<T, N>(reading: Promise<T>, none: N): Promise<T | N> {
  try {
    return await reading;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return none;
    throw error;
  }
}

/** Makes renames and removals in a directory durable. */
export async function syncNames(dir: string): Promise<void> {
  await using(open(dir, 'r'), (handle) => handle.sync());
}

async function using(
  opening: Promise<FileHandle>,
  work: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await opening;
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}
