import { createHash } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject } from '../../src/base/is-object.js';
import { licenseOf } from './license.js';
import {
  type CreditRole,
  type CreditRow,
  DemoProblem,
  type DocumentRow,
  type PackageRow,
  type PersonRow,
} from './tables.js';

export type Person = Omit<PersonRow, 'id'>;

interface PackageCredit {
  readonly person: Person;
  readonly role: CreditRole;
}

const KEYS: readonly (readonly [string, CreditRole])[] = [
  ['author', 'author'],
  ['maintainers', 'maintainer'],
  ['contributors', 'contributor'],
];

export function peopleIn(packageJson: unknown): readonly PackageCredit[] {
  return KEYS.flatMap(([key, role]) =>
    listAt(packageJson, key).flatMap((entry) => {
      const person = personOf(entry);
      return person === null ? [] : [{ person, role }];
    }),
  );
}

const LONGEST = 300;
const ADDRESS = /[^\s<>()@,;]+@[^\s<>()@,;]+\.[^\s<>()@,;]+/;

/** Parses `Name <email> (url)`, or an object with these members; null if name and email are both missing. */
export function personOf(entry: unknown): Person | null {
  const object = asObject(entry);
  const text = object === null ? asText(entry) : textAt(object, 'name');
  const spelled = parseText((text ?? '').slice(0, LONGEST));
  const url = textAt(object, 'url') ?? textAt(object, 'web') ?? spelled.url;
  const email = addressIn(textAt(object, 'email')) ?? spelled.email ?? addressIn(url);
  if (spelled.name === null && email === null) return null;
  // An email address must not appear in the name or URL, because only the email column is declared personal.
  return { name: spelled.name ?? 'unnamed', email, url: addressIn(url) === null ? linkOf(url) : null };
}

function parseText(text: string): {
  readonly name: string | null;
  readonly email: string | null;
  readonly url: string | null;
} {
  const email = addressIn(/<([^>]*)>/.exec(text)?.[1] ?? null) ?? addressIn(text);
  const url = /\(([^)]*)\)/.exec(text)?.[1] ?? null;
  const rest = text.replace(/<[^>]*>?|\([^)]*\)?/g, ' ').replace(new RegExp(ADDRESS, 'g'), ' ');
  return { name: asText(rest.replace(/\s+/g, ' ').replace(/^[\s,;]+|[\s,;]+$/g, '')), email, url };
}

function addressIn(text: string | null): string | null {
  return ADDRESS.exec((text ?? '').slice(0, LONGEST).replace(/^mailto:/i, ''))?.[0] ?? null;
}

function linkOf(url: string | null): string | null {
  const text = asText(url)?.slice(0, LONGEST) ?? null;
  if (text === null) return null;
  return /^https?:\/\//i.test(text) ? text : /^[\w-]+(\.[\w-]+)+(\/|$)/.test(text) ? `https://${text}` : null;
}

/**
 * People and credits of all packages. A person is identified by name and address, ignoring case.
 *
 * Ids are numbered in the order of the lock file. A hash of the address would let readers without access to it confirm
 * a guess.
 */
export function creditsOf(
  named: readonly (readonly [packagePath: string, people: readonly PackageCredit[]])[],
): {
  readonly people: readonly PersonRow[];
  readonly credits: readonly CreditRow[];
} {
  const people = new Map<string, PersonRow>();
  const credits = new Map<string, CreditRow>();
  for (const [package_path, entries] of named) {
    for (const { person, role } of entries) {
      const identity = JSON.stringify([person.name.toLowerCase(), person.email?.toLowerCase() ?? null]);
      const known = people.get(identity);
      const row = known ?? { id: `p${`${people.size + 1}`.padStart(4, '0')}`, ...person };
      if (known === undefined || (known.url === null && person.url !== null))
        people.set(identity, { ...row, url: row.url ?? person.url });
      credits.set(`${row.id} ${role} ${package_path}`, { person_id: row.id, package_path, role });
    }
  }
  return { people: [...people.values()], credits: [...credits.values()] };
}

/** A JSON object from third parties. The functions below treat a value of an unexpected type as missing. */
type UncheckedObject = Readonly<Record<string, unknown>>;

export function objectAt(value: unknown, key: string): UncheckedObject | null {
  return asObject(memberOf(value, key));
}

/** Text without NUL, which Postgres cannot store; null if it is absent, blank or not text. */
function textAt(value: unknown, key: string): string | null {
  return asText(memberOf(value, key));
}

export function asText(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const text = value.replaceAll('\0', '').trim();
  return text === '' ? null : text;
}

function asObject(value: unknown): UncheckedObject | null {
  return isObject(value) ? value : null;
}

function memberOf(value: unknown, key: string): unknown {
  const object = asObject(value);
  return object !== null && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Returns a list unchanged, any other value as a one-element list, and an empty list if the key is missing. */
function listAt(value: unknown, key: string): readonly unknown[] {
  const member = memberOf(value, key);
  if (member === undefined || member === null) return [];
  return Array.isArray(member) ? member : [member];
}

/** Parses a JSON object; null if `text` is anything else. */
function parseObject(text: string): UncheckedObject | null {
  try {
    return asObject(JSON.parse(text.replace(/^\ufeff/, '')));
  } catch {
    return null;
  }
}

export interface InstalledPackage {
  readonly entry: LockEntry;
  readonly row: Omit<PackageRow, 'dependents'>;
  readonly people: readonly PackageCredit[];
  readonly documents: readonly DocumentRow[];
}

/**
 * Reads the package that `entry` installed below `root`; null if it is not on disk (meant for another platform, or
 * omitted). A link to a workspace has the workspace's data, but no files.
 */
export async function readPackage(root: string, entry: LockEntry): Promise<InstalledPackage | null> {
  const folder = join(root, entry.path);
  if (!(await isFolder(folder))) return null;
  const [json, size, documents] = await Promise.all([
    packageJsonIn(folder),
    sizeOf(folder),
    documentsIn(folder, entry.path),
  ]);
  const row = {
    path: entry.path,
    name: entry.name,
    version: textAt(entry.facts, 'version') ?? textAt(json, 'version') ?? '0.0.0',
    ...licenseOf(statedLicense(entry.facts) ?? statedLicense(json)),
    dev: entry.facts['dev'] === true,
    optional: entry.facts['optional'] === true,
    install_bytes: size.bytes,
    file_count: size.files,
    has_types: hasTypes(json),
    engines_node:
      textAt(objectAt(json, 'engines'), 'node') ?? textAt(objectAt(entry.facts, 'engines'), 'node'),
    homepage: textAt(json, 'homepage'),
    repository: repositoryOf(json),
  };
  return { entry, row, people: peopleIn(json), documents };
}

/** @throws DemoProblem if the path exists and cannot be examined, so that no package is omitted silently */
async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException; // the type of errors from Node's file system
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw new DemoProblem(`cannot read an installed package: ${message}`);
  }
}

async function packageJsonIn(folder: string): Promise<UncheckedObject> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '');
  return parseObject(text) ?? {};
}

/**
 * The license stated in `license`, as text or `{type}`, and in the older list `licenses`. Several are joined by OR,
 * because the user may choose one; null if none is stated.
 */
function statedLicense(json: UncheckedObject): string | null {
  const licenses = [...listAt(json, 'license'), ...listAt(json, 'licenses')];
  const names = licenses.map((l) => asText(l) ?? textAt(l, 'type')).filter((l) => l !== null);
  return names.length === 0 ? null : [...new Set(names)].join(' OR ');
}

function hasTypes(json: UncheckedObject): boolean {
  return (
    textAt(json, 'types') !== null ||
    textAt(json, 'typings') !== null ||
    namesTypes(memberOf(json, 'exports'), 0)
  );
}

function namesTypes(exports: unknown, depth: number): boolean {
  const object = asObject(exports);
  if (object === null || depth > 8) return false;
  return Object.entries(object).some(([key, value]) => key === 'types' || namesTypes(value, depth + 1));
}

const HOSTS: ReadonlyMap<string, string> = new Map([
  ['github', 'github.com'],
  ['gitlab', 'gitlab.com'],
  ['bitbucket', 'bitbucket.org'],
]);

/** The repository as an https URL if its notation is known (`owner/name`, `git+`, ssh); else as stated. */
function repositoryOf(json: UncheckedObject): string | null {
  const stated = textAt(json, 'repository') ?? textAt(objectAt(json, 'repository'), 'url');
  if (stated === null) return null;
  const short = /^(?:(github|gitlab|bitbucket):)?([\w.-]+\/[\w.-]+)$/.exec(stated);
  if (short !== null) return `https://${HOSTS.get(short[1] ?? 'github')}/${short[2]?.replace(/\.git$/, '')}`;
  return stated
    .replace(/^git\+/, '')
    .replace(/^(ssh|git|http):\/\/(?:[^@/]+@)?([^/:]+)[/:]/, 'https://$2/')
    .replace(/^[^@/\s]+@([^/:]+)[/:]/, 'https://$1/')
    .replace(/\.git$/, '');
}

interface Size {
  readonly bytes: number;
  readonly files: number;
}

/**
 * Total size and number of the regular files below `folder`, without symbolic links and directories named
 * `node_modules` (other packages). Both are 0 if `folder` itself is a link.
 */
async function sizeOf(folder: string): Promise<Size> {
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

/** README and CHANGELOG of a package; empty if the folder is a symbolic link. */
async function documentsIn(folder: string, packagePath: string): Promise<readonly DocumentRow[]> {
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

/** Maximum size of a document in bytes. The largest README that we found on npm is 300 KiB. */
const LARGEST_DOCUMENT = 1024 * 1024;

/** Reads at most `LARGEST_DOCUMENT` bytes, without NUL, which Postgres cannot store. */
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

export interface LockEntry {
  readonly path: string;
  readonly name: string;
  /** Fields of the package, or of the workspace if the entry is a link. */
  readonly facts: UncheckedObject;
  /** Workspace folder that the entry links to; null if it is not a link. */
  readonly linkTo: string | null;
}

export interface Lock {
  readonly fingerprint: string;
  /** Entries sorted by path, without those of the root and workspace folders. */
  readonly entries: readonly LockEntry[];
}

/** Increase this when the same lock file produces different rows. */
const FORMAT = 1;

/** Reads the lock file of an installation. @throws DemoProblem if `root` has no usable package-lock.json */
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

/** Reads the lock file. A global installation has only npm's own copy of it. */
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

/**
 * Fingerprint of an installation. Includes npm's copy of the lock file, which lists the packages actually installed:
 * they depend on `--omit=dev` and the platform.
 */
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
