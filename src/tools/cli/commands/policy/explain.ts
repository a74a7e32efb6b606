import { type Command, Option } from 'commander';
import { splitList } from '../../../../service/settings/types.js';
import { addAskOptions } from '../../ask.js';

const HELP = `
Who asks for it needs an admin role: a minted token claims those that the policy gives --subject. The server answers by
what it serves now, and records that it was asked. With --row it looks whether that row is there for the subject.

Examples:
  $ osl policy explain --as user:analyst --object osl.entities.person.email --subject user:admin
  $ osl policy explain --as-chain user:counsel,agent:scout --object package --row node_modules/ajv --subject user:admin`;

export function addExplainAccess(policy: Command): void {
  addAskOptions(
    policy
      .command('explain')
      .description('say how somebody sees an object, and which rules decide')
      .requiredOption('--object <name>', 'an entity, bridge or facet, or a column: osl.entities.person.email')
      .addOption(new Option('--as <subject>', 'who is supposed to ask').conflicts('asChain'))
      .addOption(new Option('--as-chain <names>', 'for whom whom: root first').argParser(splitList))
      .addOption(new Option('--as-roles <names>', 'data roles that the token claims').argParser(splitList))
      .option('--at <moment>', 'as of a moment (RFC 3339); default: now')
      .addOption(new Option('--on <surface>', 'asked by way of it').choices(['rest', 'wire', 'mcp']))
      .option('--from <address>', 'asked from this address')
      .option('--for <purpose>', 'what it is asked for')
      .option('--row <value...>', 'the primary key of one row'),
  )
    .option('--json', "the server's answer as it is")
    .addHelpText('after', HELP)
    .action(async (flags) => (await import('../../policy/explain.js')).runExplainAccess(flags));
}
