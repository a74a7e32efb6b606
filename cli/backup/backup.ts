import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { type FileHandle, link, lstat, open, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
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
import { namesIn, syncNames } from '../../src/base/files.js';
import { version } from '../../src/base/package-root.js';
import { chunksOf } from '../../src/base/tar-stream.js';
import { recordedTenant } from '../../src/service/directory-origin.js';
import { endedChains, workerChains } from '../../src/service/process-files.js';
import { auditSinkUrl } from '../../src/service/settings/groups.js';
import type { Settings } from '../../src/service/settings.js';
import { recordReading, withLog } from '../audit/log.js';
import { failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, note, print, printJson } from '../output.js';
import { runningServer } from '../server-file.js';
import { BackupWriter, ChangedDuringCopy } from './archive.js';

export interface BackupFlags {
  readonly dataDir?: string;
  readonly withKeys?: true;
  /** Longest time to retry while files keep changing, in seconds. */
  readonly wait?: number;
  readonly json?: true;
}

const WAIT_SECONDS = 60;

/** Copies the data directory into one file, completely or not at all. A server may be running in it. @throws Failure */
export async function runBackup(given: string, flags: BackupFlags): Promise<void> {
  const settings = settingsOf(flags);
  const { dataDir } = settings;
  if (!existsSync(dataDir)) throw usage(`there is no data directory ${dataDir}`);
  const file = fileFor(given);
  if (existsSync(file)) throw usage(`${file} is there already: a backup is never written over`);
  if (!existsSync(dirname(file))) throw usage(`there is no directory ${dirname(file)} to put it into`);
  const withKeys = flags.withKeys === true;
  await recordBackup(settings, withKeys);
  const made = await writeBackup(file, settings, withKeys, flags.wait ?? WAIT_SECONDS);
  const keys = withKeys ? keysText(settings) : 'not in it (--with-keys)';
  if (flags.json) {
    printJson({ file, ...made, keys: withKeys });
    return;
  }
  print(
    `${file}: ${counted(made.files, 'file', 'files')}, ${(made.bytes / 2 ** 20).toFixed(1)} MiB, of ${dataDir}`,
  );
  print(`  server        ${runningServer(dataDir) === null ? 'none runs here' : 'it ran meanwhile'}`);
  print(`  keys          ${keys}`);
  if (auditSinkUrl(settings.audit.sink) !== null)
    print('  audit log     in a Postgres (OSL_AUDIT_SINK): back that up too');
  for (const name of made.left) note(`left out: ${name}, of which nothing is known`);
  note('databases of connectors that are not embedded, manifest, policy and settings are not in it');
}

function keysText({ keysDir }: Settings): string {
  return keysDir === null
    ? 'in it: who has the file can mint tokens and undo masked hashes'
    : `those of ${keysDir} (OSL_KEYS_DIR) are not in it`;
}

/** Returns the path of the backup file. In a directory, the file is named after the current time. */
function fileFor(given: string): string {
  const path = resolve(process.cwd(), given);
  const directory = given.endsWith('/') || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!directory) return path;
  return join(path, `osl-backup-${new Date().toISOString().replace(/[:.]/g, '-')}.tar`);
}

async function recordBackup(settings: Settings, withKeys: boolean): Promise<void> {
  const dir = join(settings.dataDir, 'audit');
  if (auditSinkUrl(settings.audit.sink) !== null || (await namesIn(dir)).length === 0) return;
  await withLog({ dir }, (log) => recordReading(log, 'backup', { keys: withKeys ? 'yes' : 'no' }));
}

interface BackupSummary {
  readonly files: number;
  readonly bytes: number;
  /** Entries of the data directory that were not copied because they are neither in `PARTS` nor `PASSING`. */
  readonly left: readonly string[];
}

/** INVARIANT: a killed process leaves at most a temporary file, never a partial backup. */
async function writeBackup(
  file: string,
  settings: Settings,
  withKeys: boolean,
  wait: number,
): Promise<BackupSummary> {
  const part = join(dirname(file), `.${basename(file)}.${randomBytes(4).toString('hex')}.part`);
  const handle = await open(part, 'wx', 0o600);
  try {
    const made = await writeParts(handle, settings, withKeys, wait);
    await link(part, file);
    await syncNames(dirname(file));
    return made;
  } catch (error) {
    if (!(error instanceof ChangedDuringCopy)) throw error;
    throw failure(
      `${error.message}, and did not stand still within ${wait} s: try again (--wait has it try for longer), or stop the server`,
    );
  } finally {
    await handle.close();
    await rm(part, { force: true });
  }
}

/**
 * Copy method for each entry of the data directory, in the order of copying (`still`: databases, each copied again
 * until nothing changes during the copy). The audit log comes last because it describes the others.
 */
const PARTS: readonly (readonly [name: string, how: 'file' | 'files' | 'still' | 'audit'])[] = [
  ['keys', 'files'],
  ['control-policy.yaml', 'file'],
  ['published', 'files'],
  ['lineage', 'files'],
  ['break-glass', 'files'],
  ['overlaps', 'files'],
  ['approvals', 'files'],
  ['revoked', 'files'],
  ['reranking', 'files'],
  ['decoding', 'files'],
  ['pg', 'still'],
  ['audit', 'audit'],
];

/** Files specific to this machine or to a running process, which are not copied. */
const PASSING =
  /^(server\.json.*|drained|place\.json|restored\.json|spool|catalog|compiling.*|keys-.*|.*\.(new|lock))$/;

async function writeParts(
  handle: FileHandle,
  settings: Settings,
  withKeys: boolean,
  wait: number,
): Promise<BackupSummary> {
  const { dataDir } = settings;
  const backup = new BackupWriter(handle);
  const deadline = performance.now() + wait * 1_000;
  const made = new Date().toISOString();
  await backup.begin({
    format: 1,
    made,
    version: version(),
    tenant: recordedTenant(dataDir),
    keys: withKeys,
  });
  for (const [name, how] of PARTS) {
    const from = join(dataDir, name);
    if (!existsSync(from) || (name === 'keys' && !withKeys)) continue;
    await backup.retryWhileChanging(deadline, async () => {
      if (how === 'file') await copyOne(from, name, backup);
      // `head` names an existing version: copying `head` first ensures that the backup contains that version.
      else if (how === 'files') await copyFiles(from, name, backup, ['head']);
      else if (how === 'audit') await copyAudit(from, withKeys, backup);
    });
    if (how === 'still') await copyDatabases(from, name, backup, deadline);
  }
  await backup.end();
  const known = new Set(PARTS.map(([name]) => name));
  const left = (await readdir(dataDir)).filter((name) => !known.has(name) && !PASSING.test(name));
  return { files: backup.files, bytes: backup.bytes, left };
}

/** Copies each database separately, so that a busy one does not hold up the others. */
async function copyDatabases(
  from: string,
  to: string,
  backup: BackupWriter,
  deadline: number,
): Promise<void> {
  await backup.directory(to);
  for (const entry of await readdir(from, { withFileTypes: true }))
    if (entry.isDirectory())
      await backup.retryWhileChanging(deadline, () =>
        copyUnchanged(join(from, entry.name), `${to}/${entry.name}`, backup),
      );
}

/** Generous upper estimate of the resolution of file system timestamps, ms. */
const CLOCK_MS = 50;

/**
 * Copies a directory whose files may change at any time, such as a database. If nothing changed from before the copy
 * until after it, the copy is a state that a crash could have left, and the database can recover from it.
 *
 * @throws ChangedDuringCopy if something changed
 */
export async function copyUnchanged(from: string, to: string, backup: BackupWriter): Promise<void> {
  const before = await listTree(from);
  // Any change after this point gets a timestamp that differs from all earlier ones.
  await sleep(CLOCK_MS);
  await backup.directory(to);
  for (const { path, size } of before) {
    if (size === null) await backup.directory(`${to}/${path}`);
    else await copyFile(join(from, path), `${to}/${path}`, size, backup);
  }
  const after = await listTree(from);
  if (JSON.stringify(before.map(stamp)) !== JSON.stringify(after.map(stamp)))
    throw new ChangedDuringCopy(`${from} is being written to`);
}

/** Copies files that are only ever appended to or replaced as a whole: those in `first`, then the rest by name. */
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
 * Copies the audit log. Checkpoints of a chain are copied before its segments, so that no checkpoint covers records
 * missing from the copy. Signing keys are left out, because a restored chain is never continued.
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
  if (key === null) return; // the worker was killed right at its start
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
    const key = join(dir, keyName(number));
    // An operator may have destroyed the key, so that names in the segment cannot be found any more.
    if (withKeys && existsSync(key)) await backup.bytesOf(`${to}/${keyName(number)}`, await readFile(key));
  }
  if (!retained.equals(await source.retained())) throw new ChangedDuringCopy('older records were let go');
}

interface DirectoryEntry {
  readonly path: string;
  /** Size in bytes; null for a directory. */
  readonly size: number | null;
  readonly changed: string;
}

function stamp({ path, size, changed }: DirectoryEntry): readonly unknown[] {
  return [path, size, changed];
}

/** Lists all entries below a directory, parents before their contents. */
async function listTree(root: string, within = ''): Promise<readonly DirectoryEntry[]> {
  const seen: DirectoryEntry[] = [];
  for (const name of (await readdir(join(root, within))).sort()) {
    if (isPassing(name)) continue;
    const path = within === '' ? name : `${within}/${name}`;
    const { ctimeNs, ino, size, ...is } = await lstat(join(root, path), { bigint: true });
    const directory = (Number(is.mode) & 0o170000) === 0o040000;
    const changed = `${ino} ${ctimeNs}`;
    seen.push({ path, size: directory ? null : Number(size), changed });
    if (directory) seen.push(...(await listTree(root, path)));
  }
  return seen;
}

/** True for temporary files, locks, and files still being written. */
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
