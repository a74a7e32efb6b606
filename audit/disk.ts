import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/** Signature of `fs.write`. A test's replacement writes all records, headers and checkpoints, and can inject faults. */
export type WriteAt = (
  fd: number,
  data: Uint8Array,
  offset: number,
  length: number,
  position: number,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void;

/** Writes exactly `length` bytes, continuing after short writes. Errors are final and never retried. */
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

/** Like `writeFully`, but synchronous. @throws the error of the write */
export function writeNow(fd: number, data: Uint8Array, length: number, position: number): void {
  for (let at = 0; at < length; ) {
    const written = writeSync(fd, data, at, length - at, position + at);
    if (written === 0) throw new Error('the disk took no bytes');
    at += written;
  }
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

/** Creates or replaces a file atomically and syncs its content, but not its directory entry. */
export function writeDurably(path: string, data: Uint8Array, mode: number): void {
  const making = `${path}.new`;
  const fd = openSync(making, 'w', mode);
  try {
    writeNow(fd, data, data.length, 0);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(making, path);
}

/** Like `writeDurably`, without blocking the event loop. @param prepare called with the new file before it is filled */
export async function writeDurablyAsync(
  path: string,
  data: Uint8Array,
  mode: number,
  prepare: (handle: FileHandle) => Promise<void> = async () => undefined,
): Promise<void> {
  const making = `${path}.new`;
  await createFile(making, mode, async (handle) => {
    await prepare(handle);
    await handle.writeFile(data);
  });
  await rename(making, path);
}

/** Creates a file, lets `fill` write it, and syncs it; removes it on failure. */
export async function createFile(
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

/** Syncs a directory, so that created and renamed files survive a crash. */
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
