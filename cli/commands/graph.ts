import type { Command } from 'commander';
import { cellOf } from '../answer.js';
import { addClientOptions, type ClientFlags, serverAccess } from '../ask.js';
import { getDocument, postDocument } from '../client.js';
import { failure } from '../exit.js';
import { wholeNumber } from '../flags.js';
import {
  fieldsOf,
  listOf,
  membersOf,
  note,
  print,
  type ReplyFields,
  terminalWidth,
  textOf,
} from '../output.js';
import { bodyOf, unreadable } from '../reply.js';
import { formatTable, rowCount } from '../table.js';

interface MapFlags extends ClientFlags {
  readonly full?: true;
}

const HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status. --full takes an admin role in the token.

Examples:
  $ osl map --subject user:analyst
  $ osl map --json --subject user:analyst`;

export function addMap(program: Command): void {
  const command = program.command('map');
  addClientOptions(command)
    .option('--full', 'all of it, not only what the grants show')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(runMap);
}

async function runMap(flags: MapFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, flags.full ? 'admin' : 'reader');
  const reply = await getDocument(url, `/osl/domain-map${flags.full ? '' : '?governed=true'}`, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(mapText(body));
}

/**
 * Formats the map as lines such as `entity package (path) name, version` and `link credit (…) person.id -
 * package.path`.
 */
function mapText(map: ReplyFields): string {
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

const RESOLVE_HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status; 1 too where nothing is found.

Example:
  $ osl resolve footprint --subject user:analyst`;

export function addResolve(program: Command): void {
  const command = program.command('resolve').argument('<term>', 'the word, or several');
  addClientOptions(command)
    .option('--json', "the server's answer as it is")
    .addHelpText('after', RESOLVE_HELP)
    .action(runResolve);
}

async function runResolve(term: string, flags: ClientFlags): Promise<void> {
  const { url, token } = await serverAccess(flags);
  const reply = await getDocument(url, `/osl/schema/resolve?term=${encodeURIComponent(term)}`, token);
  const matches = membersOf(bodyOf(reply, flags.json)['matches']);
  if (matches.length === 0) throw failure('nothing of that name or meaning is to be seen');
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

interface SchemaFlags extends ClientFlags {
  readonly full?: true;
}

const SCHEMA_HELP = `
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
  addClientOptions(command)
    .option('--full', 'all of it, not only what the grants show')
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SCHEMA_HELP)
    .action(runSchema);
}

async function runSchema(name: string | undefined, flags: SchemaFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, flags.full ? 'admin' : 'reader');
  const reply = await getDocument(url, `/osl/schema${flags.full ? '' : '?governed=true'}`, token);
  const body = bodyOf(reply, flags.json);
  if (!flags.json) print(name === undefined ? overview(body) : details(body, name));
}

const LISTS = ['entities', 'facets', 'metrics', 'relationships'] as const;

function overview(schema: ReplyFields): string {
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

function details(schema: ReplyFields, name: string): string {
  const found = LISTS.flatMap((list) => membersOf(schema[list])).filter((one) =>
    [one['name'], one['fqn']].includes(name),
  );
  if (found.length === 0) throw failure(`the schema shows nothing named \`${name}\``);
  return found.map(described).join('\n\n');
}

function described(one: ReplyFields): string {
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

function formatLines(format: unknown): readonly string[] {
  if (format == null) return [];
  const { kind, currency, unit, decimals } = fieldsOf(format);
  const words = [textOf(kind), textOf(currency ?? unit)].filter((w) => w !== '').join(' ');
  return [`shown as: ${words}${decimals == null ? '' : `, ${textOf(decimals)} decimals`}`];
}

function table(names: readonly string[], rows: readonly (readonly string[])[]): string {
  return formatTable(names, rows, terminalWidth());
}

interface SampleFlags extends ClientFlags {
  readonly facet?: true;
  readonly limit?: number;
}

const SAMPLE_HELP = `
Who asks is settled as for \`osl query\`, and so is the exit status. What may not be seen is shown as [redacted].

Examples:
  $ osl sample person
  $ osl sample --facet readme --limit 2 --subject user:analyst`;

export function addSample(program: Command): void {
  const command = program.command('sample').argument('<name>', 'the entity, or with --facet the facet');
  addClientOptions(command)
    .option('--facet', 'the name is that of a facet')
    .option('--limit <rows>', '1 to 100; default 8, of a facet 5', wholeNumber(1, 100))
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SAMPLE_HELP)
    .action(runSample);
}

async function runSample(name: string, flags: SampleFlags): Promise<void> {
  const { url, token } = await serverAccess(flags);
  const kind = flags.facet ? 'facet' : 'table';
  const limit = flags.limit === undefined ? {} : { limit: flags.limit };
  const reply = await postDocument(url, '/osl/sample', token, { kind, name, ...limit });
  const body = bodyOf(reply, flags.json, name);
  if (!flags.json) printSample(body);
}

function printSample(body: ReplyFields): void {
  const rows = body['rows'];
  if (!Array.isArray(rows)) throw unreadable();
  const [first] = rows;
  const names = Object.keys(first ?? {});
  const cells = rows.map((row) => names.map((name) => cellOf(row[name])));
  const table = formatTable(names, cells, terminalWidth());
  print([table, rowCount(rows.length)].filter((text) => text !== '').join('\n'));
  for (const list of ['redacted_columns', 'redacted_fields']) {
    const masked = body[list];
    if (Array.isArray(masked) && masked.length > 0) note(`masked: ${masked.join(', ')}`);
  }
}
