import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

/** A package whose code is bundled into ours. */
export interface TakenIn {
  readonly name: string;
  readonly version: string;
  /** SPDX expression, or the text that the package states instead. */
  readonly licence: string;
  /** Path relative to the root of the repository. */
  readonly folder: string;
}

/** A `package.json` of a package or a workspace. */
interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const FOLDER = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** Folders of the packages that contributed code to the bundle. */
export function bundled({ outputs }: Metafile): readonly string[] {
  const files = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
  return [...new Set(files.flatMap((file) => FOLDER.exec(file)?.[1] ?? []))];
}

/** Folders of the packages that the console may contain: its dependencies and theirs, transitively. */
export function ofConsole(root: string): readonly string[] {
  const found = new Set<string>();
  const visit = (from: string, names: readonly string[]): void => {
    for (const name of names) {
      const folder = installed(root, from, name);
      if (folder === null || found.has(folder)) continue;
      found.add(folder);
      visit(folder, Object.keys(fileOf(root, folder).dependencies ?? {}));
    }
  };
  visit('console', Object.keys(fileOf(root, 'console').dependencies ?? {}));
  return [...found];
}

/** Folder in which Node finds `name`, starting from folder `from`; both relative to `root`. Null if not installed. */
function installed(root: string, from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const found = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (existsSync(join(root, found, 'package.json'))) return found;
    if (folder === '') return null;
  }
}

function fileOf(root: string, folder: string): PackageFile {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as PackageFile;
}

/** Bundled packages sorted by name, without duplicates. @throws Error if a package states no licence */
export function takenIn(root: string, folders: readonly string[]): readonly TakenIn[] {
  const all = folders.map((folder) => {
    const { name, version, license } = fileOf(root, folder);
    if (license === undefined) throw new Error(`${name} says nothing of its terms`);
    return { name, version, licence: license, folder };
  });
  const byName = new Map(all.map((taken) => [`${taken.name}@${taken.version}`, taken]));
  return [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, taken]) => taken);
}

/** Licence texts of the packages, which their terms require to be included in copies. */
export function licencesOf(root: string, packages: readonly TakenIn[]): string {
  const head = 'OSL Gateway contains code of these packages, under their own terms.\n';
  return [head, ...packages.map((taken) => licenceOf(root, taken))].join(`\n${'-'.repeat(80)}\n\n`);
}

function licenceOf(root: string, { name, version, licence, folder }: TakenIn): string {
  const files = readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|copying|notice)/i.test(entry.name))
    .map((entry) => entry.name);
  const texts = files.toSorted().map((file) => readFileSync(join(root, folder, file), 'utf8').trim());
  return [`${name} ${version} (${licence})`, ...texts].join('\n\n').concat('\n');
}
