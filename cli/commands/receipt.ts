import type { Command } from 'commander';

const HELP = `
A receipt is what \`osl query --receipt FILE\` wrote: FILE can be shown to anybody, FILE.salt is for those who may see
the answer. The key is the log's checkpoint.vkey; take a copy that was kept elsewhere.

Exit status: 0 valid, 1 wrong.

Examples:
  $ osl query --subject user:analyst --receipt r.txt --json "select name from package limit 5" > answer.json
  $ osl receipt verify r.txt --key checkpoint.vkey --rows answer.json`;

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
    .option('--json', 'the record and what was compared, as JSON')
    .addHelpText('after', HELP)
    .action(async (file, flags) => (await import('../receipt/verify.js')).runVerifyReceipt(file, flags));
}
