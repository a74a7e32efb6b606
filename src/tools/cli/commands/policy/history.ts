import type { Command } from 'commander';
import { manifestOption } from '../../flags.js';
import { type PolicyFlags, tenantOption } from './flags.js';

const HELP = `
Example:
  $ osl policy history --json | jq '.activations[0]'`;

export function addHistory(policy: Command): void {
  policy
    .command('history')
    .description('which versions there are, and which served since when, by whom')
    .addOption(manifestOption())
    .addOption(tenantOption())
    .option('--json', 'as JSON')
    .addHelpText('after', HELP)
    .action(async (flags: PolicyFlags) => (await import('../../policy/history.js')).runHistory(flags));
}
