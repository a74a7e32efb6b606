import type { Command } from 'commander';
import { cellOf } from '../answer.js';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { postSample } from '../client.js';
import type { Fields } from '../fields.js';
import { wholeNumber } from '../flags.js';
import { note, print, terminalWidth } from '../output.js';
import { bodyOf, unreadable } from '../reply.js';
import { formatTable, rowCount, textColumns } from '../table.js';

interface SampleFlags extends AskFlags {
  readonly facet?: true;
  readonly limit?: number;
  readonly json?: true;
}

const HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status. What may not be seen is shown as [redacted].

Examples:
  $ osl sample person
  $ osl sample --facet readme --limit 2 --subject user:analyst`;

export function addSample(program: Command): void {
  const command = program.command('sample').argument('<name>', 'the entity, or with --facet the facet');
  addAskOptions(command)
    .option('--facet', 'the name is that of a facet')
    .option('--limit <rows>', '1 to 100; default 8, of a facet 5', wholeNumber(1, 100))
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runSample);
}

async function runSample(name: string, flags: SampleFlags): Promise<void> {
  const { url, token } = await visitor(flags);
  const kind = flags.facet ? 'facet' : 'table';
  const reply = await postSample(url, token, {
    kind,
    name,
    ...(flags.limit === undefined ? {} : { limit: flags.limit }),
  });
  const body = bodyOf(reply, flags.json, name);
  if (!flags.json) printSample(body);
}

function printSample(body: Fields): void {
  const rows = body['rows'];
  if (!Array.isArray(rows)) throw unreadable();
  const [first] = rows;
  const names = Object.keys(first ?? {});
  const cells = rows.map((row) => names.map((name) => cellOf(row[name])));
  const table = formatTable(textColumns(names), cells, terminalWidth());
  print([table, rowCount(rows.length)].filter((text) => text !== '').join('\n'));
  for (const list of ['redacted_columns', 'redacted_fields']) {
    const masked = body[list];
    if (Array.isArray(masked) && masked.length > 0) note(`masked: ${masked.join(', ')}`);
  }
}
