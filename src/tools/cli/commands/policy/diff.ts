import type { Command } from 'commander';
import { manifestOption, policyOption } from '../../flags.js';
import type { PolicyDiffFlags } from './flags.js';

const HELP = `
Compared with what serves: the active version of the control database where OSL_CONTROL_URL is set, else the policy file.
A policy that could not serve is told with its faults; the exit status is 2 then.

Examples:
  $ osl policy diff policy.yaml
  $ osl policy diff 12`;

export function addPolicyDiff(policy: Command): void {
  policy
    .command('diff')
    .description('say what a policy would change: who gains, who loses')
    .argument('<policy>', 'a file, or the number of a version')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--json', 'the judgement as JSON')
    .addHelpText('after', HELP)
    .action(async (proposed: string, flags: PolicyDiffFlags) =>
      (await import('../../policy/diff.js')).runPolicyDiff(proposed, flags),
    );
}
