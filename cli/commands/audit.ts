import { type Command, Option } from 'commander';
import { dataDirOption, manifestOption, policyOption, wholeNumber } from '../flags.js';

const VERIFY_HELP = `
Reads everything, writes nothing, and may run beside the server. Without --key it trusts the key that lies in the
directory, and without --anchor the newest checkpoint there: keep copies elsewhere, or a
witness (OSL_AUDIT_WITNESS), to be sure of more. "recovered"
names the records that no checkpoint covered when a stop out of order was recovered: they could have been cut or made.

Exit status: 0 intact and complete, 4 damaged, 5 records are missing, 6 the newest checkpoint is older than
--max-anchor-age, 2 there is no log.

Examples:
  $ osl audit verify
  $ osl audit verify --dir .osl/audit --key audit.vkey --max-anchor-age 3600 --json`;

const TAIL_HELP = `
Examples:
  $ osl audit tail -n 20
  $ osl audit tail --follow --json | jq 'select(.decision == "deny")'`;

const PROVE_HELP = `
Prints a C2SP tlog-proof for every record of the request; the log's checkpoint.vkey checks it, offline. A checkpoint
is signed every second while records come, and at stop: only what it covers can be proved.

Example:
  $ osl audit prove 0f6d2c1e-4b1a-4e57-9d0a-6a1f7f1f2b11 > proof.txt`;

const CHECK_HELP = `
Needs no log and no server, only the key. Exit status: 0 proved, 1 not.

Example:
  $ osl audit check proof.txt --key checkpoint.vkey`;

const SEARCH_HELP = `
Who touched X: --object X. Who asked for a name that is none here: --name X; the log has it as a fingerprint,
which is made anew with the keys that lie beside it. What S did: --subject S, whoever it acted for or through. A time is a day, a moment
(2026-01-31T12:00:00Z) or so long ago (90m, 12h, 7d). Complete segments are read by an index that lies beside them;
--everything reads all. That the log was read is on record: within a second, or at the server's next start.

Examples:
  $ osl audit search --object person --since 7d
  $ osl audit search --subject user:analyst --decision deny --json`;

const EXPORT_HELP = `
Standard output takes records as they are (jsonl), events of the Open Cybersecurity Schema Framework (ocsf), or CSV.
That the log was read is on record, as for search.

Examples:
  $ osl audit export --format ocsf --since 2026-01-31 > events.jsonl
  $ osl audit export --format csv --object person > person.csv`;

const TABLE_HELP = `
The owner of the database runs it once; the roles must exist. The gateway is told OSL_AUDIT_SINK=postgres and
OSL_AUDIT_URL. Two functions are there for a job: osl_audit.make_partitions(), and osl_audit.prune(), which drops what
the gateways have signed as kept no more.

Example:
  $ osl audit table --gateway osl_gateway --maintenance osl_jobs | psql -1 -v ON_ERROR_STOP=1 service=control`;

const WITNESS_HELP = `
The owner of that database runs it once. It should not be who owns the log.

Example:
  $ osl audit witness-table --gateway osl_gateway | psql -1 -v ON_ERROR_STOP=1 service=witness`;

export function addAudit(program: Command): void {
  const audit = program.command('audit');
  audit
    .command('verify')
    .description('check the whole log: chain, completeness, signed checkpoints')
    .addOption(dirOption())
    .addOption(dataDirOption())
    .option('--key <file>', "the log's verifier key, kept elsewhere")
    .option('--anchor <file>', 'checkpoints, kept elsewhere')
    .option(
      '--witness <place>',
      'a directory, s3:// or postgres:// URL of OSL_AUDIT_WITNESS: all that it keeps',
    )
    .option('--max-anchor-age <seconds>', 'fail where the newest checkpoint is older', wholeNumber(0, 1e9))
    .option('--json', 'the verdicts as JSON')
    .addHelpText('after', VERIFY_HELP)
    .action(async (flags) => (await import('../audit/verify.js')).runVerify(flags));
  audit
    .command('tail')
    .description('show the newest records')
    .addOption(dirOption())
    .addOption(dataDirOption())
    .option('-n, --lines <count>', 'how many', wholeNumber(0, 1_000_000), 10)
    .option('-f, --follow', 'go on with new ones until Ctrl-C')
    .option('--json', 'one JSON record a line')
    .addHelpText('after', TAIL_HELP)
    .action(async (flags) => (await import('../audit/read.js')).runTail(flags));
  const search = audit.command('search').description('find who touched what, when, and what became of it');
  addFilterOptions(search)
    .option('--json', 'one JSON record a line')
    .addHelpText('after', SEARCH_HELP)
    .action(async (flags) => (await import('../audit/read.js')).runSearch(flags));
  const exporting = audit.command('export').description('write records for other tools');
  addFilterOptions(exporting)
    .addOption(
      new Option('--format <format>', 'what to write').choices(['jsonl', 'ocsf', 'csv']).default('jsonl'),
    )
    .addHelpText('after', EXPORT_HELP)
    .action(async (flags) => (await import('../audit/read.js')).runExport(flags));
  audit
    .command('table')
    .description('print the SQL that makes the tables of the log in a Postgres')
    .requiredOption('--gateway <role>', 'who writes: it may insert and select')
    .option('--reader <role>', 'who may search and verify')
    .option('--maintenance <role>', 'who may make partitions and drop those that are kept no more')
    .addHelpText('after', TABLE_HELP)
    .action(async (flags) => (await import('../audit/table.js')).runTableSql(flags));
  audit
    .command('witness-table')
    .description('print the SQL that makes the table of a witness in another Postgres')
    .requiredOption('--gateway <role>', 'who writes: it may insert and select')
    .addHelpText('after', WITNESS_HELP)
    .action(async (flags) => (await import('../audit/table.js')).runWitnessSql(flags));
  audit
    .command('prove')
    .description('prove that the records of a request are in the log')
    .argument('<request-id>', 'as answers and errors state it')
    .option('--everything', 'read every record, and use no index')
    .addOption(dirOption())
    .addOption(dataDirOption())
    .option('--json', 'as JSON')
    .addHelpText('after', PROVE_HELP)
    .action(async (id, flags) => (await import('../audit/verify.js')).runProve(id, flags));
  audit
    .command('check')
    .description('check what `prove` printed')
    .argument('<file>', 'the proofs; - is standard input')
    .option('--key <file>', "the log's verifier key (default: the one in the log's directory)")
    .addOption(dirOption())
    .addOption(dataDirOption())
    .option('--json', 'as JSON')
    .addHelpText('after', CHECK_HELP)
    .action(async (file, flags) => (await import('../audit/verify.js')).runCheck(file, flags));
}

function addFilterOptions(command: Command): Command {
  return command
    .option('--subject <subject>', 'who asked, or stands in the chain of who asked')
    .option('--object <name>', 'what was touched: osl.entities.person, or person')
    .option('--name <name>', 'a name that was asked for and declared nowhere, such as pg_authid')
    .option('--since <time>', 'records from then on')
    .option('--until <time>', 'records before then')
    .option('--action <action>', 'query, login, publish, …')
    .addOption(choice('--decision <decision>', 'what was decided', ['allow', 'deny', 'error']))
    .addOption(
      choice('--outcome <outcome>', 'how it ended', ['ok', 'error', 'cancelled', 'truncated', 'unknown']),
    )
    .addOption(choice('--surface <surface>', 'by way of what', ['rest', 'wire', 'mcp', 'cli', 'system']))
    .addOption(choice('--kind <kind>', 'which records', ['decision', 'outcome', 'event']))
    .option('--code <code>', 'an error code, such as E2101')
    .option('--request <id>', 'the records of one request')
    .option('--limit <count>', 'so many at most', wholeNumber(1, 1_000_000_000))
    .option('--everything', 'read every record, and use no index')
    .addOption(dirOption())
    .addOption(dataDirOption());
}

function choice(flags: string, about: string, words: readonly string[]): Option {
  return new Option(flags, about).choices(words);
}

function dirOption(): Option {
  return new Option('--dir <dir>', 'the log (default: audit in the data directory)');
}

const RECEIPT_HELP = `
A receipt is what \`osl query --receipt FILE\` wrote: FILE can be shown to anybody, FILE.salt is for those who may see
the answer. The key is the log's checkpoint.vkey; take a copy that was kept elsewhere.

Exit status: 0 valid, 1 wrong.

Examples:
  $ osl query --subject user:analyst --receipt r.txt --json "select name from package limit 5" > answer.json
  $ osl receipt verify r.txt --key checkpoint.vkey --rows answer.json`;

const REPLAY_HELP = `
Shows that this manifest and this policy give the objects and masks that the receipt names, and what was sent to the
database, for the caller with all roles that the policy gives. Exit status: 0 the same, 1 not, 2 other versions.

Example:
  $ osl receipt replay r.txt --key checkpoint.vkey --question question.json --manifest manifest.yaml`;

const COSE_HELP = `
For verifiers that read COSE and not the text of C2SP. It has the path of the same record in the same tree, and needs a
signature of its own over the root, so only who runs the log can make it. Its entry is the record, byte for byte.

Example:
  $ osl receipt export r.txt --key checkpoint.vkey --signing-key .osl/audit/checkpoint.key --cose r.cose`;

export function addReceipt(program: Command): void {
  const receipt = program.command('receipt').addHelpText('after', RECEIPT_HELP);
  receipt
    .command('verify')
    .description('check a receipt, without server and log')
    .argument('<file>', 'the receipt')
    .requiredOption('--key <file>', "the log's verifier key")
    .option('--rows <file>', 'the answer, in JSON or NDJSON')
    .option('--question <file>', 'the body of the request, in JSON')
    .option('--salt <file>', 'what only the caller got; by default beside the receipt, with .salt')
    .option('--witness <place>', 'and whether a witness of the log knows of it: a folder, s3:, postgres:')
    .option('--json', 'the record and what was compared, as JSON')
    .addHelpText('after', RECEIPT_HELP)
    .action(async (file, flags) => (await import('../receipt/verify.js')).runVerifyReceipt(file, flags));
  receipt
    .command('export')
    .description('write a receipt as COSE receipt (RFC 9942)')
    .argument('<file>', 'the receipt')
    .requiredOption('--key <file>', "the log's verifier key")
    .requiredOption('--signing-key <file>', "the log's signing key, checkpoint.key")
    .requiredOption('--cose <file>', 'where to; the record, which it is about, goes to <file>.record.json')
    .addHelpText('after', COSE_HELP)
    .action(async (file, flags) =>
      (await import('../receipt/proven-record.js')).runExportReceipt(file, flags),
    );
  receipt
    .command('replay')
    .description('compile the question of a receipt again, under the versions that it names')
    .argument('<file>', 'the receipt')
    .requiredOption('--key <file>', "the log's verifier key")
    .requiredOption('--question <file>', 'the body of the request, in JSON')
    .option('--salt <file>', 'what only the caller got; by default beside the receipt, with .salt')
    .addOption(manifestOption())
    .addOption(policyOption())
    .addOption(dataDirOption())
    .option('--json', 'objects, masks and SQL as JSON')
    .addHelpText('after', REPLAY_HELP)
    .action(async (file, flags) => (await import('../receipt/replay.js')).runReplay(file, flags));
}
