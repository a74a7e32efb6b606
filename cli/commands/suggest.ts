import { type Command, Option } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { postDocument } from '../client.js';
import { findingLines } from '../difference.js';
import { fieldsOf, listOf } from '../fields.js';
import { note, print } from '../output.js';
import { bodyOf, unreadable } from '../reply.js';

interface SuggestFlags extends AskFlags {
  readonly term?: true;
  readonly json?: true;
}

const HELP = `
The running server drafts it; nothing is stored. What a person has to decide, and what stands against the draft as it
is, goes to standard error. Sensitive columns are never guessed. Takes an admin role, as \`osl publish\` does.

Examples:
  $ osl suggest db.public.orders --subject user:admin > orders.yaml
  $ osl suggest --term supplier --subject user:admin`;

export function addSuggest(program: Command): void {
  const command = program.command('suggest').argument('<name>', 'connector.schema.table, or a word');
  addAskOptions(command)
    .addOption(new Option('--term', 'the name is a business word'))
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runSuggest);
}

async function runSuggest(name: string, flags: SuggestFlags): Promise<void> {
  const { url, token } = await visitor(flags, 'admin');
  const reply = await postDocument(url, '/osl/suggest', token, flags.term ? { term: name } : { table: name });
  const body = bodyOf(reply, flags.json);
  if (flags.json) return;
  for (const text of listOf(body['notes'])) note(`note: ${text}`);
  for (const line of findingLines(body['diagnostics'], 'draft')) note(line);
  const { yaml } = fieldsOf(body['fragment']);
  if (typeof yaml !== 'string') throw unreadable();
  print(yaml.trimEnd());
}
