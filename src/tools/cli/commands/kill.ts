import type { Command } from 'commander';
import { postDocument } from '../client.js';
import { textOf } from '../fields.js';
import { addOperatorOptions, OPERATOR_HELP, type OperatorFlags, operator } from '../operator.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';

interface KillFlags extends OperatorFlags {
  readonly cancel?: true;
  readonly json?: true;
}

const HELP = `${OPERATOR_HELP}
The id is that of \`osl ps\`: the process id of a session, or the id of a request.

Examples:
  $ osl kill 1048577 --subject user:admin
  $ osl kill 1048577 --cancel --subject user:admin`;

export function addKill(program: Command): void {
  const command = program.command('kill').argument('<id>', 'as `osl ps` has it');
  addOperatorOptions(command)
    .option('--cancel', 'only what it runs: the session stays')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runKill);
}

async function runKill(id: string, flags: KillFlags): Promise<void> {
  const { url, token } = operator(flags);
  const path = `/admin/sessions/${encodeURIComponent(id)}/${flags.cancel ? 'cancel' : 'end'}`;
  bodyOf(await postDocument(url, path, await token(), {}), flags.json);
  if (!flags.json) print(`${flags.cancel ? 'cancelled' : 'ended'} ${textOf(id)}`);
}
