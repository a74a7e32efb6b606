import { type Command, Option } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import { addClientOptions, addOperatorOptions, OPERATOR_HELP } from '../ask.js';
import { dataDirOption, manifestOption, policyOption, wholeNumber } from '../flags.js';
import type { AuthorFlags, PolicyFlags } from '../policy/baseline.js';
import type { PolicyDiffFlags } from '../policy/diff.js';
import type { ShadowFlags } from '../policy/shadow.js';
import type { ActivateFlags, PushFlags } from '../policy/versions.js';

const HELP = `
test holds a policy to what callers are to see, explain says how somebody sees an object and which rules decide.

With OSL_POLICY_SOURCE=control a gateway takes its policy from the database of OSL_CONTROL_URL, where these commands
put it, version by version; nothing there is ever changed or removed.

Examples:
  $ osl policy test
  $ osl policy explain --as user:analyst --object osl.entities.person.email --subject user:admin
  $ osl policy push policy.yaml --activate --comment "north may see invoices"`;

function tenantOption(): Option {
  return new Option('--tenant <name>', 'whose policy (default: as the manifest says, or the only one there)');
}

function authorOption(): Option {
  return new Option('--author <name>', 'who does it, for the history (default: user@host)');
}

function commentOption(): Option {
  return new Option('--comment <text>', 'why, for the history');
}

function claimsOption(): Option {
  return new Option(
    '--claims <file>',
    'what must be proved where the policy says `claims: required`',
  ).default(undefined, 'policy.test.yaml beside the policy');
}

const SHOW_HELP = `
Examples:
  $ osl policy show > policy.yaml
  $ osl policy show 9`;

const HISTORY_HELP = `
Example:
  $ osl policy history --json | jq '.activations[0]'`;

const ACTIVATE_HELP = `
It is checked and compared again, against what serves now. Gateways take it up as soon as they hear of it, each with all
its workers or not at all.

Example:
  $ osl policy activate 12 --comment "ticket 4711"`;

const PUSH_HELP = `
The policy is compiled against the manifest with what is published, and compared with the one that serves: who gains, who
loses. One that could not serve is not kept; the exit status is 2 then. Without --activate it is kept and serves nobody.

Examples:
  $ osl policy push policy.yaml
  $ osl policy push policy.yaml --activate --comment "ticket 4711"`;

const ROLLBACK_HELP = `
Without a number: the version that served before the one that serves. It is checked and compared where the manifest is at
hand; where it is not, as on somebody's laptop at night, each gateway checks it by itself. History goes on: a rollback is
an entry of its own.

Examples:
  $ osl policy rollback --comment "12 shows salaries"
  $ osl policy rollback 9`;

const EXPLAIN_HELP = `
Who asks for it needs an admin role: a minted token claims those that the policy gives --subject. The server answers by
what it serves now, and records that it was asked. With --row it looks whether that row is there for the subject.

Examples:
  $ osl policy explain --as user:analyst --object osl.entities.person.email --subject user:admin
  $ osl policy explain --as-chain user:counsel,agent:scout --object package --row node_modules/ajv --subject user:admin`;

const DIFF_HELP = `
Compared with what serves: the active version of the control database where OSL_CONTROL_URL is set, else the policy file.
A policy that could not serve is told with its faults; the exit status is 2 then.

--since adds which questions of the audit log would be answered otherwise, by caller and object, in numbers: the log
holds no texts. It does not know either what a token claimed: a caller is taken to have every role that it can have, and
what an object shows otherwise need not be what the question read of it. That the log was read is on record.

--prove compares each role on each entity for all rows and callers: equal, narrower, wider or incomparable, with a row and
a caller that gain access, which were tried.

Examples:
  $ osl policy diff policy.yaml
  $ osl policy diff policy.yaml --since 7d
  $ osl policy diff new.yaml --policy policy.yaml --prove
  $ osl policy diff 12`;

const SHADOW_HELP = `${OPERATOR_HELP}
The running server compares the decision of the policy that serves with that of another one, on the questions that it
gets, and changes no answer (docs/policy-tests.md). It takes at most a twentieth of a processor, and nothing of it survives a
restart. Each gateway compares by itself.`;

const SHADOW_EXAMPLE_HELP = `${SHADOW_HELP}

Examples:
  $ osl policy shadow start policy.new.yaml --subject user:admin
  $ osl policy shadow stop --subject user:admin`;

const SHADOW_START_HELP = `${SHADOW_HELP}

Examples:
  $ osl policy shadow start policy.new.yaml --for 2h --subject user:admin
  $ osl policy shadow start 12 --subject user:admin`;

const SHADOW_REPORT_HELP = `${SHADOW_HELP}

Example:
  $ osl policy shadow report --subject user:admin --json | jq '.shadow.rows[] | select(.refused > 0)'`;

const TEST_HELP = `
A file of tests says what callers are to see (docs/policy-tests.md): a question, who asks it, and the decision, the
columns, what is masked, the rows. Questions take the way that they take in a server, over embedded tables with the
rows of the file; the databases of the manifest are not reached. Where all pass, each rule of the policy is changed
alone (a grant taken away, a row filter dropped, a mask lifted), and the changes that no test notices are listed.

Exit status: 0 all pass, 1 a test fails or fewer changes are noticed than --min-coverage says, 2 a file is wrong.

Examples:
  $ osl policy test                              # policy.test.yaml
  $ osl policy test tests/*.yaml --min-coverage 100
  $ osl policy test --no-coverage --json | jq '.files[].results[] | select(.ok | not)'`;

const PROVE_HELP = `
Tests show what somebody thought of; a proof holds for every row and every caller. \`claims\` of the file say what may never
be seen, what always is, which roles see the same, and which callers have nothing in common (docs/policy-proofs.md). A claim
is proved, refuted with a row and a caller, which were tried, or unknown, with the expression that it depends on. Rules
that do nothing are noted. It needs the package z3-solver (npm install z3-solver).

Exit status: 0 all proved, 1 a claim is refuted, 2 a file is wrong, 3 a claim is unknown.

Examples:
  $ osl policy prove
  $ osl policy prove tests/policy.test.yaml --json`;

export function addPolicy(program: Command): void {
  const policy = program.command('policy').addHelpText('after', HELP);
  policy
    .command('test')
    .description('hold a policy to what callers are expected to see')
    .argument('[files...]', 'files of tests (default: policy.test.yaml)')
    .option('--min-coverage <percent>', 'fail where fewer changed rules are noticed', wholeNumber(0, 100))
    .option('--no-coverage', 'do not look which rules no test holds')
    .option('--json', 'the results as JSON on standard output')
    .addHelpText('after', TEST_HELP)
    .action(async (files, flags) => (await import('../policy/test.js')).runTest(files, flags));
  policy
    .command('prove')
    .description('prove claims about a policy, for all rows and callers')
    .argument('[file]', 'a file of policy tests with `claims` (default: policy.test.yaml)')
    .option('--no-lint', 'do not look for rules that do nothing')
    .option('--json', 'the verdicts as JSON on standard output')
    .addOption(
      new Option('--sarif', 'what is not proved as SARIF 2.1.0 on standard output').conflicts('json'),
    )
    .addHelpText('after', PROVE_HELP)
    .action(async (file, flags) => (await import('../policy/prove.js')).runProve(file, flags));
  addClientOptions(
    policy
      .command('explain')
      .description('say how somebody sees an object, and which rules decide')
      .requiredOption('--object <name>', 'an entity, bridge or facet, or a column: osl.entities.person.email')
      .addOption(new Option('--as <subject>', 'who is supposed to ask').conflicts('asChain'))
      .addOption(new Option('--as-chain <names>', 'for whom whom: root first').argParser(splitList))
      .addOption(new Option('--as-roles <names>', 'data roles that the token claims').argParser(splitList))
      .option('--at <moment>', 'as of a moment (RFC 3339); default: now')
      .addOption(new Option('--on <surface>', 'asked by way of it').choices(['rest', 'wire', 'mcp']))
      .option('--from <address>', 'asked from this address')
      .option('--for <purpose>', 'what it is asked for')
      .option('--row <value...>', 'the primary key of one row'),
  )
    .option('--json', "the server's answer as it is")
    .addHelpText('after', EXPLAIN_HELP)
    .action(async (flags) => (await import('../policy/explain.js')).runExplainAccess(flags));
  policy
    .command('push')
    .description('keep a policy as the next version')
    .argument('<file>', 'the policy')
    .addOption(manifestOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .option('--activate', 'and have it serve at once')
    .addOption(claimsOption())
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', PUSH_HELP)
    .action(async (file: string, flags: PushFlags) =>
      (await import('../policy/versions.js')).runPush(file, flags),
    );
  policy
    .command('diff')
    .description('say what a policy would change: who gains, who loses')
    .argument('<policy>', 'a file, or the number of a version')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--since <time>', 'and which questions since then it would change: a day, a moment, or 7d')
    .option('--dir <dir>', 'their log (default: audit in the data directory)')
    .addOption(dataDirOption())
    .option('--prove', 'and prove which roles see the same, more or less (needs z3-solver)')
    .option('--json', 'the judgement as JSON')
    .addHelpText('after', DIFF_HELP)
    .action(async (proposed: string, flags: PolicyDiffFlags) =>
      (await import('../policy/diff.js')).runPolicyDiff(proposed, flags),
    );
  addShadow(policy);
  addVersions(policy);
}

function addShadow(policy: Command): void {
  const shadow = policy
    .command('shadow')
    .description('compare a policy with the one that serves, on real questions')
    .addHelpText('after', SHADOW_EXAMPLE_HELP);
  addOperatorOptions(
    shadow
      .command('start')
      .description('begin to compare a policy')
      .argument('<with>', 'a file, or the number of a version')
      .option('--for <time>', 'end after 30m, 2h, 7d', '1d')
      .addOption(tenantOption()),
  )
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SHADOW_START_HELP)
    .action(async (file: string, flags: ShadowFlags) =>
      (await import('../policy/shadow.js')).runShadowStart(file, flags),
    );
  addOperatorOptions(
    shadow
      .command('report')
      .description('what would be refused, masked or newly shown, by caller and object'),
  )
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SHADOW_REPORT_HELP)
    .action(async (flags: ShadowFlags) => (await import('../policy/shadow.js')).runShadowReport(flags));
  addOperatorOptions(shadow.command('stop').description('end the comparison, with its last report'))
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SHADOW_EXAMPLE_HELP)
    .action(async (flags: ShadowFlags) => (await import('../policy/shadow.js')).runShadowStop(flags));
}

function addVersions(policy: Command): void {
  policy
    .command('activate')
    .description('have a version serve, on every gateway')
    .argument('<version>', 'its number', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .addOption(claimsOption())
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', ACTIVATE_HELP)
    .action(async (version: number, flags: ActivateFlags) =>
      (await import('../policy/versions.js')).runActivate(version, flags),
    );
  policy
    .command('rollback')
    .description('have an earlier version serve again, on every gateway')
    .argument('[version]', 'its number', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(tenantOption())
    .addOption(authorOption())
    .addOption(commentOption())
    .option('--json', 'what it changes, and its number, as JSON')
    .addHelpText('after', ROLLBACK_HELP)
    .action(async (version: number | undefined, flags: AuthorFlags) =>
      (await import('../policy/versions.js')).runRollback(version ?? null, flags),
    );
  policy
    .command('history')
    .description('which versions there are, and which served since when, by whom')
    .addOption(manifestOption())
    .addOption(tenantOption())
    .option('--json', 'as JSON')
    .addHelpText('after', HISTORY_HELP)
    .action(async (flags: PolicyFlags) => (await import('../policy/versions.js')).runHistory(flags));
  policy
    .command('show')
    .description('print the text of a version')
    .argument('[version]', 'its number (default: the one that serves)', wholeNumber(1, 1e9))
    .addOption(manifestOption())
    .addOption(tenantOption())
    .addHelpText('after', SHOW_HELP)
    .action(async (version: number | undefined, flags: PolicyFlags) =>
      (await import('../policy/versions.js')).runShow(version ?? null, flags),
    );
}
