import { type Command, Option } from 'commander';
import { dataDirOption, manifestOption, policyOption } from '../flags.js';
import type { RowSecurityFlags } from '../row-security.js';

const HELP = `
Behind the gateway's own filters, row-security policies of the database itself can hold what policy.yaml says, for
statements that carry the rights of their caller; a connector asks for them by \`row_security: true\`. Without a flag this
compares what stands with what the files ask, and changes nothing. --write needs the role that owns the tables: from
--url or --url-file, else from <url_env>_SYSTEM. A server takes up changed files at its next reload: between --write
and the reload its questions to that database fail. What it holds, and what it costs: docs/row-security.md.

Exit status: 0 it stands, 1 it does not, 2 usage or configuration.

Examples:
  $ osl row-security
  $ osl row-security --write --url postgres://owner@db.example/shop && kill -HUP "$(pidof osl)"
  $ osl row-security --sql --connector db > policies.sql     # holds a key: for the owner's eyes`;

export function addRowSecurity(program: Command): void {
  program
    .command('row-security')
    .addOption(manifestOption())
    .addOption(policyOption())
    .addOption(dataDirOption())
    .option('--connector <name>', 'only this one (default: those with row_security: true)')
    .addOption(new Option('--write', 'put them into the database').conflicts(['sql', 'drop']))
    .addOption(new Option('--sql', 'print what --write would run, the key included').conflicts('drop'))
    .option('--drop', 'take them away, and switch row security off where they switched it on')
    .addOption(new Option('--url <url>', "the owner's, for --write and --drop").conflicts('urlFile'))
    .option('--url-file <file>', 'a file that holds that URL')
    .option('--json', 'what was found as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (flags: RowSecurityFlags) => (await import('../row-security.js')).runRowSecurity(flags));
}
