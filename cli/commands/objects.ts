import type { Command } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { getDocument } from '../client.js';
import { differenceLines } from '../difference.js';
import { fieldsOf, membersOf, print, type ReplyFields, textOf } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, textColumns } from '../table.js';

interface ObjectsFlags extends AskFlags {
  readonly json?: true;
}

const HELP = `
Takes an admin role, as \`osl publish\` does.

Examples:
  $ osl objects --subject user:admin
  $ osl objects 3 --json --subject user:admin | jq .version.objects`;

export function addObjects(program: Command): void {
  const command = program.command('objects').argument('[id]', 'a version by number or id, or a draft');
  addAskOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runObjects);
}

async function runObjects(id: string | undefined, flags: ObjectsFlags): Promise<void> {
  const { url, token } = await visitor(flags, 'admin');
  const path = id === undefined ? '/osl/objects' : `/osl/objects/${encodeURIComponent(id)}`;
  const reply = await getDocument(url, path, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(id === undefined ? listText(body) : oneText(body));
}

function listText({ version, base, objects, history, drafts, truncated }: ReplyFields): string {
  const published = membersOf(objects).map((o) => [
    textOf(o['name']),
    textOf(o['state']),
    o['over_file'] === true ? 'yes' : '',
  ]);
  const versions = membersOf(history).map((v) => [
    textOf(v['number']),
    textOf(v['action']),
    textOf(v['at']),
    textOf(fieldsOf(v['author'])['subject']),
    textOf(v['manifest']),
  ]);
  const kept = membersOf(drafts).map((d) => [
    textOf(d['id']),
    textOf(d['state']),
    textOf(d['at']),
    textOf(fieldsOf(d['author'])['subject']),
  ]);
  return [
    `serves manifest ${textOf(version)}; the file alone is ${textOf(base)}`,
    ...tableOf(['object', 'state', 'over the file'], published),
    ...tableOf(['version', 'action', 'at', 'by', 'manifest'], versions),
    ...(truncated === true ? ['there are older versions'] : []),
    ...tableOf(['draft', 'state', 'at', 'by'], kept),
  ].join('\n');
}

function tableOf(names: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  return ['', formatTable(textColumns(names), rows)];
}

function oneText({ kind, draft, version }: ReplyFields): string {
  if (kind === 'draft') {
    const { id, state, text } = fieldsOf(draft);
    // The text is printed as sent, but without control characters.
    const lines = String(text ?? '')
      .split('\n')
      .map(textOf);
    return [`${textOf(id)}: ${textOf(state)}`, '', ...lines].join('\n').trimEnd();
  }
  const { number, action, at, author, restores, ...rest } = fieldsOf(version);
  const of = restores === null || restores === undefined ? '' : ` to ${textOf(restores)}`;
  const head = `version ${textOf(number)}: ${textOf(action)}${of} at ${textOf(at)} by ${textOf(fieldsOf(author)['subject'])}`;
  return [head, ...differenceLines(rest)].join('\n');
}
