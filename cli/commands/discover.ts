import { type Command, Option } from 'commander';
import type { Survey, SystemEngine } from '../../src/engine/index.js';
import type { AdoptionCandidate, UpstreamSchema } from '../../src/model/discovery/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { addClientOptions, type ClientFlags, serverAccess } from '../ask.js';
import { postDocument } from '../client.js';
import { diagnosticLines } from '../difference.js';
import { failure, usage } from '../exit.js';
import { dataDirOption, manifestOption, type ServerFlags, settingsOfModel } from '../flags.js';
import { fieldsOf, listOf, note, print, printJson, terminalWidth, visible } from '../output.js';
import { bodyOf, unreadable } from '../reply.js';
import { formatTable } from '../table.js';

interface DiscoverFlags extends ServerFlags {
  readonly url?: string;
}

const HELP = `
Reads what the databases of a manifest declare, and no row. With a candidate's id it prints a fragment of a manifest
that would adopt it, and on standard error what a person has to decide; sensitive columns are never guessed.
--url reads a Postgres for which there is no manifest yet; a superuser is refused, as by the gateway. An embedded
database must not be in use: ask its server, GET /osl/candidates.

Examples:
  $ osl discover
  $ osl discover db.public.orders > orders.yaml    # for POST /osl/validate, or to copy from
  $ osl discover --url "$DATABASE_URL" --json | jq '.[] | select(.proposal == "bridge").id'`;

export function addDiscover(program: Command): void {
  program
    .command('discover')
    .argument('[candidate]', 'connector.schema.table, to draft')
    .addOption(manifestOption().conflicts('url'))
    .addOption(dataDirOption())
    .option('--url <url>', 'a Postgres, called `db` in drafts, without a manifest')
    .option('--json', 'candidates, or the draft, as JSON on standard output')
    .addHelpText('after', HELP)
    .action(runDiscover);
}

interface DiscoveredTables {
  readonly candidates: readonly AdoptionCandidate[];
  readonly manifest: Manifest;
}

async function runDiscover(id: string | undefined, flags: DiscoverFlags): Promise<void> {
  const found = flags.url === undefined ? await ofManifest(flags) : await ofUrl(flags.url);
  if (id !== undefined) return draft(id, found, flags);
  const { candidates } = found;
  if (flags.json) return printJson(candidates);
  const names = ['candidate', 'proposal', 'key', 'rows', 'confidence'];
  const rows = candidates.map((c) => [
    visible(c.id),
    c.proposal,
    visible(c.key.join(', ')),
    c.row_estimate === null ? '' : `${c.row_estimate}`,
    c.confidence.toFixed(2),
  ]);
  print(formatTable(names, rows, terminalWidth()));
}

async function draft(
  id: string,
  { candidates, manifest }: DiscoveredTables,
  flags: DiscoverFlags,
): Promise<void> {
  const { suggestRelation } = await import('../../src/model/authoring/index.js');
  const candidate = candidates.find((c) => c.id === id);
  if (candidate === undefined) throw failure(`\`${visible(id)}\` is not a candidate`);
  const { fragment, diagnostics, notes } = suggestRelation(candidate, { manifest, snapshot: null });
  if (flags.json) return printJson({ fragment, diagnostics, notes });
  for (const text of notes) note(visible(`note: ${text}`));
  for (const d of diagnostics) note(visible(`${d.severity} ${d.code} ${d.path}: ${d.message}`));
  print(fragment.yaml.trimEnd());
}

async function ofManifest(flags: DiscoverFlags): Promise<DiscoveredTables> {
  const settings = settingsOfModel(flags);
  const { loadManifest } = await import('../../src/model/manifest/index.js');
  const { openEngines } = await import('../../src/service/engines.js');
  const { operatorLog } = await import('../log.js');
  const manifest = await loadManifest(settings.manifestFile);
  const { databases, close } = await openEngines(manifest, settings, operatorLog());
  try {
    const surveys = await surveysOf(manifest);
    try {
      const doors = [...databases].map(
        ([name, { system }]) => [name, surveys.get(name)?.system ?? system] as const,
      );
      return { manifest, candidates: await candidatesOf(new Map(doors), manifest) };
    } finally {
      for (const survey of surveys.values()) survey.close();
    }
  } finally {
    await close();
  }
}

/** Surveys the databases without system credentials over their ordinary connection, which may also read the catalog. */
async function surveysOf({ connectors }: Manifest): Promise<ReadonlyMap<string, Survey>> {
  const { surveyPostgres } = await import('../../src/engine/index.js');
  const { urlVariable } = await import('../../src/model/manifest/index.js');
  const { connectorUrl } = await import('../../src/service/connector-url.js');
  const surveys = new Map<string, Survey>();
  for (const connector of connectors.values()) {
    const { name, kind } = connector;
    const variable = urlVariable(connector);
    if (kind === 'pglite' || (await connectorUrl(process.env, `${variable}_SYSTEM`)) !== null) continue;
    const url = await connectorUrl(process.env, variable);
    if (url !== null) surveys.set(name, await surveyPostgres(url));
  }
  return surveys;
}

const NO_MANIFEST = `
version: 1
connectors: { db: { kind: postgres, url_env: DATABASE_URL, tables: {} } }
entities: {}`;

async function ofUrl(url: string): Promise<DiscoveredTables> {
  const { ready } = await import('osl-compiler');
  const { parseManifest } = await import('../../src/model/manifest/index.js');
  await ready();
  const manifest = parseManifest(NO_MANIFEST, 'none');
  return withPostgres(url, async (system) => ({
    manifest,
    candidates: await candidatesOf(new Map([['db', system]]), manifest),
  }));
}

/** Runs `work` with the database of a URL. @throws Failure if it cannot be reached, or the gateway refuses its role */
export async function withPostgres<T>(url: string, work: (system: SystemEngine) => Promise<T>): Promise<T> {
  const { openEngine } = await import('../../src/engine/index.js');
  const { describeConnectFault, withoutPassword } = await import('../../src/service/connector-url.js');
  const engine = await openEngine({ kind: 'postgres', url, systemUrl: url, poolSize: 1 }).catch(
    (error: unknown) => {
      throw usage(`${withoutPassword(url)}: ${describeConnectFault(error)}`);
    },
  );
  try {
    return await work(engine.system);
  } finally {
    await engine.close();
  }
}

async function candidatesOf(
  doors: ReadonlyMap<string, SystemEngine>,
  manifest: Manifest,
): Promise<readonly AdoptionCandidate[]> {
  const { candidatesInAll, MAX_RELATIONS, readUpstream } = await import('../../src/model/discovery/index.js');
  const read = new Map<string, UpstreamSchema>();
  for (const [connector, system] of doors) {
    const upstream = await readUpstream(system);
    read.set(connector, upstream);
    if (upstream.truncated)
      note(`warning: of ${connector} only the first ${MAX_RELATIONS} relations were read`);
  }
  return candidatesInAll(read, manifest);
}

interface SuggestFlags extends ClientFlags {
  readonly term?: true;
}

const SUGGEST_HELP = `
The running server drafts it; nothing is stored. What a person has to decide, and what stands against the draft as it
is, goes to standard error. Sensitive columns are never guessed. Takes an admin role, as \`osl publish\` does.

Examples:
  $ osl suggest db.public.orders --subject user:admin > orders.yaml
  $ osl suggest --term supplier --subject user:admin`;

export function addSuggest(program: Command): void {
  const command = program.command('suggest').argument('<name>', 'connector.schema.table, or a word');
  addClientOptions(command)
    .addOption(new Option('--term', 'the name is a business word'))
    .option('--json', "the server's answer as it is")
    .addHelpText('after', SUGGEST_HELP)
    .action(runSuggest);
}

async function runSuggest(name: string, flags: SuggestFlags): Promise<void> {
  const { url, token } = await serverAccess(flags, 'admin');
  const reply = await postDocument(url, '/osl/suggest', token, flags.term ? { term: name } : { table: name });
  const body = bodyOf(reply, flags.json);
  if (flags.json) return;
  for (const text of listOf(body['notes'])) note(`note: ${text}`);
  for (const line of diagnosticLines(body['diagnostics'], 'draft')) note(line);
  const { yaml } = fieldsOf(body['fragment']);
  if (typeof yaml !== 'string') throw unreadable();
  print(yaml.trimEnd());
}
