import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

/** A package whose code is in ours. */
export interface TakenIn {
  readonly name: string;
  readonly version: string;
  /** As an SPDX expression, or what the package says instead. */
  readonly licence: string;
  /** Relative to the root of the repository. */
  readonly folder: string;
}

/** npm's own file, of a package or of a workspace. */
interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const FOLDER = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** The packages of which something is in what esbuild made. */
export function bundled({ outputs }: Metafile): readonly string[] {
  const files = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
  return [...new Set(files.flatMap((file) => FOLDER.exec(file)?.[1] ?? []))];
}

/** The packages that pages of the console may have something of: what it names, and what those name. */
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

/** Where Node finds `name` from a folder, relative to `root`. */
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

/** By name, each once. @throws Error where one says nothing of its terms */
export function takenIn(root: string, folders: readonly string[]): readonly TakenIn[] {
  const all = folders.map((folder) => {
    const { name, version, license } = fileOf(root, folder);
    if (license === undefined) throw new Error(`${name} says nothing of its terms`);
    return { name, version, licence: license, folder };
  });
  const byName = new Map(all.map((taken) => [`${taken.name}@${taken.version}`, taken]));
  return [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, taken]) => taken);
}

/** Their licences, one after another, as each asks for in copies. */
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
