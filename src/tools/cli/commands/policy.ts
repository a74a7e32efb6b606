import type { Command } from 'commander';
import { addActivate } from './policy/activate.js';
import { addPolicyDiff } from './policy/diff.js';
import { addExplainAccess } from './policy/explain.js';
import { addHistory } from './policy/history.js';
import { addPush } from './policy/push.js';
import { addRollback } from './policy/rollback.js';
import { addShow } from './policy/show.js';
import { addTest } from './policy/test.js';

const HELP = `
test holds a policy to what callers are to see, explain says how somebody sees an object and which rules decide.

With OSL_POLICY_SOURCE=control a gateway takes its policy from the database of OSL_CONTROL_URL, where these commands
put it, version by version; nothing there is ever changed or removed.

Examples:
  $ osl policy test
  $ osl policy explain --as user:analyst --object osl.entities.person.email --subject user:admin
  $ osl policy push policy.yaml --activate --comment "north may see invoices"`;

/** Each subcommand is a file of its own, which loads what it runs only then: `--help` stays quick. */
export function addPolicy(program: Command): void {
  const policy = program.command('policy').addHelpText('after', HELP);
  for (const add of [
    addTest,
    addExplainAccess,
    addPush,
    addPolicyDiff,
    addActivate,
    addRollback,
    addHistory,
    addShow,
  ])
    add(policy);
}
