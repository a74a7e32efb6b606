import { type Command, InvalidArgumentError, Option } from 'commander';
import { dataDirOption, manifestOption, policyOption } from '../flags.js';
import type { RlsCompareFlags } from '../rls/compare/run.js';
import type { RlsExportFlags } from '../rls/export/run.js';
import { SEVERITIES } from '../rls/finding.js';
import type { RlsImportFlags } from '../rls/import/run.js';
import type { RlsProveFlags } from '../rls/prove/run.js';
import type { RlsCheckFlags } from '../rls/run.js';
import type { RlsSpeedFlags } from '../rls/speed/run.js';
import type { RowSecurityFlags } from '../row-security.js';

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
read from entities. Views become entities, with masks where they mask columns. It changes nothing in the database, and
reads no row but to find the key of a table or view that declares none. What has no equivalent is left out and named, so a
role sees less than in the database, never more. reader.sql creates the database role of the gateway; run it as
an owner of the tables who may create roles. docs/from-row-security.md

Exit status: 0 written, 2 usage, or the database cannot be reached.

Examples:
  $ osl rls import shop --url postgres://admin@db.example/shop --schema app --role authenticated
  $ osl rls import --json | jq '.refused'`;

const COMPARE_HELP = `
Asks the database, as each caller's role with the caller's settings, and a gateway in this process, which serves
manifest.yaml and policy.yaml of the folder. The keys of the rows are compared for each entity, or the columns without masks
if it has no key. It needs a login that may SET ROLE to the roles and set their settings, and the gateway's own URL in the
variable that the manifest names. Callers come from a file, or are made of values that the database has, for which the login
must see all rows. docs/from-row-security.md

Exit status: 0 no row found that row security hides (read the lines \`unknown\`), 1 such rows, 2 usage, or the database cannot
be reached.

Examples:
  $ DATABASE_URL=postgres://osl_reader:…@db.example/shop osl rls compare shop --url postgres://admin@db.example/shop
  $ osl rls compare shop --url-file admin.url --callers callers.yaml --json | jq '.comparisons[] | select(.result != "equal")'`;

const SPEED_HELP = `
Runs each statement as the caller's role under row security, and as the SQL that the gateway makes of it from
manifest.yaml and policy.yaml of the folder: three times each in turns, by EXPLAIN ANALYZE in read-only transactions. It
prints the median times, whether the rows are the same, and the reasons that the plans tell; never a value of a row.
Statements come from pg_stat_statements, or from a file; placeholders get values of rows that the caller sees. The login
must be allowed to SET ROLE, and the variable that the manifest names holds the gateway's URL. docs/from-row-security.md

Exit status: 0 compared, 2 usage, or the database cannot be reached.

Examples:
  $ DATABASE_URL=postgres://osl_reader:…@db.example/shop osl rls speed shop --url postgres://admin@db.example/shop
  $ osl rls speed shop --url-file admin.url --statements slow.sql --callers callers.yaml --json | jq '.statements[].ratio'`;

const EXPORT_HELP = `
Prints SQL for the tables of one connector: roles, column privileges and row-security policies that need no gateway. It
connects to no database. What row security cannot express is left out and named, so a role sees the same or less.
Values of callers come from claims in request.jwt.claims, or with --settings app from settings app.<attribute>.
docs/from-row-security.md

Examples:
  $ osl rls export shop --out rls.sql && psql postgres://owner@db.example/shop -f rls.sql
  $ osl rls import shop --json > import.json && osl rls export shop --attributes import.json
  $ osl rls export shop --json | jq '.left'`;

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
    .command('speed')
    .description('compare the time of statements under row security and as governed SQL')
    .argument('[dir]', 'where the files are', '.')
    .addOption(urlOption())
    .addOption(urlFileOption())
    .option('--role <name...>', 'only these roles (default: all of the policy)')
    .option('--callers <file>', 'callers as YAML (default: made of values in the database)')
    .option('--sample <n>', 'callers of each role with values', positive, 1)
    .option('--statements <file>', 'statements with semicolons between them (default: pg_stat_statements)')
    .option('--limit <n>', 'most statements of pg_stat_statements', positive, 20)
    .option('--timeout <seconds>', 'longest time of one execution', positive, 60)
    .option('--no-analyze', 'compare the costs that the planner estimates, and run nothing')
    .option('--json', 'everything as JSON on standard output, with both plans')
    .addHelpText('after', SPEED_HELP)
    .action(async (dir: string, flags: RlsSpeedFlags) =>
      (await import('../rls/speed/run.js')).runRlsSpeed(dir, flags),
    );
  rls
    .command('export')
    .description('write a policy as plain row security')
    .argument('[dir]', 'where manifest.yaml and policy.yaml are', '.')
    .option('--out <file>', 'where the SQL goes (default: standard output)')
    .option('--force', 'overwrite the file')
    .option('--drop', 'SQL that removes what an export wrote')
    .option('--connector <name>', 'the connector, if the manifest has several')
    .addOption(
      new Option('--settings <form>', 'where values of callers are, unless the policy says so')
        .choices(['claims', 'app'])
        .default('claims'),
    )
    .option('--attributes <file>', 'where they are, as `osl rls import --json` prints it')
    .option('--json', 'what was exported as JSON on standard output')
    .addHelpText('after', EXPORT_HELP)
    .action(async (dir: string, flags: RlsExportFlags) =>
      (await import('../rls/export/run.js')).runRlsExport(dir, flags),
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
    .addOption(
      new Option('--sarif', 'verdicts other than equal as SARIF 2.1.0 on standard output').conflicts('json'),
    )
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

const ROW_SECURITY_HELP = `
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
    .addHelpText('after', ROW_SECURITY_HELP)
    .action(async (flags: RowSecurityFlags) => (await import('../row-security.js')).runRowSecurity(flags));
}
