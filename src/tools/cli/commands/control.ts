import { type Command, Option } from 'commander';
import { splitList } from '../../../service/settings/types.js';
import type { MigrateFlags } from '../control/migrate.js';

const HELP = `
Example:
  $ osl control migrate --gateway osl_gateway --author osl_author`;

const MIGRATE_HELP = `
Makes or brings up to date the schema osl_control in the database of OSL_CONTROL_URL, as the role of that URL: its
owner. Gateways then log in as a role of their own that may read policies and append what is published; who writes
policies, as another. Both must exist. Safe to run again, and beside gateways that serve.

Example:
  $ osl control migrate --gateway osl_gateway --author osl_author    # OSL_CONTROL_URL names the owner`;

/** Commands load what they run only then: `--help` stays quick. */
export function addControl(program: Command): void {
  const control = program.command('control').addHelpText('after', HELP);
  control
    .command('migrate')
    .description('make or renew the schema osl_control, and grant roles what they need')
    .addOption(rolesOption('--gateway <roles>', 'roles, with commas, that gateways log in as'))
    .addOption(rolesOption('--author <roles>', 'roles, with commas, that write policies'))
    .option('--json', 'what was done as JSON')
    .addHelpText('after', MIGRATE_HELP)
    .action(async (flags: MigrateFlags) => (await import('../control/migrate.js')).runMigrate(flags));
}

function rolesOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(splitList);
}
