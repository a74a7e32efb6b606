import type { Command } from 'commander';
import { manifestOption, wholeNumber } from '../../flags.js';
import { type AuthorFlags, authorOption, commentOption, tenantOption } from './flags.js';

const HELP = `
Without a number: the version that served before the one that serves. It is checked and compared where the manifest is at
hand; where it is not, as on somebody's laptop at night, each gateway checks it by itself. History goes on: a rollback is
an entry of its own.

Examples:
  $ osl policy rollback --comment "12 shows salaries"
  $ osl policy rollback 9`;

export function addRollback(policy: Command): void {
  policy
    .command('rollback')
    .description('have an earlier version serve again, on every gateway')
    .argument('[version]', 'its number', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(tenantOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', HELP)
    .action(async (version: number | undefined, flags: AuthorFlags) =>
      (await import('../../policy/rollback.js')).runRollback(version ?? null, flags),
    );
}
