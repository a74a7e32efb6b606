import { relative } from 'node:path';
import { type Command, Option } from 'commander';
import type { Diagnostic } from '../../src/model/manifest/index.js';
import { diagnosticLines, differenceLines, policyDifferenceLines } from '../difference.js';
import { EXIT } from '../exit.js';
import {
  besideManifest,
  dataDirOption,
  manifestOption,
  policyOption,
  type ServerFlags,
  settingsOfModel,
} from '../flags.js';
import { fieldsOf, note, print, printJson } from '../output.js';

const HELP = `
Faults are shown on standard error with their places; the exit status is 2 then.

Examples:
  $ osl validate --manifest examples/supply-chain/manifest.yaml    # and policy.yaml beside it
  $ osl validate --json | jq '.diagnostics[].message'
  $ osl validate --sarif > osl.sarif                               # for code review tools`;

interface ValidateFlags extends ServerFlags {
  readonly sarif?: true;
}

export function addValidate(program: Command): void {
  program
    .command('validate')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--data-dir <dir>', 'with what was published by API to the server of this directory')
    .option('--json', 'diagnostics as JSON on standard output')
    .addOption(new Option('--sarif', 'diagnostics as SARIF 2.1.0 on standard output').conflicts('json'))
    .addHelpText('after', HELP)
    .action(runValidate);
}

async function runValidate(flags: ValidateFlags): Promise<void> {
  const settings = settingsOfModel(besideManifest(flags));
  const { manifestFile, policyFile } = settings;
  const { keylessEntities } = await import('../../src/model/manifest/index.js');
  const { ready } = await import('osl-compiler');
  const { loadModel } = await import('../../src/service/model.js');
  const { ManifestProblems } = await import('../../src/model/manifest/index.js');
  const { publishedDir } = await import('../../src/service/model.js');
  const { headIn } = await import('../../src/model/versions/versions.js');
  await ready();
  const published = flags.dataDir === undefined ? null : await headIn(publishedDir(settings));
  try {
    const { manifest, snapshot, tenant } = await loadModel(manifestFile, policyFile, published);
    const versions = { manifest: manifest.version, policy: snapshot?.version ?? null };
    if (flags.json) printJson({ ok: true, tenant, versions, diagnostics: [] });
    else if (flags.sarif) await printSarif([]);
    else {
      const counts = `${manifest.entities.size} entities, ${manifest.catalog.metrics.size} metrics`;
      const policy = `${snapshot?.subjects.size ?? 0} subjects, ${snapshot?.roles.size ?? 0} roles`;
      print(`${shown(manifestFile)}: ok, ${counts}, version ${versions.manifest}`);
      const keyless = keylessEntities(manifest);
      if (keyless !== null) print(`${shown(manifestFile)}: ${keyless}`);
      print(`${shown(policyFile)}: ok, ${policy}, version ${versions.policy}`);
    }
  } catch (error) {
    if ((!flags.json && !flags.sarif) || !(error instanceof ManifestProblems)) throw error;
    if (flags.sarif) await printSarif(error.diagnostics);
    else printJson({ ok: false, diagnostics: error.diagnostics });
    process.exitCode = EXIT.usage;
  }
}

async function printSarif(diagnostics: readonly Diagnostic[]): Promise<void> {
  const { sarifLog } = await import('../sarif.js');
  printJson(sarifLog(diagnostics));
}

function shown(file: string): string {
  const short = relative(process.cwd(), file);
  return short.startsWith('..') ? file : short;
}

const DIFF_HELP = `
Compares what the manifests mean, not how they are written, and says which roles would see more, less or something
else under the policy of now. Of a policy it says the same, and who has other roles: what has roles or subjects, and no
entities, is one. What would not load is told as by \`osl validate\`; the exit status is 2 then.

Examples:
  $ osl diff next.yaml --manifest manifest.yaml
  $ osl diff next-policy.yaml
  $ osl diff next.yaml --json | jq '.diff.access'`;

export function addDiff(program: Command): void {
  program
    .command('diff')
    .argument('<proposed>', 'the manifest or the policy that would be served instead')
    .addOption(manifestOption())
    .addOption(policyOption())
    .addOption(dataDirOption())
    .option('--json', 'the judgement as JSON on standard output')
    .addHelpText('after', DIFF_HELP)
    .action(runDiff);
}

async function runDiff(proposed: string, flags: ServerFlags): Promise<void> {
  const { manifestFile, policyFile } = settingsOfModel(flags);
  const { ready } = await import('osl-compiler');
  const { loadModel } = await import('../../src/service/model.js');
  const { judge, judgePolicy } = await import('../../src/model/authoring/index.js');
  const { parseSource, readManifestText } = await import('../../src/model/manifest/index.js');
  await ready();
  const model = await loadModel(manifestFile, policyFile, null);
  const text = await readManifestText(proposed);
  const policy = isPolicy(parseSource(text, proposed).value);
  const judgement = policy
    ? judgePolicy(text, proposed, model)
    : judge({ kind: 'manifest', text, placed: true }, model);
  if (flags.json) printJson(judgement);
  else {
    for (const line of diagnosticLines(judgement.diagnostics, proposed)) note(line);
    const lines = policy ? policyDifferenceLines : differenceLines;
    if (judgement.diff !== null) for (const line of lines(judgement.diff)) print(line);
  }
  if (!judgement.ok) process.exitCode = EXIT.usage;
}

/** True for a policy: only policies have roles or subjects, and only manifests have entities or connectors. */
function isPolicy(document: unknown): boolean {
  const { roles, subjects, entities, connectors } = fieldsOf(document);
  return (roles ?? subjects) !== undefined && (entities ?? connectors) === undefined;
}
