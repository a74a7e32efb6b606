import type { Command } from 'commander';
import { addActivate } from './policy/activate.js';
import { addPolicyDiff } from './policy/diff.js';
import { addHistory } from './policy/history.js';
import { addPush } from './policy/push.js';
import { addRollback } from './policy/rollback.js';
import { addShow } from './policy/show.js';

const HELP = `
With OSL_POLICY_SOURCE=control a gateway takes its policy from the database of OSL_CONTROL_URL, where these commands
put it, version by version; nothing there is ever changed or removed.

Example:
  $ osl policy push policy.yaml --activate --comment "north may see invoices"`;

/** Each subcommand is a file of its own, which loads what it runs only then: `--help` stays quick. */
export function addPolicy(program: Command): void {
  const policy = program
    .command('policy')
    .description('policies that several gateways share: propose, compare, activate, roll back')
    .addHelpText('after', HELP);
  for (const add of [addPush, addPolicyDiff, addActivate, addRollback, addHistory, addShow]) add(policy);
}
