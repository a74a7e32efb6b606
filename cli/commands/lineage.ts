import { type Command, Option } from 'commander';
import { splitList } from '../../src/service/settings/types.js';
import { dataDirOption, manifestOption, policyOption } from '../flags.js';

const LINEAGE_HELP = `
OSL_LINEAGE names the file that says who is told of lineage: docs/lineage.md.

Examples:
  $ osl lineage show --subject user:analyst "select name, email from osl.entities.person"
  $ osl lineage dead
  $ osl lineage replay --all`;

const SHOW_HELP = `
Compiles the question as the server would for that subject with all of its roles, from the two files alone, and says
which columns each output is made of and which decide about rows. It names what row filters look at, which \`osl explain\`
tells nobody: it is for whoever owns the files. Exit status: 0 shown, 1 the question is refused.

Examples:
  $ osl lineage show --subject user:analyst "select name, email from osl.entities.person"
  $ osl lineage show --subject user:analyst --json "select count(*) from osl.entities.package" | jq .fields`;

const LIST_HELP = `
Reads the outbox in the data directory, and may run beside the server. An event is listed once for each endpoint.

Example:
  $ osl lineage WHICH --json | jq -r '.[].id'`;

const REPLAY_HELP = `
The server of the data directory takes the request up within a second; where none runs, the next one does. An endpoint
that was turned off by a 410 takes part again. Events keep their id, so a receiver knows those it has.
Exit status: 0 asked, 1 there is no such dead letter.

Examples:
  $ osl lineage replay run_0c7e5f60-5a51-8f6a-9d6f-3f8a0b1c2d3e
  $ osl lineage replay --all --endpoint catalog`;

export function addLineage(program: Command): void {
  const lineage = program.command('lineage').addHelpText('after', LINEAGE_HELP);
  lineage
    .command('show')
    .description('show which columns the answer to a question comes from')
    .argument('[text]', 'the question; - or nothing reads standard input')
    .addOption(manifestOption())
    .addOption(policyOption())
    .option('--data-dir <dir>', 'with what was published by API to the server of this directory')
    .option('--subject <name>', 'who would ask')
    .addOption(new Option('--chain <names>', 'root to leaf, between commas, instead').argParser(splitList))
    .option('--sql', 'the text is raw SQL')
    .option('--json', 'as a columnLineage facet of OpenLineage')
    .addHelpText('after', SHOW_HELP)
    .action(async (text, flags) => (await import('../lineage.js')).runShow(text, flags));
  for (const [which, what] of [
    ['pending', 'list events that wait to be delivered'],
    ['dead', 'list events that were given up after seven attempts, or a 410'],
  ] as const) {
    lineage
      .command(which)
      .description(what)
      .addOption(dataDirOption())
      .option('--endpoint <name>', 'of this endpoint only')
      .option('--json', 'as JSON, with the events themselves')
      .addHelpText('after', LIST_HELP.replace('WHICH', which))
      .action(async (flags) => (await import('../lineage.js')).runList(which, flags));
  }
  lineage
    .command('replay')
    .description('send dead letters again')
    .argument('[id]', 'of one event')
    .addOption(dataDirOption())
    .option('--all', 'all of them')
    .option('--endpoint <name>', 'to this endpoint only')
    .option('--json', 'say as JSON what was asked for')
    .addHelpText('after', REPLAY_HELP)
    .action(async (id, flags) => (await import('../lineage.js')).runReplay(id, flags));
}
