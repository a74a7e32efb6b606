import type { Command } from 'commander';
import { manifestOption, wholeNumber } from '../../flags.js';
import { type AuthorFlags, authorOption, commentOption } from './flags.js';

const HELP = `
It is checked and compared again, against what serves now. Gateways take it up as soon as they hear of it, each with all
its workers or not at all.

Example:
  $ osl policy activate 12 --comment "ticket 4711"`;

export function addActivate(policy: Command): void {
  policy
    .command('activate')
    .description('have a version serve, on every gateway')
    .argument('<version>', 'its number', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', HELP)
    .action(async (version: number, flags: AuthorFlags) =>
      (await import('../../policy/activate.js')).runActivate(version, flags),
    );
}
