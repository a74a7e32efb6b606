import type { Command } from 'commander';
import {
  addClientOptions,
  addQueryOptions,
  type ClientFlags,
  type QueryTextFlags,
  queryText,
  requestExplanation,
  serverAccess,
} from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { formatExplanation, visibilityWords } from '../explanation.js';
import { print, visible } from '../output.js';
import { bodyOf } from '../reply.js';

interface PlanFlags extends QueryTextFlags {
  readonly statement?: true;
  readonly plan?: true;
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
  addQueryOptions(command)
    .option('--statement', 'also the statement that goes to the database, and where its parameters come from')
    .option('--plan', 'also how the database would run it (EXPLAIN, without ANALYZE)')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runExplain);
}

async function runExplain(argument: string | undefined, flags: PlanFlags): Promise<void> {
  const text = await queryText(argument);
  const upstream = flags.plan ? 'plan' : flags.statement ? 'statement' : null;
  const reply = await requestExplanation(flags, text, upstream);
  const body = bodyOf(reply, flags.json, text);
  if (!flags.json) print(formatExplanation(body));
}

interface WhyFlags extends ClientFlags {
  readonly request?: string;
}

const WHY_HELP = `
Tells of the asker's own rights alone. With --request the owner of the policy is asked for access to the object instead,
for the reason that is given; the answer does not tell whether there is such an object. Who asks is settled as for
\`osl query\`.

Examples:
  $ osl why --subject user:analyst osl.entities.person.email
  $ osl why --subject user:analyst osl.entities.person.email --request "to invite authors to the survey"`;

export function addWhy(program: Command): void {
  const command = program
    .command('why')
    .argument('<object>', 'an entity or facet, or a column: osl.entities.person.email');
  addClientOptions(command)
    .option('--request <reason>', 'ask the owner of the policy for access')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', WHY_HELP)
    .action(runWhy);
}

async function runWhy(object: string, flags: WhyFlags): Promise<void> {
  const { url, token } = await serverAccess(flags);
  if (flags.request !== undefined) {
    const asked = { object, reason: flags.request };
    const body = bodyOf(await postDocument(url, '/osl/access-requests', token, asked), flags.json, '');
    if (!flags.json)
      print(
        body['delivered'] === true
          ? 'asked: the owner of the policy has it'
          : 'asked: it is in the audit log',
      );
    return;
  }
  const path = `/osl/why?object=${encodeURIComponent(object)}`;
  const body = bodyOf(await getDocument(url, path, token), flags.json, '');
  if (flags.json) return;
  const { sees, masked_as: shown, because } = body;
  print(`${visible(String(body['object']))}: ${visibilityWords(sees)}`);
  if (shown !== null) print(`- shown as ${visible(String(shown))}`);
  for (const reason of Array.isArray(because) ? because : []) print(`- ${visible(String(reason))}`);
}
