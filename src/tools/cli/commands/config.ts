import type { Command } from 'commander';
import type { CheckFlags } from '../config/check.js';
import { addListenOptions, manifestOption, policyOption } from '../flags.js';

const HELP = `
Reads every setting from the environment, and looks at all that a start and \`osl doctor\` look at: manifest and policy,
keys, certificates and their ends, data directory, ports, databases, servers of models and the collector. It serves
nothing, and changes nothing. A variable that begins with OSL_ and that nothing reads is a warning.

Exit status: 0 nothing fails (there may be warnings), 1 something does.

Examples:
  $ osl config check
  $ osl config check --json | jq -e .ok`;

export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description('check settings before a server is started with them')
    .addHelpText('after', '\nExample:\n  $ osl config check');
  const check = config
    .command('check')
    .description('look at all that a start looks at, and serve nothing')
    .addOption(manifestOption())
    .addOption(policyOption());
  addListenOptions(check)
    .option('--json', 'findings as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (flags: CheckFlags) => (await import('../config/check.js')).runConfigCheck(flags));
}
