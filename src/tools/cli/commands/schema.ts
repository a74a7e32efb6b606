import type { Command } from 'commander';
import { type AskFlags, addAskOptions, visitor } from '../ask.js';
import { getDocument } from '../client.js';
import { EXIT, Failure } from '../exit.js';
import { type Fields, fieldsOf, listOf, membersOf, textOf } from '../fields.js';
import { print, terminalWidth } from '../output.js';
import { bodyOf } from '../reply.js';
import { formatTable, textColumns } from '../table.js';

interface SchemaFlags extends AskFlags {
  readonly full?: true;
  readonly json?: true;
}

const HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status. --full takes an admin role in the token: a minted
one claims those that the policy gives the subject.

Examples:
  $ osl schema --subject user:analyst
  $ osl schema package
  $ osl schema --full --json --subject user:admin`;

export function addSchema(program: Command): void {
  const command = program
    .command('schema')
    .argument('[name]', 'only this entity, facet or metric, with its columns and examples');
  addAskOptions(command)
    .option('--full', 'all of it, not only what the grants show')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runSchema);
}

async function runSchema(name: string | undefined, flags: SchemaFlags): Promise<void> {
  const { url, token } = await visitor(flags, flags.full ? 'admin' : 'reader');
  const reply = await getDocument(url, `/osl/schema${flags.full ? '' : '?governed=true'}`, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(name === undefined ? overview(body) : details(body, name));
}

const LISTS = ['entities', 'facets', 'metrics', 'relationships'] as const;

/** One line for each thing that can be named. */
function overview(schema: Fields): string {
  const rows = LISTS.flatMap((list) =>
    membersOf(schema[list]).map((one) => [KIND[list], textOf(one['name']), textOf(one['description'])]),
  );
  return table(['kind', 'name', 'description'], rows);
}

const KIND = {
  entities: 'entity',
  facets: 'facet',
  metrics: 'metric',
  relationships: 'relationship',
} as const;

function details(schema: Fields, name: string): string {
  const found = LISTS.flatMap((list) => membersOf(schema[list])).filter((one) =>
    [one['name'], one['fqn']].includes(name),
  );
  if (found.length === 0) throw new Failure(EXIT.failed, `error: the schema shows nothing named \`${name}\``);
  return found.map(described).join('\n\n');
}

function described(one: Fields): string {
  const columns = membersOf(one['columns']).map((c) => [
    textOf(c['name']),
    textOf(c['type']),
    c['masked'] === 'none' ? '' : textOf(c['masked']),
    textOf(c['description']),
  ]);
  const keys = listOf(one['entity_key_columns']);
  const words = listOf(one['synonyms']);
  return [
    textOf(one['fqn'] ?? one['name']),
    textOf(one['description']),
    ...(one['deprecated'] == null ? [] : [`deprecated: ${textOf(one['deprecated'])}`]),
    ...formatLines(one['format']),
    ...(columns.length === 0 ? [] : ['', table(['column', 'type', 'masked', 'description'], columns), '']),
    ...(one['indexed_at'] == null ? [] : [`texts read: ${textOf(one['indexed_at'])}`]),
    ...(keys.length === 0 ? [] : [`joins on: ${keys.join(', ')}`]),
    ...(words.length === 0 ? [] : [`also called: ${words.join(', ')}`]),
    ...listOf(one['examples']).map((text) => `  ${text}`),
  ]
    .filter((line, i) => i === 0 || line !== '' || columns.length > 0)
    .join('\n');
}

/** How the figures of a metric are meant to be shown. */
function formatLines(format: unknown): readonly string[] {
  if (format == null) return [];
  const { kind, currency, unit, decimals } = fieldsOf(format);
  const words = [textOf(kind), textOf(currency ?? unit)].filter((w) => w !== '').join(' ');
  return [`shown as: ${words}${decimals == null ? '' : `, ${textOf(decimals)} decimals`}`];
}

function table(names: readonly string[], rows: readonly (readonly string[])[]): string {
  return formatTable(textColumns(names), rows, terminalWidth());
}
