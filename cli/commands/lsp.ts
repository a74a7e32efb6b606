import { resolve } from 'node:path';
import type { Command } from 'commander';
import { manifestOption, policyOption } from '../flags.js';

interface LspFlags {
  readonly manifest?: string;
  readonly policy?: string;
  readonly subject?: string;
  readonly stdio?: true;
}

const HELP = `
Speaks the Language Server Protocol on standard input and output; editors start it (docs/editors.md). Without
--manifest a policy belongs to the manifest.yaml beside it, and an .osql file to the next one in its folder or above.
No server is asked, and no database.

Example:
  $ osl lsp --stdio                              # in the settings of an editor`;

export function addLsp(program: Command): void {
  program
    .command('lsp')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--subject <name>', 'check .osql files as this subject of the policy asks, with all its roles')
    .option('--stdio', 'what it does anyway; some editors say it')
    .addHelpText('after', HELP)
    .action(runLsp);
}

async function runLsp({ manifest, policy, subject }: LspFlags): Promise<void> {
  const { serveLsp } = await import('../lsp/serve.js');
  const file = (name: string | undefined): string | null => (name === undefined ? null : resolve(name));
  const given = { manifestFile: file(manifest), policyFile: file(policy), subject: subject ?? null };
  process.exitCode = await serveLsp(process.stdin, process.stdout, given);
}
