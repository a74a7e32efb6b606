import { existsSync } from 'node:fs';
import { opendir, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ImportText, ModelFormat } from '../../interchange/index.js';
import { EXIT, Failure } from '../exit.js';
import { note, visible } from '../output.js';

/** Limits of one import. */
const MOST_FILES = 2000;
const MOST_TEXT = 64 * 1024 * 1024;
const DEEPEST = 20;

/** Folders with copies and models of other people. */
const SKIPPED: ReadonlySet<string> = new Set([
  'node_modules',
  'target',
  'dbt_packages',
  'logs',
  'dbt_modules',
]);

/** Texts at `paths`: named files, and YAML files below folders, sorted by name. Links are not followed. */
export async function readSources(
  paths: readonly string[],
  format: ModelFormat,
): Promise<readonly ImportText[]> {
  const { readManifestText } = await import('../../src/model/manifest/index.js');
  const files: string[] = [];
  for (const path of paths) {
    const found = await stat(path);
    if (found.isDirectory()) await collect(path, format, files, 0);
    else files.push(path);
  }
  if (files.length === 0) throw new Failure(EXIT.usage, 'error: there is no YAML file at the paths given');
  let total = 0;
  const texts: ImportText[] = [];
  for (const file of files) {
    const text = await readManifestText(file);
    total += text.length;
    if (total > MOST_TEXT) throw new Failure(EXIT.usage, 'error: the files are larger than 64 MiB in all');
    texts.push({ file, text });
  }
  return texts;
}

async function collect(folder: string, format: ModelFormat, files: string[], depth: number): Promise<void> {
  if (depth > DEEPEST) throw new Failure(EXIT.usage, `error: ${visible(folder)} is nested too deeply`);
  const entries: { readonly name: string; readonly isFolder: boolean; readonly isFile: boolean }[] = [];
  for await (const entry of await opendir(folder))
    entries.push({ name: entry.name, isFolder: entry.isDirectory(), isFile: entry.isFile() });
  for (const { name, isFolder, isFile } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, name);
    if (isFolder && !name.startsWith('.') && !SKIPPED.has(name))
      await collect(path, format, files, depth + 1);
    if (!isFile) continue;
    if (/\.ya?ml$/.test(name) && !isConfiguration(path, format)) files.push(path);
    else if (format === 'cube' && /\.(js|ts|py|jinja)$/.test(name))
      note(visible(`${path}: lost: only YAML models are read`));
    if (files.length > MOST_FILES)
      throw new Failure(EXIT.usage, `error: more than ${MOST_FILES} files; name fewer paths`);
  }
}

/** Files about a dbt project rather than its data. */
function isConfiguration(path: string, format: ModelFormat): boolean {
  const own = /^(dbt_project|packages|dependencies|package-lock|selectors|profiles)\.ya?ml$/;
  return format === 'dbt' && own.test(basename(path));
}

/** Writes all files or none, and never over existing ones. */
export async function writeNew(files: readonly (readonly [string, string])[]): Promise<void> {
  for (const [file] of files)
    if (existsSync(file))
      throw new Failure(EXIT.usage, `error: ${visible(file)} exists, and is not overwritten`);
  for (const [file, text] of files) await writeFile(file, text, { flag: 'wx' });
}
