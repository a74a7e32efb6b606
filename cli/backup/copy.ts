import { lstat, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CHECKPOINTS_FILE,
  directorySource,
  keyName,
  LATEST_FILE,
  PUBLIC_KEY_FILE,
  RETAINED_FILE,
  segmentName,
} from '../../audit/index.js';
import { namesIn } from '../../src/base/files.js';
import { chunksOf } from '../../src/base/tar-stream.js';
import { endedChains, workerChains } from '../../src/service/seat.js';
import { type BackupWriter, ChangedDuringCopy } from './archive.js';

/** Resolution of file system timestamps, generously. */
const CLOCK_MS = 50;

/**
 * Copies a directory whose files change at any time, such as a database, while nothing changes. If nothing changed from
 * before the copy until after it, the copy is a state that a crash could have left, from which the database recovers.
 *
 * @throws ChangedDuringCopy if something changed
 */
export async function copyStill(from: string, to: string, backup: BackupWriter): Promise<void> {
  const before = await lookAt(from);
  // A change after this point gets a timestamp that differs from all seen before.
  await sleep(CLOCK_MS);
  await backup.directory(to);
  for (const { path, size } of before) {
    if (size === null) await backup.directory(`${to}/${path}`);
    else await copyFile(join(from, path), `${to}/${path}`, size, backup);
  }
  const after = await lookAt(from);
  if (JSON.stringify(before.map(stamp)) !== JSON.stringify(after.map(stamp)))
    throw new ChangedDuringCopy(`${from} is being written to`);
}

/** Copies files that are each replaced as a whole or only appended to: those in `first`, then by name. */
export async function copyFiles(
  from: string,
  to: string,
  backup: BackupWriter,
  first: readonly string[] = [],
): Promise<void> {
  await backup.directory(to);
  const names = (await readdir(from, { withFileTypes: true })).filter(({ name }) => !isPassing(name));
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  names.sort((a, b) => rank(a.name) - rank(b.name) || (a.name < b.name ? -1 : 1));
  for (const entry of names) {
    const path = join(from, entry.name);
    if (entry.isDirectory()) await copyFiles(path, `${to}/${entry.name}`, backup);
    else if (entry.isFile()) await backup.bytesOf(`${to}/${entry.name}`, await readFile(path));
  }
}

export async function copyOne(from: string, to: string, backup: BackupWriter): Promise<void> {
  await backup.bytesOf(to, await readFile(from));
}

/**
 * Copies the audit log. Of each chain the checkpoints come before the segments, so that no checkpoint covers records
 * missing in the copy. Signing keys are left out: a restored chain is never continued.
 *
 * @throws ChangedDuringCopy if segments were pruned meanwhile
 */
export async function copyAudit(dir: string, withKeys: boolean, backup: BackupWriter): Promise<void> {
  await backup.directory('audit');
  const chains = [dir, ...workerChains(dir).map((chain) => chain.dir), ...endedChains(dir)];
  for (const chain of chains) await copyChain(chain, `audit${chain.slice(dir.length)}`, withKeys, backup);
  const readings = await namesIn(join(dir, 'readings'));
  if (readings.length > 0) await copyFiles(join(dir, 'readings'), 'audit/readings', backup);
}

async function copyChain(dir: string, to: string, withKeys: boolean, backup: BackupWriter): Promise<void> {
  const source = directorySource(dir);
  const key = await source.verifierKey();
  if (key === null) return; // a worker that was killed at its very start
  const retained = await source.retained();
  const notes: readonly (readonly [name: string, bytes: Buffer])[] = [
    [PUBLIC_KEY_FILE, Buffer.from(key)],
    [LATEST_FILE, await source.latest()],
    [CHECKPOINTS_FILE, await source.checkpoints()],
    [RETAINED_FILE, retained],
  ];
  if (to !== 'audit') await backup.directory(to);
  for (const [name, bytes] of notes) if (bytes.length > 0) await backup.bytesOf(`${to}/${name}`, bytes);
  const segments = await source.segments();
  for (const number of segments) {
    // The last segment may be open for writing, and the one before may not be truncated yet.
    const live = segments.indexOf(number) >= segments.length - 2;
    await backup.bytesOf(`${to}/${segmentName(number)}`, await source.segment(number, live));
    if (withKeys)
      await backup.bytesOf(`${to}/${keyName(number)}`, await readFile(join(dir, keyName(number))));
  }
  if (!retained.equals(await source.retained())) throw new ChangedDuringCopy('older records were let go');
}

interface DirectoryEntry {
  readonly path: string;
  /** Null for a directory. */
  readonly size: number | null;
  readonly changed: string;
}

function stamp({ path, size, changed }: DirectoryEntry): readonly unknown[] {
  return [path, size, changed];
}

/** All entries below a directory, parents before their contents. */
async function lookAt(root: string, within = ''): Promise<readonly DirectoryEntry[]> {
  const seen: DirectoryEntry[] = [];
  for (const name of (await readdir(join(root, within))).sort()) {
    if (isPassing(name)) continue;
    const path = within === '' ? name : `${within}/${name}`;
    const { ctimeNs, ino, size, ...is } = await lstat(join(root, path), { bigint: true });
    const directory = (Number(is.mode) & 0o170000) === 0o040000;
    const changed = `${ino} ${ctimeNs}`;
    seen.push({ path, size: directory ? null : Number(size), changed });
    if (directory) seen.push(...(await lookAt(root, path)));
  }
  return seen;
}

/** Temporary files, locks, and files being written. */
function isPassing(name: string): boolean {
  return /^pgsql_tmp|^postmaster\.(pid|opts)$|\.(lock|new|making|tmp)$/.test(name);
}

async function copyFile(from: string, to: string, size: number, backup: BackupWriter): Promise<void> {
  const file = await open(from, 'r');
  try {
    await backup.file(to, size, chunksOf(file, 0, size));
  } finally {
    await file.close();
  }
}
