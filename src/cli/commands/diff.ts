import type { Command } from 'commander';
import { differenceLines, findingLines } from '../difference.js';
import { EXIT } from '../exit.js';
import { manifestOption, policyOption, type ServerFlags, settingsOf } from '../flags.js';
import { note, print, printJson } from '../output.js';

interface DiffFlags extends ServerFlags {
  readonly json?: true;
}

const HELP = `
Compares what the manifests mean, not how they are written, and says which roles would see more, less or something
else under the policy of now. What would not load is told as by \`osl validate\`; the exit status is 2 then.

Examples:
  $ osl diff next.yaml --manifest manifest.yaml
  $ osl diff next.yaml --json | jq '.diff.access'`;

export function addDiff(program: Command): void {
  program
    .command('diff')
    .description('say what a manifest would change, and who would gain or lose access')
    .argument('<proposed>', 'the manifest that would be served instead')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--json', 'the judgement as JSON on standard output')
    .addHelpText('after', HELP)
    .action(runDiff);
}

async function runDiff(proposed: string, flags: DiffFlags): Promise<void> {
  const { manifestFile, policyFile } = settingsOf(flags);
  const { ready } = await import('osl-compiler');
  const { loadModel } = await import('../../start/model.js');
  const { judge } = await import('../../authoring/index.js');
  const { readManifestText } = await import('../../manifest/index.js');
  await ready();
  const model = await loadModel(manifestFile, policyFile, null);
  const text = await readManifestText(proposed);
  const judgement = judge({ kind: 'manifest', text, placed: true }, model);
  if (flags.json) printJson(judgement);
  else {
    for (const line of findingLines(judgement.diagnostics, proposed)) note(line);
    if (judgement.diff !== null) for (const line of differenceLines(judgement.diff)) print(line);
  }
  if (!judgement.ok) process.exitCode = EXIT.usage;
}
