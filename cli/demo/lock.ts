import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asObject, memberOf, objectAt, parseObject, textAt, type UncheckedObject } from './json.js';
import { DemoProblem } from './rows.js';

/** An entry of the lock file's `packages` under `node_modules/`. */
export interface LockEntry {
  readonly path: string;
  readonly name: string;
  /** The entry with the package's facts: its own, or the workspace's where it is a link. */
  readonly facts: UncheckedObject;
  /** The workspace folder that it is a link to, or null. */
  readonly linkTo: string | null;
}

export interface Lock {
  readonly fingerprint: string;
  /** In order of path. The root (`""`) and workspace folders are the project itself, not packages of it. */
  readonly entries: readonly LockEntry[];
}

/** Raise when the rows made of one lock file change. */
const FORMAT = 1;

/**
 * @throws DemoProblem where `root` has no usable package-lock.json
 */
export async function readLock(root: string): Promise<Lock> {
  const text = await lockText(root);
  const packages = objectAt(parseObject(text), 'packages');
  if (packages === null)
    throw new DemoProblem(`${join(root, 'package-lock.json')} lists no packages: npm 7 or newer writes it`);
  const entries = Object.keys(packages)
    .filter(isInstalledPath)
    .sort()
    .map((path) => entryOf(path, packages));
  return { fingerprint: await fingerprintOf(root, text), entries };
}

/** What `readLock` would give as fingerprint, at the cost of reading two files. */
export async function lockFingerprint(root: string): Promise<string> {
  return fingerprintOf(root, await lockText(root));
}

/** The lock file; what was installed for all users has npm's own note of it instead. */
async function lockText(root: string): Promise<string> {
  for (const name of ['package-lock.json', INSTALLED]) {
    const text = await readFile(join(root, name), 'utf8').catch(() => null);
    if (text !== null) return text;
  }
  throw new DemoProblem(
    `cannot read ${join(root, 'package-lock.json')}: the demo shows the installation itself, so run \`npm ci\` there`,
  );
}

const INSTALLED = join('node_modules', '.package-lock.json');

/** The second file is npm's note of what it really installed, which `--omit=dev` and platforms change. */
async function fingerprintOf(root: string, lock: string): Promise<string> {
  const installed = await readFile(join(root, INSTALLED), 'utf8').catch(() => '');
  return createHash('sha256').update(`${FORMAT}\0${lock}\0${installed}`).digest('hex');
}

function isInstalledPath(path: string): boolean {
  return path.startsWith('node_modules/') && !path.split('/').includes('..') && !path.includes('\0');
}

function entryOf(path: string, packages: UncheckedObject): LockEntry {
  const own = asObject(memberOf(packages, path)) ?? {};
  const linkTo = own['link'] === true ? textAt(own, 'resolved') : null;
  const facts = linkTo === null ? own : (objectAt(packages, linkTo) ?? own);
  const folder = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  return { path, name: textAt(facts, 'name') ?? folder, facts, linkTo };
}
