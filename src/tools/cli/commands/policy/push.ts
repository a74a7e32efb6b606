import type { Command } from 'commander';
import { manifestOption } from '../../flags.js';
import { authorOption, commentOption, type PushFlags } from './flags.js';

const HELP = `
The policy is compiled against the manifest with what is published, and compared with the one that serves: who gains, who
loses. One that could not serve is not kept; the exit status is 2 then. Without --activate it is kept and serves nobody.

Examples:
  $ osl policy push policy.yaml
  $ osl policy push policy.yaml --activate --comment "ticket 4711"`;

export function addPush(policy: Command): void {
  policy
    .command('push')
    .description('keep a policy as the next version')
    .argument('<file>', 'the policy')
    .addOption(manifestOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .option('--activate', 'and have it serve at once')
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', HELP)
    .action(async (file: string, flags: PushFlags) =>
      (await import('../../policy/push.js')).runPush(file, flags),
    );
}
