import type { Command } from 'commander';
import { manifestOption, wholeNumber } from '../../flags.js';
import { type PolicyFlags, tenantOption } from './flags.js';

const HELP = `
Examples:
  $ osl policy show > policy.yaml
  $ osl policy show 9`;

export function addShow(policy: Command): void {
  policy
    .command('show')
    .description('print the text of a version')
    .argument('[version]', 'its number (default: the one that serves)', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(tenantOption())
    .addHelpText('after', HELP)
    .action(async (version: number | undefined, flags: PolicyFlags) =>
      (await import('../../policy/show.js')).runShow(version ?? null, flags),
    );
}
