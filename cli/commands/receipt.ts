import type { Command } from 'commander';
import { dataDirOption, manifestOption, policyOption } from '../flags.js';

const HELP = `
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

const EXPORT_HELP = `
For verifiers that read COSE and not the text of C2SP. It has the path of the same record in the same tree, and needs a
signature of its own over the root, so only who runs the log can make it. Its entry is the record, byte for byte.

Example:
  $ osl receipt export r.txt --key checkpoint.vkey --signing-key .osl/audit/checkpoint.key --cose r.cose`;

export function addReceipt(program: Command): void {
  const receipt = program.command('receipt').addHelpText('after', HELP);
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
    .addHelpText('after', HELP)
    .action(async (file, flags) => (await import('../receipt/verify.js')).runVerifyReceipt(file, flags));
  receipt
    .command('export')
    .description('write a receipt as COSE receipt (RFC 9942)')
    .argument('<file>', 'the receipt')
    .requiredOption('--key <file>', "the log's verifier key")
    .requiredOption('--signing-key <file>', "the log's signing key, checkpoint.key")
    .requiredOption('--cose <file>', 'where to; the record, which it is about, goes to <file>.record.json')
    .addHelpText('after', EXPORT_HELP)
    .action(async (file, flags) => (await import('../receipt/export.js')).runExportReceipt(file, flags));
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
