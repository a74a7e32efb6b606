import type { Command } from 'commander';
import { addListenOptions, manifestOption, policyOption, type ServerFlags } from '../flags.js';

const EXAMPLES = `
Settings are environment variables; flags of \`osl serve\` override them. docs/configuration.md has them all.

Examples:
  $ osl config list
  $ osl config check`;

const LIST_HELP = `
Examples:
  $ osl config list OSL_HTTP_PORT OSL_PG_PORT
  $ osl config list --json | jq '.settings[] | select(.value != null)'`;

const HELP = `
Checks each setting, and all that a start checks: manifest and policy, keys, certificates and when they expire, data
directory, ports, databases, model servers and the collector. Changes nothing. A variable that begins with OSL_ and that
nothing reads is a warning.

Exit status: 0 nothing fails (there may be warnings), 1 something does.

Examples:
  $ osl config check
  $ osl config check --json | jq -e .ok`;

export function addConfig(program: Command): void {
  const config = program.command('config').addHelpText('after', EXAMPLES);
  config
    .command('list')
    .description('list settings with their values, defaults and types; secrets are not shown')
    .argument('[setting...]', 'only these, such as OSL_HTTP_PORT')
    .option('--json', 'settings as JSON on standard output')
    .addHelpText('after', LIST_HELP)
    .action(async (names: readonly string[], flags: { readonly json?: true }) =>
      (await import('../doctor/run.js')).runConfigList(names, flags),
    );
  const check = config
    .command('check')
    .description('check settings, files, ports, certificates and databases without serving')
    .addOption(manifestOption())
    .addOption(policyOption());
  addListenOptions(check)
    .option('--json', 'findings as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => (await import('../doctor/run.js')).runConfigCheck(flags));
}

const DOCTOR_HELP = `
Looks at files, data directory, ports, certificates, keys, clocks, and at each Postgres of the manifest: its role, what
its log keeps, pgvector, and whether tables and columns are as declared. Changes nothing, and may run beside a server.

Exit status: 0 nothing fails (there may be warnings), 1 something does, 2 usage or configuration.

Examples:
  $ osl doctor
  $ osl doctor --json | jq '.findings[] | select(.state == "fail")'`;

export function addDoctor(program: Command): void {
  const command = program.command('doctor').addOption(manifestOption()).addOption(policyOption());
  addListenOptions(command)
    .option('--json', 'findings as JSON on standard output')
    .addHelpText('after', DOCTOR_HELP)
    .action(async (flags: ServerFlags) => (await import('../doctor/run.js')).runDoctor(flags));
}
