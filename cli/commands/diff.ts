import type { Command } from 'commander';
import { differenceLines, findingLines, policyDifferenceLines } from '../difference.js';
import { EXIT } from '../exit.js';
import { fieldsOf } from '../fields.js';
import { dataDirOption, manifestOption, policyOption, type ServerFlags, settingsOfModel } from '../flags.js';
import { note, print, printJson } from '../output.js';

interface DiffFlags extends ServerFlags {
  readonly json?: true;
}

const HELP = `
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
    .addHelpText('after', HELP)
    .action(runDiff);
}

async function runDiff(proposed: string, flags: DiffFlags): Promise<void> {
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
    for (const line of findingLines(judgement.diagnostics, proposed)) note(line);
    const lines = policy ? policyDifferenceLines : differenceLines;
    if (judgement.diff !== null) for (const line of lines(judgement.diff)) print(line);
  }
  if (!judgement.ok) process.exitCode = EXIT.usage;
}

/** Both files have a version and a tenant; only a policy has roles, and only a manifest entities. */
function isPolicy(document: unknown): boolean {
  const { roles, subjects, entities, connectors } = fieldsOf(document);
  return (roles ?? subjects) !== undefined && (entities ?? connectors) === undefined;
}
