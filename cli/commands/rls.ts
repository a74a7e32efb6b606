import { type Command, InvalidArgumentError, Option } from 'commander';
import { SEVERITIES } from '../rls/finding.js';
import type { RlsCheckFlags } from '../rls/run.js';

const HELP = `
Works on any Postgres database, with or without a gateway. Changes nothing.

Example:
  $ osl rls check --url postgres://admin@db.example/shop`;

const CHECK_HELP = `
Reads the catalog in a read-only transaction, and no row: policies, privileges, roles, views, functions, indexes. Any role
may run it; what the role may not read is a finding. Without --url and --url-file it takes DATABASE_URL. docs/rls-check.md
lists the rules: what follows from each fault, and how to mend it.

Exit status: 0 no finding as grave as --fail-on, 1 at least one, 2 usage, or the database cannot be reached.

Examples:
  $ osl rls check --url postgres://admin@db.example/shop
  $ osl rls check --schema app --role web --fail-on error
  $ osl rls check --format sarif --ignore RLS008 RLS017 > rls.sarif
  $ osl rls check --json | jq -r '.findings[].sql[]'`;

export function addRls(program: Command): void {
  const rls = program.command('rls').addHelpText('after', HELP);
  rls
    .command('check')
    .description('find faults in the row security of a database')
    .addOption(new Option('--url <url>', 'the database (default: DATABASE_URL)').conflicts('urlFile'))
    .option('--url-file <file>', 'a file that holds the URL')
    .option('--schema <name...>', 'only objects of these schemas (default: all)')
    .option('--role <name...>', 'only what these roles can do (default: all but superusers)')
    .addOption(
      new Option('--format <format>', 'how findings are printed')
        .choices(['text', 'json', 'sarif'])
        .default('text'),
    )
    .addOption(new Option('--json', 'the same as --format json').conflicts('format'))
    .addOption(new Option('--ignore <code...>', 'rules to leave out, such as RLS008').argParser(addCode))
    .addOption(
      new Option('--fail-on <severity>', 'least severity for exit status 1')
        .choices(SEVERITIES)
        .default('warning'),
    )
    .addHelpText('after', CHECK_HELP)
    .action(async (flags: RlsCheckFlags) => (await import('../rls/run.js')).runRlsCheck(flags));
}

function addCode(code: string, before: readonly string[] = []): readonly string[] {
  if (/^RLS\d{3}$/i.test(code)) return [...before, code.toUpperCase()];
  throw new InvalidArgumentError('It must be the code of a rule, such as RLS008.');
}
