import { existsSync } from 'node:fs';
import { opendir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import type { ImportResult, ImportText, ModelFormat, ModelImportOptions } from '../../interchange/index.js';
import type { PolicyDocument } from '../../policy/document.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { isName } from '../../src/model/manifest/name.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT, usage } from '../exit.js';
import { besideManifest, manifestOption, policyOption, type ServerFlags, settingsOfModel } from '../flags.js';
import { note, print, printJson, visible } from '../output.js';
import { withPostgres } from './discover.js';

interface ImportFlags {
  readonly out?: string;
  readonly policyOut?: string;
  readonly connector: string;
  readonly schema: string;
  readonly tenant?: string;
  readonly key?: ReadonlyMap<string, readonly string[]>;
  readonly embedded?: true;
  readonly url?: string;
  readonly withPolicy?: true;
  readonly strict?: true;
  readonly json?: true;
}

const HELP = `
Prints a manifest that loads, and on standard error what of the source is not in it, each with its place:
  lost          nothing of it is in the manifest
  approximated  something is, and means nearly the same
  decision      something was assumed that a person has to look at
With --out a policy goes beside the manifest. It has no subjects: nobody sees anything until somebody is granted it.
Files that exist are not overwritten. Templates are never evaluated. docs/interchange.md says what maps to what.

Exit status: 0 also where something was lost; with --strict 1 then. 2 for a file of the wrong shape.

Examples:
  $ osl import dbt models/ --schema analytics --out manifest.yaml
  $ osl import cube model/cubes --url "$DATABASE_URL" --out manifest.yaml    # types and keys from the database
  $ osl import ossie model.yaml --json | jq '.losses[].reason'`;

export function addImport(program: Command): void {
  program
    .command('import')
    .addArgument(new Argument('<format>', 'of the files').choices(['ossie', 'dbt', 'cube']))
    .argument('<paths...>', 'files, and folders of YAML files')
    .option('--out <file>', 'write the manifest there, and policy.yaml beside it')
    .option('--policy-out <file>', 'write the policy there instead')
    .option('--connector <name>', 'the connector of tables for which the source names none', nameOf, 'db')
    .option('--schema <name>', 'the schema of tables for which the source names none', nameOf, 'public')
    .option('--tenant <name>', 'the tenant (default: the name of an Ossie model, or main)', nameOf)
    .option('--key <entity=columns>', 'a primary key, `orders=order_id,line`; may be given again', keyOf)
    .option('--embedded', 'connectors are the embedded engine, not a Postgres')
    .option('--url <url>', 'a Postgres that knows the types, the keys and what may be NULL')
    .option('--with-policy', 'take the policy that an Ossie file of this gateway carries')
    .option('--strict', 'fail where anything at all is reported')
    .option('--json', 'manifest, policy and report as JSON on standard output')
    .addHelpText('after', HELP)
    .action(runImport);
}

function keyOf(
  text: string,
  before: ReadonlyMap<string, readonly string[]> | undefined,
): ReadonlyMap<string, readonly string[]> {
  const [, entity = '', columns = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  const key = columns.split(',').map((c) => c.trim());
  if (entity === '' || key.includes(''))
    throw new InvalidArgumentError('It must be like orders=order_id,line.');
  return new Map([...(before ?? []), [entity.trim(), key]]);
}

async function runImport(format: ModelFormat, paths: readonly string[], flags: ImportFlags): Promise<void> {
  const { ready } = await import('osl-compiler');
  const { importModel } = await import('../../interchange/index.js');
  const texts = await readSources(paths, format);
  await ready();
  const imported = importModel(format, texts, await optionsOf(flags));
  const { manifestYaml, policyYaml } = await yamlOf(imported);
  if (flags.json) {
    const { document, policy, losses } = imported;
    printJson({ manifest: document, policy, manifest_yaml: manifestYaml, policy_yaml: policyYaml, losses });
  } else await report(imported, flags);
  const policyFile = policyFileOf(flags);
  await writeNew([
    ...(flags.out === undefined ? [] : [[flags.out, manifestYaml] as const]),
    ...(policyFile === null ? [] : [[policyFile, policyYaml] as const]),
  ]);
  if (flags.out === undefined && !flags.json) print(manifestYaml.trimEnd());
  if (flags.strict && imported.losses.length > 0) process.exitCode = EXIT.failed;
}

/** The file for the policy: that of the flag, otherwise beside the manifest; null if neither is written to a file. */
function policyFileOf({ out, policyOut }: ImportFlags): string | null {
  return policyOut ?? (out === undefined ? null : join(dirname(out), 'policy.yaml'));
}

function nameOf(text: string): string {
  if (isName(text)) return text;
  throw new InvalidArgumentError('It must be a name: letters, digits and underscores, no digit first.');
}

async function report({ losses, manifest }: ImportResult, flags: ImportFlags): Promise<void> {
  const { countLosses, formatLoss } = await import('../../interchange/index.js');
  for (const loss of losses) note(visible(formatLoss(loss)));
  const size = `${manifest.entities.size} entities, ${manifest.catalog.metrics.size} metrics`;
  note(`${size}; ${countLosses(losses)}`);
  if (policyFileOf(flags) === null) note('no policy was written: --out writes one beside the manifest');
}

async function yamlOf(imported: ImportResult): Promise<{ manifestYaml: string; policyYaml: string }> {
  const { manifestText, policyText } = await import('../../interchange/index.js');
  return { manifestYaml: manifestText(imported.document), policyYaml: policyText(imported.policy) };
}

async function optionsOf(flags: ImportFlags): Promise<ModelImportOptions> {
  const { readUpstream } = await import('../../src/model/discovery/index.js');
  return {
    connector: flags.connector,
    kind: flags.embedded ? 'pglite' : 'postgres',
    schema: flags.schema,
    tenant: flags.tenant ?? null,
    keys: flags.key ?? new Map(),
    upstream: flags.url === undefined ? null : await withPostgres(flags.url, readUpstream),
    withPolicy: flags.withPolicy === true,
  };
}

interface ModelExportFlags extends ServerFlags {
  readonly out?: string;
  readonly withPolicy?: true;
  readonly strict?: true;
}

const EXPORT_HELP = `
Prints the manifest as Apache Ossie, and on standard error what other tools will not understand of it. That is in an
extension beside the core, so that osl import gives back the same manifest. Labels of sensitivity go with it; who may
see what does not, unless --with-policy says so: then everybody who has the file can read the names of subjects, roles
and attributes in it. The verifiers of service accounts never leave.

Exit status: 0 also where something did not map; with --strict 1 then.

Examples:
  $ osl export ossie --manifest manifest.yaml --out model.ossie.yaml
  $ osl export ossie --json | jq '.ossie.semantic_model[0].metrics[].name'`;

export function addExport(program: Command): void {
  program
    .command('export')
    .addArgument(new Argument('<format>', 'of the file').choices(['ossie']))
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--data-dir <dir>', 'with what was published by API to the server of this directory')
    .option('--out <file>', 'write it there')
    .option('--with-policy', 'write the policy too, without service accounts')
    .option('--strict', 'fail where anything at all is reported')
    .option('--json', 'the model and the report as JSON on standard output')
    .addHelpText('after', EXPORT_HELP)
    .action(runExport);
}

async function runExport(_format: 'ossie', flags: ModelExportFlags): Promise<void> {
  const settings = settingsOfModel(besideManifest(flags));
  const { manifestFile, policyFile } = settings;
  const { ready } = await import('osl-compiler');
  const { readManifestText } = await import('../../src/model/manifest/index.js');
  const { countLosses, exportModel, formatLoss, ossieText } = await import('../../interchange/index.js');
  const [text] = await Promise.all([readManifestText(manifestFile), ready()]);
  const policy = flags.withPolicy ? await policyOf(policyFile) : null;
  const served = flags.dataDir === undefined ? null : await servedManifest(settings);
  const { ossie, losses } = exportModel({ file: manifestFile, text }, policy, served);
  if (flags.json) printJson({ ossie, losses });
  else {
    for (const loss of losses) note(visible(formatLoss(loss)));
    note(countLosses(losses));
  }
  if (flags.out !== undefined) await writeNew([[flags.out, ossieText(ossie)]]);
  else if (!flags.json) print(ossieText(ossie).trimEnd());
  if (flags.strict && losses.length > 0) process.exitCode = EXIT.failed;
}

async function policyOf(file: string): Promise<PolicyDocument> {
  const { loadPolicyDocument } = await import('../../src/model/manifest/index.js');
  return (await loadPolicyDocument(file)).document;
}

/** The manifest including changes published on top of the file. */
async function servedManifest(settings: Settings): Promise<Manifest> {
  const { loadServed } = await import('../../src/service/model.js');
  return (await loadServed(settings)).manifest;
}

/** Limits of one import: number of files, total size in bytes, and depth of nested folders. */
const MOST_FILES = 2000;
const MOST_TEXT = 64 * 1024 * 1024;
const DEEPEST = 20;

/** Folders that contain copies or other projects' models. */
const SKIPPED: ReadonlySet<string> = new Set([
  'node_modules',
  'target',
  'dbt_packages',
  'logs',
  'dbt_modules',
]);

/**
 * Reads the files in `paths` and, in order of name, the YAML files in folders and their subfolders. Links inside
 * folders are skipped.
 */
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
  if (files.length === 0) throw usage('there is no YAML file at the paths given');
  let total = 0;
  const texts: ImportText[] = [];
  for (const file of files) {
    const text = await readManifestText(file);
    total += Buffer.byteLength(text);
    if (total > MOST_TEXT) throw usage('the files are larger than 64 MiB in all');
    texts.push({ file, text });
  }
  return texts;
}

async function collect(folder: string, format: ModelFormat, files: string[], depth: number): Promise<void> {
  if (depth > DEEPEST) throw usage(`${visible(folder)} is nested too deeply`);
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
    if (files.length > MOST_FILES) throw usage(`more than ${MOST_FILES} files; name fewer paths`);
  }
}

/** True for files that configure a dbt project rather than describe its data. */
function isConfiguration(path: string, format: ModelFormat): boolean {
  const own = /^(dbt_project|packages|dependencies|package-lock|selectors|profiles)\.ya?ml$/;
  return format === 'dbt' && own.test(basename(path));
}

/** Writes new files. If any of them exists, throws before writing the first; existing files are never overwritten. */
export async function writeNew(files: readonly (readonly [string, string])[]): Promise<void> {
  for (const [file] of files) {
    if (existsSync(file)) throw usage(`${visible(file)} exists, and is not overwritten`);
    if (!existsSync(dirname(file))) throw usage(`${visible(file)}: its folder does not exist`);
  }
  for (const [file, text] of files) await writeFile(file, text, { flag: 'wx' });
}
