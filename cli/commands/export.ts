import { Argument, type Command } from 'commander';
import type { PolicyDocument } from '../../policy/document.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import type { Settings } from '../../src/service/settings.js';
import { EXIT } from '../exit.js';
import { besideManifest, manifestOption, policyOption, type ServerFlags, settingsOfModel } from '../flags.js';
import { writeNew } from '../interchange/files.js';
import { note, print, printJson, visible } from '../output.js';

interface ExportFlags extends ServerFlags {
  readonly out?: string;
  readonly withPolicy?: true;
  readonly strict?: true;
  readonly json?: true;
}

const HELP = `
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
    .addHelpText('after', HELP)
    .action(runExport);
}

async function runExport(_format: 'ossie', flags: ExportFlags): Promise<void> {
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

/** The manifest with what was published over its file. */
async function servedManifest(settings: Settings): Promise<Manifest> {
  const { loadServed } = await import('../../src/service/model.js');
  return (await loadServed(settings)).manifest;
}
