import type { Command } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { print, visible } from '../output.js';
import { bodyOf } from '../reply.js';
import { sightWords } from '../sight.js';

interface WhyFlags extends AskFlags {
  readonly request?: string;
  readonly json?: true;
}

const HELP = `
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
  addAskOptions(command)
    .option('--request <reason>', 'ask the owner of the policy for access')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runWhy);
}

async function runWhy(object: string, flags: WhyFlags): Promise<void> {
  const { url, token } = await visitor(flags);
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
  print(`${visible(String(body['object']))}: ${sightWords(sees)}`);
  if (shown !== null) print(`- shown as ${visible(String(shown))}`);
  for (const reason of Array.isArray(because) ? because : []) print(`- ${visible(String(reason))}`);
}
