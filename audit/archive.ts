import { copyFile, mkdir, open, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINTS_FILE, PUBLIC_KEY_FILE, RETAINED_FILE } from './checkpoint.js';
import { syncDirectoryAsync, writeDurablyAsync } from './disk.js';
import { segmentName } from './format.js';

/**
 * Copies segments into a directory of their writer below `archive`, which is a log by itself that ends where the kept
 * one begins: its last checkpoint is what was signed of that place. The keys of fingerprints stay behind. `archive` itself is
 * never made: where a mount is away, its place must not fill the disk below it.
 */
export async function archived(dir: string, archive: string, segments: readonly number[]): Promise<void> {
  const key = await readFile(join(dir, PUBLIC_KEY_FILE));
  const writer = /^osl-audit\/([\w.-]+)\+/.exec(key.toString())?.[1] ?? 'unknown';
  const place = join(archive, writer);
  await stat(archive);
  await mkdir(place, { recursive: true, mode: 0o700 });
  for (const segment of segments)
    await copied(join(dir, segmentName(segment)), join(place, segmentName(segment)));
  await writeDurablyAsync(join(place, PUBLIC_KEY_FILE), key, 0o644);
  await writeDurablyAsync(join(place, CHECKPOINTS_FILE), await readFile(join(dir, RETAINED_FILE)), 0o644);
  await syncDirectoryAsync(place);
}

/** Whole or not at all, and on disk; a copy that is there already stays as it is. */
async function copied(from: string, to: string): Promise<void> {
  const there = await stat(to).catch(() => null);
  if (there !== null && there.size === (await stat(from)).size) return;
  await copyFile(from, `${to}.new`);
  const handle = await open(`${to}.new`, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${to}.new`, to);
}
