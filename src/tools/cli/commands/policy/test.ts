import type { Command } from 'commander';
import { wholeNumber } from '../../flags.js';

const HELP = `
A file of tests says what callers are to see (docs/policy-tests.md): a question, who asks it, and the decision, the
columns, what is masked, the rows. Questions take the way that they take in a server, over embedded tables with the
rows of the file; the databases of the manifest are not reached. Where all pass, each rule of the policy is changed
alone (a grant taken away, a row filter dropped, a mask lifted), and the changes that no test notices are listed.

Exit status: 0 all pass, 1 a test fails or fewer changes are noticed than --min-coverage says, 2 a file is wrong.

Examples:
  $ osl policy test                              # policy.test.yaml
  $ osl policy test tests/*.yaml --min-coverage 100
  $ osl policy test --no-coverage --json | jq '.files[].results[] | select(.ok | not)'`;

export function addTest(policy: Command): void {
  policy
    .command('test')
    .description('hold a policy to what callers are expected to see')
    .argument('[files...]', 'files of tests (default: policy.test.yaml)')
    .option('--min-coverage <percent>', 'fail where fewer changed rules are noticed', wholeNumber(0, 100))
    .option('--no-coverage', 'do not look which rules no test holds')
    .option('--json', 'the results as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (files, flags) => (await import('../../policy/test.js')).runTest(files, flags));
}
