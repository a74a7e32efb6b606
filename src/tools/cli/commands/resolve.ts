import type { Command } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { getDocument } from '../client.js';
import { EXIT, Failure } from '../exit.js';
import { membersOf, textOf } from '../fields.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable } from '../table.js';

interface ResolveFlags extends AskFlags {
  readonly json?: true;
}

const HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status; 1 too where nothing is found.

Example:
  $ osl resolve footprint --subject user:analyst`;

export function addResolve(program: Command): void {
  const command = program.command('resolve').argument('<term>', 'the word, or several');
  addAskOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runResolve);
}

async function runResolve(term: string, flags: ResolveFlags): Promise<void> {
  const { url, token } = await visitor(flags);
  const reply = await getDocument(url, `/osl/schema/resolve?term=${encodeURIComponent(term)}`, token);
  const matches = membersOf(bodyOf(reply, flags.json)['matches']);
  if (matches.length === 0)
    throw new Failure(EXIT.failed, 'error: nothing of that name or meaning is to be seen');
  if (flags.json) return;
  const columns = ['name', 'kind', 'score', 'via'].map((name) => {
    return { name, align: name === 'score' ? ('right' as const) : ('left' as const) };
  });
  print(
    formatTable(
      columns,
      matches.map((m) => [textOf(m['fqn']), textOf(m['kind']), textOf(m['score']), textOf(m['via'])]),
    ),
  );
}
