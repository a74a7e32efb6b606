import { existsSync, mkdtempSync, rmdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemFault, usage } from '../exit.js';

/**
 * Whether the data directory can be made or written to; leaves nothing behind. It is asked here because Node 20
 * does not return from making a directory where the system, as in /proc, lets nobody make one.
 *
 * @throws Failure
 */
export function checkDataDir(dataDir: string): void {
  const place = nearestExisting(dataDir);
  if (!statSync(place).isDirectory()) {
    throw usage(`the data directory ${dataDir} cannot be used: ${place} is not a directory`);
  }
  try {
    rmdirSync(mkdtempSync(join(place, '.osl-')));
  } catch (error) {
    const fault = systemFault(error)?.replace(/^.*: /, '') ?? 'it cannot be written to';
    throw usage(`the data directory ${dataDir} cannot be used: ${place}: ${fault}`);
  }
}

const LITTLE_MIB = 128;

/** An engine on a full disk seldom says so: what is left there, where it is little. */
export function spaceLeft(dataDir: string): string {
  const { bavail, bsize } = statfsSync(nearestExisting(dataDir));
  const mib = Math.floor((bavail * bsize) / 1_048_576);
  return mib < LITTLE_MIB ? ` (the disk of ${dataDir} is full, or nearly: ${mib} MiB are left)` : '';
}

function nearestExisting(path: string): string {
  const parent = dirname(path);
  return existsSync(path) || parent === path ? path : nearestExisting(parent);
}
