import type { Command } from 'commander';
import { getDocument } from '../../client.js';
import { type Fields, membersOf, textOf } from '../../fields.js';
import { addOperatorOptions, OPERATOR_HELP, type OperatorFlags, operator } from '../../operator.js';
import { print } from '../../output.js';
import { bodyOf } from '../../reply.js';
import { formatTable, rowCount, textColumns } from '../../table.js';

interface RevokedFlags extends OperatorFlags {
  readonly json?: true;
}

const HELP = `${OPERATOR_HELP}

Examples:
  $ osl token revoked --subject user:admin`;

export function addRevoked(parent: Command): void {
  const command = parent
    .command('revoked')
    .description('list what is revoked, and has not ended by itself yet');
  addOperatorOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runRevoked);
}

async function runRevoked(flags: RevokedFlags): Promise<void> {
  const { url, token } = operator(flags);
  const body = bodyOf(await getDocument(url, '/admin/tokens/revoked', await token()), flags.json);
  if (!flags.json) print(listText(body));
}

function listText({ revoked }: Fields): string {
  const rows = membersOf(revoked).map(({ kind, name, at, until }) => [kind, name, at, until].map(textOf));
  return `${formatTable(textColumns(['kind', 'name', 'revoked at', 'until']), rows)}\n${rowCount(rows.length)}`;
}
