import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asObject, memberOf, objectAt, parseObject, textAt, type UncheckedObject } from './json.js';
import { DemoProblem } from './rows.js';

export interface LockEntry {
  readonly path: string;
  readonly name: string;
  /** Fields of the package: of the workspace if the entry is a link. */
  readonly facts: UncheckedObject;
  /** Workspace folder that the entry links to, or null. */
  readonly linkTo: string | null;
}

export interface Lock {
  readonly fingerprint: string;
  /** Sorted by path, without the root and workspace folders. */
  readonly entries: readonly LockEntry[];
}

/** Increase when the same lock file yields other rows. */
const FORMAT = 1;

/** @throws DemoProblem if `root` has no usable package-lock.json */
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

export async function lockFingerprint(root: string): Promise<string> {
  return fingerprintOf(root, await lockText(root));
}

/** A global installation only has npm's own copy of the lock file. */
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

/** npm's copy lists what is really installed, which `--omit=dev` and the platform change. */
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
