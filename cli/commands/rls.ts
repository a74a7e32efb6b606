import { type Command, InvalidArgumentError, Option } from 'commander';
import type { RlsCompareFlags } from '../rls/compare/run.js';
import { SEVERITIES } from '../rls/finding.js';
import type { RlsImportFlags } from '../rls/import/run.js';
import type { RlsProveFlags } from '../rls/prove/run.js';
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

const COMPARE_HELP = `
Asks the database, as each caller's role with the caller's settings, and a gateway in this process, which serves
manifest.yaml and policy.yaml of the folder. The keys of the rows are compared for each entity. It needs a login that may
SET ROLE to the roles and set their settings, and the gateway's own URL in the variable that the manifest names.
Callers come from a file, or are made of values that the database has. docs/from-row-security.md

Exit status: 0 the same rows or fewer, 1 rows that row security hides, 2 usage, or the database cannot be reached.

Examples:
  $ DATABASE_URL=postgres://osl_reader:…@db.example/shop osl rls compare shop --url postgres://admin@db.example/shop
  $ osl rls compare shop --url-file admin.url --callers callers.yaml --json | jq '.comparisons[] | select(.result != "equal")'`;

const PROVE_HELP = `
For each role and each table, the conditions of row security and the policy of the folder become formulas, by translations
that share no code, and a solver compares them: for all rows and all callers, not for those of today. A difference is shown
with a row and a caller that the solver made up, and counts only if an embedded database with this row security and the
product with this policy answer differently. Reads the catalog, and no row. Needs z3-solver. docs/from-row-security.md

Exit status: 0 all equal or narrower, 1 the gateway shows more, 2 usage, or the database cannot be reached, 3 unknown.

Examples:
  $ osl rls prove shop --url postgres://admin@db.example/shop
  $ osl rls prove shop --url-file admin.url --json | jq '.proofs[] | select(.verdict != "equal")'`;

const urlOption = (): Option =>
  new Option('--url <url>', 'the database (default: DATABASE_URL)').conflicts('urlFile');
const urlFileOption = (): Option => new Option('--url-file <file>', 'a file that holds the URL');

export function addRls(program: Command): void {
  const rls = program.command('rls').addHelpText('after', HELP);
  rls
    .command('check')
    .description('find faults in the row security of a database')
    .addOption(urlOption())
    .addOption(urlFileOption())
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
    .addOption(urlOption())
    .addOption(urlFileOption())
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
  rls
    .command('compare')
    .description('compare rows under row security with those through the gateway')
    .argument('[dir]', 'where the files are', '.')
    .addOption(urlOption())
    .addOption(urlFileOption())
    .option('--role <name...>', 'only these roles (default: all of the policy)')
    .option('--callers <file>', 'callers as YAML (default: made of values in the database)')
    .option('--sample <n>', 'callers of each role with values', positive, 10)
    .option('--rows <n>', 'most rows of a table that are compared', positive, 100_000)
    .option('--sample-rows <n>', 'compare so many rows of each table (default: all)', positive)
    .option('--json', 'each comparison as JSON on standard output')
    .addHelpText('after', COMPARE_HELP)
    .action(async (dir: string, flags: RlsCompareFlags) =>
      (await import('../rls/compare/run.js')).runRlsCompare(dir, flags),
    );
  rls
    .command('prove')
    .description('prove that a policy shows the same rows as row security')
    .argument('[dir]', 'where the files are', '.')
    .addOption(urlOption())
    .addOption(urlFileOption())
    .option('--schema <name...>', 'only tables of these schemas (default: all)')
    .option('--role <name...>', 'only these roles (default: all but superusers)')
    .option('--json', 'each verdict as JSON on standard output')
    .addHelpText('after', PROVE_HELP)
    .action(async (dir: string, flags: RlsProveFlags) =>
      (await import('../rls/prove/run.js')).runRlsProve(dir, flags),
    );
}

function positive(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number, at least 1.');
}

function addCode(code: string, before: readonly string[] = []): readonly string[] {
  if (/^RLS\d{3}$/i.test(code)) return [...before, code.toUpperCase()];
  throw new InvalidArgumentError('It must be the code of a rule, such as RLS008.');
}
