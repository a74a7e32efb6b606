import { Command, Help } from 'commander';
import { version } from '../src/base/package-root.js';

const HELP = `
Run \`osl COMMAND --help\` for its options. Settings: \`osl config list\`.

Exit status: 0 done, 1 refused or failed, 2 usage or configuration, 3 no server answers; \`osl audit verify\` has more. With
--json an error is one JSON object on standard error: {"error": {"message", "hint", "exit", …}}. OSL_DEBUG=1 shows where
an error was raised.

Examples:
  $ osl demo
  $ osl query --subject user:analyst "select name, version from osl.entities.package limit 5"`;

type Load = () => Promise<(root: Command) => void>;

/**
 * Commands by topic, with their descriptions. Each command is loaded on demand, because loading all of them is slow.
 */
// biome-ignore format: one command a line
const TOPICS: readonly (readonly [heading: string, commands: readonly (readonly [name: string, description: string, load: Load])[]])[] = [
  ['Start:', [
    ['demo', 'start a gateway with demo data; needs no database', async () => (await import('./commands/demo.js')).addDemo],
    ['init', 'create a manifest and a policy from your database', async () => (await import('./commands/init.js')).addInit],
    ['serve', 'start the gateway', async () => (await import('./commands/serve.js')).addServe],
    ['config', 'list and check settings', async () => (await import('./commands/config.js')).addConfig],
    ['doctor', 'check files, ports, certificates and databases', async () => (await import('./commands/config.js')).addDoctor],
  ]],
  ['Query:', [
    ['query', 'run a query in OSL-SQL, SQL or metrics', async () => (await import('./commands/query.js')).addQuery],
    ['explain', 'show how a query would be answered', async () => (await import('./commands/explain.js')).addExplain],
    ['why', 'explain why something is masked or hidden; request access', async () => (await import('./commands/explain.js')).addWhy],
    ['approvals', 'list approval requests; approve or decline them', async () => (await import('./commands/approvals.js')).addApprovals],
    ['schema', 'list entities, columns and metrics', async () => (await import('./commands/graph.js')).addSchema],
    ['map', 'show entities and metrics with their links', async () => (await import('./commands/graph.js')).addMap],
    ['sample', 'show some rows of an entity, or passages of a facet', async () => (await import('./commands/graph.js')).addSample],
    ['resolve', 'find the columns and metrics that a business term means', async () => (await import('./commands/graph.js')).addResolve],
    ['login', 'sign in at a server with your account', async () => (await import('./commands/login.js')).addLogin],
    ['logout', 'sign out', async () => (await import('./commands/login.js')).addLogout],
  ]],
  ['Connect:', [
    ['psql', 'open psql as a subject', async () => (await import('./commands/psql.js')).addPsql],
    ['proxy', 'open a local Postgres port for BI tools, with fresh tokens', async () => (await import('./commands/proxy.js')).addProxy],
    ['mcp', 'serve MCP tools to an agent, on standard input and output', async () => (await import('./commands/stdio.js')).addMcp],
    ['lsp', 'serve an editor: manifests, policies and .osql files', async () => (await import('./commands/stdio.js')).addLsp],
    ['token', 'create a development token; revoke tokens', async () => (await import('./commands/token.js')).addToken],
    ['scram', 'create the password verifier of a service account', async () => (await import('./commands/token.js')).addScram],
  ]],
  ['Model and policy:', [
    ['validate', 'check a manifest and its policy', async () => (await import('./commands/validate.js')).addValidate],
    ['diff', 'show what a changed manifest or policy changes, and for whom', async () => (await import('./commands/validate.js')).addDiff],
    ['policy', 'test a policy; show who sees what; share policies', async () => (await import('./commands/policy.js')).addPolicy],
    ['discover', 'list tables and columns that the manifest does not have', async () => (await import('./commands/discover.js')).addDiscover],
    ['suggest', 'draft a manifest fragment for a table or a term', async () => (await import('./commands/discover.js')).addSuggest],
    ['publish', 'publish a manifest fragment, or change a published one', async () => (await import('./commands/publish.js')).addPublish],
    ['objects', 'list published objects, their history and drafts', async () => (await import('./commands/publish.js')).addObjects],
    ['import', 'convert a model of another format to a manifest', async () => (await import('./commands/import.js')).addImport],
    ['export', 'convert the manifest to another format', async () => (await import('./commands/import.js')).addExport],
    ['rls', 'find faults in the row security of any Postgres', async () => (await import('./commands/rls.js')).addRls],
    ['row-security', "compare, write or drop the database's own row security", async () => (await import('./commands/rls.js')).addRowSecurity],
  ]],
  ['Operate:', [
    ['receipt', 'check the receipt of an answer', async () => (await import('./commands/audit.js')).addReceipt],
    ['audit', 'verify, read and prove the audit log', async () => (await import('./commands/audit.js')).addAudit],
    ['ps', 'list sessions and running requests', async () => (await import('./commands/sessions.js')).addPs],
    ['kill', 'end a session or a request', async () => (await import('./commands/sessions.js')).addKill],
    ['top', 'watch sessions, pools and processes', async () => (await import('./commands/sessions.js')).addTop],
    ['index', 'update the stores of text facets', async () => (await import('./commands/content.js')).addIndex],
    ['rollup', 'build pre-aggregations; list their state', async () => (await import('./commands/content.js')).addRollup],
    ['lineage', 'show the lineage of a query; list undelivered events', async () => (await import('./commands/lineage.js')).addLineage],
    ['backup', 'copy the data directory into one file', async () => (await import('./commands/backup.js')).addBackup],
    ['restore', 'make a data directory from a backup', async () => (await import('./commands/backup.js')).addRestore],
    ['control', 'set up the database that several gateways share', async () => (await import('./commands/control.js')).addControl],
    ['keys', 'make and compare the keys that several gateways share', async () => (await import('./commands/control.js')).addKeys],
  ]],
  ['Help:', [
    ['errors', 'explain an error code, or list them all', async () => (await import('./commands/errors.js')).addErrors],
    ['completion', 'print a completion script for a shell', async () => (await import('./completion.js')).addCompletion],
  ]],
];

const LISTING: ReadonlySet<string> = new Set(['', '-h', '--help', '-V', '--version']);

/**
 * Builds the command line with the arguments and flags of its commands.
 *
 * @param formatError formats errors of the command line; null for commander's format
 * @param asked first argument. Only this command is loaded, and none if it asks for the list of commands or the
 * version. All are loaded if it is null or not a command
 */
export async function program(
  formatError: ((text: string) => string) | null = null,
  asked: string | null = null,
): Promise<Command> {
  const { subcommandTerm } = new Help();
  const root: Command = new Command('osl')
    .configureOutput(formatError === null ? {} : { outputError: (text, write) => write(formatError(text)) })
    .configureHelp({
      subcommandTerm: (command) => (command.parent === root ? command.name() : subcommandTerm(command)),
    })
    .description('OSL Gateway: everyone queries your Postgres, and sees only what they may')
    .version(version(), '-V, --version')
    .addHelpText('after', HELP)
    .addHelpCommand(
      new Command('help').argument('[command]').description('show the help of a command').helpGroup('Help:'),
    )
    .enablePositionalOptions()
    .exitOverride();
  const isListing = asked !== null && LISTING.has(asked);
  // The completion script needs all commands.
  const only = asked === 'completion' ? null : asked;
  const isKnown = TOPICS.some(([, commands]) => commands.some(([name]) => name === only));
  for (const [heading, commands] of TOPICS)
    for (const [name, description, load] of commands) {
      if (isListing) root.addCommand(new Command(name));
      else if (!isKnown || name === only) (await load())(root);
      root.commands
        .find((command) => command.name() === name)
        ?.description(description)
        .helpGroup(heading);
    }
  return root;
}
