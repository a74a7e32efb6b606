import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { getDocument } from '../client.js';
import { type Fields, fieldsOf, membersOf, textOf } from '../fields.js';
import { wholeNumber } from '../flags.js';
import { addOperatorOptions, OPERATOR_HELP, type OperatorFlags, operator } from '../operator.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, textColumns } from '../table.js';
import { sessionsText } from './ps.js';

interface TopFlags extends OperatorFlags {
  readonly every: number;
  readonly times?: number;
}

const HELP = `${OPERATOR_HELP}
Each picture is four requests of the limit \`authoring\`. Ctrl-C ends it.

Example:
  $ osl top --every 2 --subject user:admin`;

export function addTop(program: Command): void {
  const command = program.command('top');
  addOperatorOptions(command)
    .option('--every <seconds>', 'how often', wholeNumber(1, 3_600), 2)
    .option('-n, --times <count>', 'so many times, then end', wholeNumber(1, 1_000_000))
    .addHelpText('after', HELP)
    .action(runTop);
}

/** Of a terminal: from the top left corner, with nothing below. */
const CLEAR = '\u001b[H\u001b[2J';

async function runTop(flags: TopFlags): Promise<void> {
  const { url, token } = operator(flags);
  for (let n = 0; flags.times === undefined || n < flags.times; n++) {
    if (n > 0) await sleep(1_000 * flags.every);
    const bearer = await token();
    const read = async (path: string): Promise<Fields> =>
      bodyOf(await getDocument(url, path, bearer), undefined);
    const standing = await read('/admin/standing');
    const pools = await read('/admin/pools');
    const sessions = await read('/admin/sessions');
    print(`${process.stdout.isTTY ? CLEAR : ''}${picture(standing, pools, sessions)}`);
  }
}

function picture({ processes }: Fields, { pools }: Fields, sessions: Fields): string {
  const standing = membersOf(processes).map((p) => {
    const audit = fieldsOf(p['audit']);
    return [
      textOf(p['process']),
      textOf(p['sessions']),
      p['draining'] === true ? 'draining' : textOf(p['policy']) === '' ? 'no policy' : 'serves',
      textOf(audit['failing'] ?? audit['waiting']),
    ];
  });
  const rows = membersOf(pools).map((p) =>
    ['process', 'connector', 'purpose', 'running', 'waiting', 'open', 'size', 'reach'].map((name) =>
      textOf(p[name]),
    ),
  );
  return [
    formatTable(textColumns(['process', 'sessions', 'state', 'audit waits']), standing),
    '',
    formatTable(
      textColumns(['process', 'database', 'purpose', 'running', 'waiting', 'open', 'most', 'reach']),
      rows,
    ),
    '',
    sessionsText(sessions),
    '',
  ].join('\n');
}
