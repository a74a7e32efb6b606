import type { Command } from 'commander';
import { dataDirOption, manifestOption, policyOption } from '../../flags.js';
import type { PolicyDiffFlags } from './flags.js';

const HELP = `
Compared with what serves: the active version of the control database where OSL_CONTROL_URL is set, else the policy file.
A policy that could not serve is told with its faults; the exit status is 2 then.

--since adds which questions of the audit log would be answered otherwise, by caller and object, in numbers: the log
holds no texts. It does not know either what a token claimed: a caller is taken to have every role that it can have, and
what an object shows otherwise need not be what the question read of it. That the log was read is on record.

Examples:
  $ osl policy diff policy.yaml
  $ osl policy diff policy.yaml --since 7d
  $ osl policy diff 12`;

export function addPolicyDiff(policy: Command): void {
  policy
    .command('diff')
    .description('say what a policy would change: who gains, who loses')
    .argument('<policy>', 'a file, or the number of a version')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--since <time>', 'and which questions since then it would change: a day, a moment, or 7d')
    .option('--dir <dir>', 'their log (default: audit in the data directory)')
    .addOption(dataDirOption())
    .option('--json', 'the judgement as JSON')
    .addHelpText('after', HELP)
    .action(async (proposed: string, flags: PolicyDiffFlags) =>
      (await import('../../policy/diff.js')).runPolicyDiff(proposed, flags),
    );
}
