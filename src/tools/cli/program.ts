import { Command, Help } from 'commander';
import { version } from '../../base/package-root.js';
import { LISTED, type ListedCommand } from './listed.js';

const HELP = `
Exit status: 0 done, 1 refused or failed, 2 usage or configuration, 3 no server answers; audit verify has more.
With --json an error is one JSON object on standard error: {"error": {"message", "hint", "exit", …}}. OSL_DEBUG=1
shows where an error came from.

Examples:
  $ osl demo
  $ osl query --subject user:analyst "select name, version from osl.entities.package limit 5"`;

/** Each command, loaded when it is asked for: to load them all takes longer than most of them do. */
const COMMANDS: ReadonlyMap<string, () => Promise<(root: Command) => void>> = new Map([
  ['serve', async () => (await import('./commands/serve.js')).addServe],
  ['demo', async () => (await import('./commands/demo.js')).addDemo],
  ['init', async () => (await import('./commands/init.js')).addInit],
  ['query', async () => (await import('./commands/query.js')).addQuery],
  ['explain', async () => (await import('./commands/explain.js')).addExplain],
  ['why', async () => (await import('./commands/why.js')).addWhy],
  ['sample', async () => (await import('./commands/sample.js')).addSample],
  ['schema', async () => (await import('./commands/schema.js')).addSchema],
  ['map', async () => (await import('./commands/map.js')).addMap],
  ['resolve', async () => (await import('./commands/resolve.js')).addResolve],
  ['psql', async () => (await import('./commands/psql.js')).addPsql],
  ['mcp', async () => (await import('./commands/mcp.js')).addMcp],
  ['proxy', async () => (await import('./commands/proxy.js')).addProxy],
  ['lsp', async () => (await import('./commands/lsp.js')).addLsp],
  ['login', async () => (await import('./commands/login.js')).addLogin],
  ['logout', async () => (await import('./commands/logout.js')).addLogout],
  ['token', async () => (await import('./commands/token.js')).addToken],
  ['scram', async () => (await import('./commands/scram.js')).addScram],
  ['validate', async () => (await import('./commands/validate.js')).addValidate],
  ['keys', async () => (await import('./commands/keys.js')).addKeys],
  ['policy', async () => (await import('./commands/policy.js')).addPolicy],
  ['diff', async () => (await import('./commands/diff.js')).addDiff],
  ['discover', async () => (await import('./commands/discover.js')).addDiscover],
  ['suggest', async () => (await import('./commands/suggest.js')).addSuggest],
  ['publish', async () => (await import('./commands/publish.js')).addPublish],
  ['objects', async () => (await import('./commands/objects.js')).addObjects],
  ['import', async () => (await import('./commands/import.js')).addImport],
  ['export', async () => (await import('./commands/export.js')).addExport],
  ['index', async () => (await import('./commands/index-content.js')).addIndex],
  ['audit', async () => (await import('./commands/audit.js')).addAudit],
  ['backup', async () => (await import('./commands/backup.js')).addBackup],
  ['restore', async () => (await import('./commands/backup.js')).addRestore],
  ['lineage', async () => (await import('./commands/lineage.js')).addLineage],
  ['control', async () => (await import('./commands/control.js')).addControl],
  ['rollup', async () => (await import('./commands/rollup.js')).addRollup],
  ['row-security', async () => (await import('./commands/row-security.js')).addRowSecurity],
  ['ps', async () => (await import('./commands/ps.js')).addPs],
  ['kill', async () => (await import('./commands/kill.js')).addKill],
  ['top', async () => (await import('./commands/top.js')).addTop],
  ['config', async () => (await import('./commands/config.js')).addConfig],
  ['doctor', async () => (await import('./commands/doctor.js')).addDoctor],
  ['errors', async () => (await import('./commands/errors.js')).addErrors],
  ['completion', async () => (await import('./commands/completion.js')).addCompletion],
]);

/** First words that ask for the list of commands, or for less. */
const LISTING: ReadonlySet<string> = new Set(['', '-h', '--help', '-V', '--version']);

/** `root` with names of commands and nothing behind them. */
function listing(root: Command, listed: readonly ListedCommand[]): Command {
  const terms = new Map(listed.map(({ name, term }) => [name, term]));
  const { subcommandTerm } = new Help();
  root.configureHelp({
    subcommandTerm: (command) => terms.get(command.name()) ?? subcommandTerm(command),
  });
  for (const { name, description } of listed) root.addCommand(new Command(name).description(description));
  return root;
}

/**
 * The command line: every command with its arguments and flags.
 *
 * @param formatError how a fault of the command line is written; null: as commander does
 * @param asked the first word of it; where that is a command, it is the only one loaded
 */
export async function program(
  formatError: ((text: string) => string) | null = null,
  asked = '',
): Promise<Command> {
  const root = new Command('osl')
    .configureOutput(formatError === null ? {} : { outputError: (text, write) => write(formatError(text)) })
    .description('OSL Gateway: governed questions about your data')
    .version(version(), '-V, --version')
    .addHelpText('after', HELP)
    .enablePositionalOptions()
    .exitOverride();
  if (LISTED !== null && LISTING.has(asked)) return listing(root, LISTED);
  // The script for a shell has all of them.
  const one = asked === 'completion' ? undefined : COMMANDS.get(asked);
  const loading = one === undefined ? [...COMMANDS.values()].map((load) => load()) : [one()];
  for (const add of await Promise.all(loading)) add(root);
  return root;
}
