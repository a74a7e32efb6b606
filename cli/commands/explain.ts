import type { Command } from 'commander';
import { addQuestionOptions, askToExplain, type QuestionFlags, questionText } from '../ask.js';
import { formatExplanation } from '../explanation.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';

interface PlanFlags extends QuestionFlags {
  readonly statement?: true;
  readonly plan?: true;
  readonly json?: true;
}

const HELP = `
Nothing is run, and no data is read. Who asks is settled as for \`osl query\`, and so is the exit status. --statement and
--plan take an admin role: a minted token claims those that the policy gives the subject. The plan is one that holds
whatever the values; the steps before the statement of RETRIEVE, TRAVERSE and evidence are not in it.

Examples:
  $ osl explain --subject user:analyst "select name, email from osl.entities.person where email like '%@%'"
  $ osl explain --subject user:admin --plan "select license, count(*) from osl.entities.package group by license"`;

export function addExplain(program: Command): void {
  const command = program
    .command('explain')
    .argument('[text]', 'the question; - or nothing reads standard input');
  addQuestionOptions(command)
    .option('--statement', 'also the statement that goes to the database, and where its parameters come from')
    .option('--plan', 'also how the database would run it (EXPLAIN, without ANALYZE)')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runExplain);
}

async function runExplain(argument: string | undefined, flags: PlanFlags): Promise<void> {
  const text = await questionText(argument);
  const upstream = flags.plan ? 'plan' : flags.statement ? 'statement' : null;
  const reply = await askToExplain(flags, text, upstream);
  const body = bodyOf(reply, flags.json, text);
  if (!flags.json) print(formatExplanation(body));
}
