import { type Command, InvalidArgumentError, Option } from 'commander';
import { SEVERITIES } from '../rls/finding.js';
import type { RlsImportFlags } from '../rls/import/run.js';
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

const IMPORT_HELP = `
Writes manifest.yaml, policy.yaml and reader.sql to the folder. Each database role becomes a role, each alternative of its
policies a grant, settings and claims become attributes of subjects, and subqueries over other tables attributes that are
read from entities. It changes nothing in the database, and reads no row but to find the key of a table that declares
none. What has no equivalent is left out and named, so a role sees less than in the database, never more.
reader.sql creates the database role of the gateway; run it as the owner of the tables. docs/from-row-security.md

Exit status: 0 written, 2 usage, or the database cannot be reached.

Examples:
  $ osl rls import shop --url postgres://admin@db.example/shop --schema app --role authenticated
  $ osl rls import --json | jq '.refused'`;

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
  rls
    .command('import')
    .description('write the row security of a database as manifest and policy')
    .argument('[dir]', 'where the files go', '.')
    .addOption(new Option('--url <url>', 'the database (default: DATABASE_URL)').conflicts('urlFile'))
    .option('--url-file <file>', 'a file that holds the URL')
    .option('--schema <name...>', 'only tables of these schemas (default: all)')
    .option('--role <name...>', 'only these roles (default: all but superusers)')
    .option('--tenant <name>', 'name of the tenant (default: that of the database)')
    .option('--url-env <name>', 'variable that will hold the URL of the gateway', 'DATABASE_URL')
    .option('--reader <name>', 'database role of the gateway, in reader.sql', 'osl_reader')
    .option('--force', 'overwrite the files')
    .option('--json', 'what was imported as JSON on standard output')
    .addHelpText('after', IMPORT_HELP)
    .action(async (dir: string, flags: RlsImportFlags) =>
      (await import('../rls/import/run.js')).runRlsImport(dir, flags),
    );
}

function addCode(code: string, before: readonly string[] = []): readonly string[] {
  if (/^RLS\d{3}$/i.test(code)) return [...before, code.toUpperCase()];
  throw new InvalidArgumentError('It must be the code of a rule, such as RLS008.');
}
