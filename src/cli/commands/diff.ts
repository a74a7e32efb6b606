import type { Command } from 'commander';
import type { AccessChange, Change, Judgement, RoleChange, Sight } from '../../authoring/index.js';
import { EXIT } from '../exit.js';
import { manifestOption, policyOption, type ServerFlags, settingsOf } from '../flags.js';
import { note, print, printJson, visible } from '../output.js';

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
  else report(judgement, proposed);
  if (!judgement.ok) process.exitCode = EXIT.usage;
}

function report({ diagnostics, diff }: Judgement, file: string): void {
  for (const { code, document, path, range, message, hint } of diagnostics) {
    const place =
      range === null ? `${document} ${path}` : `${file}:${range.start.line}:${range.start.column}`;
    note(visible(`${place}: error ${code} ${message}`));
    if (hint !== null) note(visible(`  hint: ${hint}`));
  }
  if (diff === null) return;
  if (diff.changes.length === 0) print('nothing changes');
  for (const change of diff.changes) print(visible(changeText(change)));
  for (const role of diff.access) print(roleText(role));
  if (diff.access.length === 0) print('nobody gains or loses access');
  if (diff.needs_restart) print('connectors change: the server must be started anew');
}

const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

function changeText({ change, kind, name, what }: Change): string {
  return `${SIGNS[change]} ${kind} ${name}${what.length === 0 ? '' : `: ${what.join(', ')}`}`;
}

function roleText({ role, subjects, changes }: RoleChange): string {
  const who = `${subjects.count} subject${subjects.count === 1 ? '' : 's'}`;
  return [`role ${role} (${who})`, ...changes.map((c) => `  ${visible(accessText(c))}`)].join('\n');
}

function accessText({ object, effect, before, after }: AccessChange): string {
  return `${effect} ${object}: ${sightText(before)} -> ${sightText(after)}`;
}

function sightText(sight: Sight | null): string {
  return sight === null ? 'nothing' : `${sight.access} (${sight.reads})`;
}
