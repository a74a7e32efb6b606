import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/** `fs.write`: the one door through which the writer's records, headers and checkpoints reach the disk. */
export type WriteAt = (
  fd: number,
  data: Uint8Array,
  offset: number,
  length: number,
  position: number,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void;

/** Writes all of `length` bytes, going on after short writes. An error is final: nothing is tried twice. */
export function writeFully(
  write: WriteAt,
  fd: number,
  data: Uint8Array,
  length: number,
  position: number,
  done: (error: Error | null) => void,
): void {
  let offset = 0;
  const step = (error: NodeJS.ErrnoException | null, written: number): void => {
    offset += error ? 0 : written;
    if (error) done(error);
    else if (offset >= length) done(null);
    else if (written === 0) done(new Error('the disk took no bytes'));
    else write(fd, data, offset, length - offset, position + offset, step);
  };
  write(fd, data, 0, length, position, step);
}

export function writeFullyAsync(
  write: WriteAt,
  fd: number,
  data: Uint8Array,
  position: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    writeFully(write, fd, data, data.length, position, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Creates or replaces a file, whole or not at all, whatever kills the process; on disk when it returns (its directory
 * entry excepted).
 */
export function writeDurably(path: string, data: Uint8Array, mode: number): void {
  const making = `${path}.new`;
  const fd = openSync(making, 'w', mode);
  try {
    for (let at = 0; at < data.length; ) at += writeSync(fd, data, at, data.length - at, at);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(making, path);
}

/** Writes a file durably without holding the event loop: the disk may be slow. */
export async function writeDurablyAsync(path: string, data: Uint8Array, mode: number): Promise<void> {
  const making = `${path}.new`;
  await filled(making, mode, async (handle) => handle.writeFile(data));
  await rename(making, path);
}

/** Makes a file and syncs what `fill` writes to it; one that cannot be filled is removed, so that it takes no room. */
export async function filled(
  path: string,
  mode: number,
  fill: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(path, 'w', mode);
  try {
    await fill(handle);
    await handle.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Makes the names in a directory durable. */
export function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export async function syncDirectoryAsync(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
