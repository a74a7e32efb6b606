import type { Command } from 'commander';
import { getDocument } from '../client.js';
import { type Fields, listOf, membersOf, textOf } from '../fields.js';
import { addOperatorOptions, OPERATOR_HELP, type OperatorFlags, operator } from '../operator.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, rowCount, textColumns } from '../table.js';

interface PsFlags extends OperatorFlags {
  readonly json?: true;
}

const HELP = `${OPERATOR_HELP}
SHAPE is what runs, without its literals and without names that the manifest does not declare.

Examples:
  $ osl ps --subject user:admin
  $ osl ps --json | jq '.sessions[] | select(.state == "active")'`;

export function addPs(program: Command): void {
  const command = program.command('ps');
  addOperatorOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runPs);
}

async function runPs(flags: PsFlags): Promise<void> {
  const { url, token } = operator(flags);
  const body = bodyOf(await getDocument(url, '/admin/sessions', await token()), flags.json);
  if (!flags.json) print(sessionsText(body));
}

/** The sessions as a table. */
export function sessionsText({ sessions }: Fields, now = Date.now()): string {
  const rows = membersOf(sessions).map((s) => [
    textOf(s['id']),
    textOf(s['surface']),
    listOf(s['chain']).join(' > '),
    textOf(s['state']),
    age(s['state_since'], now),
    textOf(s['process']),
    s['shape'] === null ? listOf(s['objects']).join(', ') : textOf(s['shape']).slice(0, MOST_SHAPE),
  ]);
  const columns = textColumns(['id', 'surface', 'who', 'state', 'for', 'process', 'shape']);
  return `${formatTable(columns, rows)}\n${rowCount(rows.length)}`;
}

const MOST_SHAPE = 80;

/** For how long: `12 s`, `3 min`, `5 h`. */
function age(since: unknown, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(String(since))) / 1_000));
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
