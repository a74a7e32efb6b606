import { type Command, Option } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import type { InitFlags } from '../init/prompt.js';

const HELP = `
Reads what the database declares, asks a few questions (every flag above answers one), shows a first governed answer,
and only then writes manifest.yaml, policy.yaml, .osl/ (keys, audit log) and .gitignore. Columns that look personal by
their names are masked, credentials are left out, and one role is granted what you chose. No row is read but for two
things: a table without a key is counted to find one, and the first answer. The URL is put into no file: a server takes
it from DATABASE_URL, or from the file that DATABASE_URL_FILE names.

Exit status: 0 written, 1 stopped by an answer, 2 it could not be done, 130 Ctrl-C. Nothing is left behind but for 0.

Examples:
  $ osl init
  $ osl init --yes --json                        # DATABASE_URL is set; takes every default
  $ osl init shop --url-env SHOP_URL --tables 'sales.*,-sales.audit_*' --mask orders.note --rows org_id=42
  $ osl init --yes --create-role osl_reader      # DATABASE_URL is that of a superuser
  $ osl init --create-role osl_reader --row-security     # or of the role that owns the tables`;

export function addInit(program: Command): void {
  const collect = (text: string, before: readonly string[]): readonly string[] => [...before, text];
  program
    .command('init')
    .argument('[folder]', 'where they are written', '.')
    .addOption(new Option('--url <url>', 'of the database').conflicts('urlFile'))
    .option('--url-env <name>', 'the variable that holds the URL, now and when it is served (DATABASE_URL)')
    .option('--url-file <file>', 'a file that holds the URL')
    .option('--schemas <names>', 'only these schemas', splitList)
    .option(
      '--tables <words>',
      'names between commas; * is any letters, -name leaves out, table=name renames',
    )
    .option('--key <table=column+…>', 'the key of a table that declares none; may be repeated', collect, [])
    .option('--mask <columns>', 'table.column between commas: masked beside those that look personal')
    .option('--clear <columns>', 'table.column between commas: shown although it looks personal')
    .option('--rows <column=value>', 'the role sees only such rows, e.g. org_id=42')
    .addOption(new Option('--others <what>', 'tables without that column').choices(['whole', 'hidden']))
    .option('--tenant <name>', "the gateway's tenant (default: the database's name)")
    .option('--role <name>', 'the role that may read (default: analyst)')
    .option('--subject <name>', 'who has that role (default: user: and your name)')
    .option('--bi', 'BI tools will connect: questions may join on any column (features.joins: any)')
    .option('--no-bi', 'questions join on declared keys alone (features.joins: declared; the default)')
    .option('--issuer-key <file>', "your token issuer's RSA public key, in PEM, beside the gateway's own key")
    .option('--create-role <name>', 'make a database role that may read the tables, and serve as that')
    .option(
      '--row-security',
      "write policies of the database itself behind the gateway's (needs --create-role)",
    )
    .option('-y, --yes', 'ask nothing: defaults stand for all answers')
    .option('--force', 'overwrite manifest.yaml and policy.yaml')
    .option('--json', 'what was made, as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (folder: string, flags: InitFlags) =>
      (await import('../init/run.js')).runInit(folder, flags),
    );
}
