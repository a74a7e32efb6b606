import type { Command } from 'commander';
import { addQuestionOptions, askServer, type QuestionFlags, questionText } from '../ask.js';
import { formatExplanation } from '../explanation.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';

interface ExplainFlags extends QuestionFlags {
  readonly json?: true;
}

const HELP = `
Nothing is run, and no data is read. Who asks is settled as for \`osl query\`, and so is the exit status.

Example:
  $ osl explain --subject user:analyst "select name, email from osl.entities.person where email like '%@%'"`;

export function addExplain(program: Command): void {
  const command = program
    .command('explain')
    .description('show how the running server would answer a question')
    .argument('[text]', 'the question; - or nothing reads standard input');
  addQuestionOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runExplain);
}

async function runExplain(argument: string | undefined, flags: ExplainFlags): Promise<void> {
  const text = await questionText(argument);
  const reply = await askServer(flags, text, true);
  const body = bodyOf(reply, flags.json, text);
  if (!flags.json) print(formatExplanation(body));
}
