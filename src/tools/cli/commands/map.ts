import type { Command } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { getDocument } from '../client.js';
import { type Fields, membersOf, textOf } from '../fields.js';
import { print } from '../output.js';
import { bodyOf } from '../reply.js';

interface MapFlags extends AskFlags {
  readonly full?: true;
  readonly json?: true;
}

const HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status. --full takes an admin role in the token.

Examples:
  $ osl map --subject user:analyst
  $ osl map --json --subject user:analyst`;

export function addMap(program: Command): void {
  const command = program.command('map');
  addAskOptions(command)
    .option('--full', 'all of it, not only what the grants show')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runMap);
}

async function runMap(flags: MapFlags): Promise<void> {
  const { url, token } = await visitor(flags);
  const reply = await getDocument(url, `/osl/domain-map${flags.full ? '' : '?governed=true'}`, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(drawn(body));
}

/** `package (path) : name, version, …`, then `credit: person.id — package.path`. */
function drawn(map: Fields): string {
  const nodes = membersOf(map['nodes']).map((node) => {
    const attributes = membersOf(node['attributes']);
    const named = (role: (r: unknown) => boolean): string =>
      attributes
        .filter((a) => role(a['role']))
        .map((a) => textOf(a['name']))
        .join(', ');
    if (node['kind'] !== 'entity') return `${textOf(node['kind'])} ${textOf(node['name'])}`;
    const metrics = named((r) => r === 'metric');
    const rest = named((r) => r !== 'pk' && r !== 'metric');
    return `entity ${textOf(node['name'])} (${named((r) => r === 'pk')}) ${rest}${metrics === '' ? '' : ` | ${metrics}`}`;
  });
  const edges = membersOf(map['edges']).map((edge) => {
    const end = (side: 'source' | 'target'): string =>
      `${textOf(edge[side]).replace(/^entity:/, '')}.${textOf(edge[`${side}_attr`])}`;
    return `link ${textOf(edge['label'])} (${textOf(edge['kind'])}) ${end('source')} - ${end('target')}`;
  });
  return [...nodes, ...edges].join('\n');
}
