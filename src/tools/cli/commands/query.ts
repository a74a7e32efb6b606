import { type Command, Option } from 'commander';
import { answerOf, FORMATS, type Format, formatAnswer, formatAnswerCsv, notesOn } from '../answer.js';
import {
  addQuestionOptions,
  askServer,
  type QuestionFlags,
  questionOf,
  questionText,
  visitor,
} from '../ask.js';
import type { AnswerBody } from '../client.js';
import { EXIT } from '../exit.js';
import { note, print, terminalWidth } from '../output.js';
import { bodyOf, unreadable } from '../reply.js';

interface QueryFlags extends QuestionFlags {
  readonly format: Format;
  readonly json?: true;
}

const HELP = `
Without --token and --subject: OSL_TOKEN, OSL_SUBJECT, the only subject of the policy, or in the demo user:analyst.

Exit status: 0 answered in full, 1 refused or failed, 2 usage or configuration, 3 no server answers,
8 truncated: what was written is right, and not all of it. It is the same for each --format.

Examples:
  $ osl query --subject user:analyst "select license, count(*) from osl.entities.package group by license"
  $ osl query --token "$(osl token --subject user:auditor)" --json "select name, email from osl.entities.person"
  $ osl query --subject user:analyst --sql "select name, email from supply.person limit 3"
  $ osl query --subject user:analyst --metrics '{"metrics": ["install_bytes"], "group_by": ["package__license_class"]}'
  $ osl query --subject user:analyst --format arrow "select name, license from osl.entities.package" > packages.arrows
  $ echo "select 1" | osl query --subject user:analyst -`;

export function addQuery(program: Command): void {
  const command = program
    .command('query')
    .description('ask the running server a question in OSL-SQL')
    .argument('[text]', 'the question; - or nothing reads standard input');
  addQuestionOptions(command)
    .addOption(new Option('--format <format>', 'how the answer is written').choices(FORMATS).default('table'))
    .option('--json', "the server's answer as it is; the same as --format json")
    .addHelpText('after', HELP)
    .action(runQuery);
}

async function runQuery(argument: string | undefined, flags: QueryFlags): Promise<void> {
  const text = await questionText(argument);
  const format = flags.json ? 'json' : flags.format;
  if (format === 'arrow') {
    const { printArrow } = await import('../arrow.js');
    const { url, token } = await visitor(flags);
    endWith(await printArrow(url, token, questionOf(flags, text), text));
    return;
  }
  const reply = await askServer(flags, text);
  const body = bodyOf(reply, format === 'json', text);
  endWith({ truncated: body['truncated'] === true });
  if (format === 'json') return;
  const answer = answerOf(body);
  if (answer === null) throw unreadable();
  printAnswer(answer, format);
}

/** A script that reads rows sees by nothing else that there are more. */
function endWith({ truncated }: Pick<AnswerBody, 'truncated'>): void {
  if (truncated) process.exitCode = EXIT.truncated;
}

function printAnswer(answer: AnswerBody, format: 'table' | 'csv'): void {
  if (format === 'table') {
    print(formatAnswer(answer, terminalWidth()));
    return;
  }
  print(formatAnswerCsv(answer));
  for (const line of notesOn(answer)) note(line);
}
