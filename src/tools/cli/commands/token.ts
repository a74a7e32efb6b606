import type { Command } from 'commander';
import { splitList } from '../../../service/settings/types.js';
import { EXIT } from '../exit.js';
import { dataDirOption, policyOption, settingsOf, wholeNumber } from '../flags.js';
import { note, print, printJson } from '../output.js';
import { addRevoke } from './token/revoke.js';
import { addRevoked } from './token/revoked.js';

interface TokenFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly aclRoles?: readonly string[];
  readonly roles?: readonly string[];
  readonly ttl: number;
  readonly dataDir?: string;
  readonly policy?: string;
  readonly json?: true;
}

const HELP = `
Prints the token and nothing else. It is signed with the key in the data directory, and for development: whoever can read
that key may be anybody. A server that has issuers takes none, unless OSL_LOCAL_TOKENS=on; there, osl login.

Examples:
  $ osl token --subject user:analyst
  $ osl token --chain user:counsel,agent:scout          # agent:scout acts for user:counsel
  $ osl token revoke --session 1048577 --subject user:admin   # whoever signed it
  $ curl -H "Authorization: Bearer $(osl token --subject user:analyst)" …`;

export function addToken(program: Command): void {
  const command = program
    .command('token')
    .enablePositionalOptions()
    .option('--subject <name>', 'who it is for; the last of the chain')
    .option('--chain <names>', 'who acts for whom, root first (default: the subject alone)', splitList)
    .option('--acl-roles <names>', "data roles (default: the subject's ceiling in the policy)", splitList)
    .option('--roles <names>', 'admin roles, such as TENANT_ADMIN (default: none)', splitList)
    .option('--ttl <seconds>', 'lifetime, at most 300', wholeNumber(1, 300), 300)
    .addOption(dataDirOption())
    .addOption(policyOption())
    .option('--json', 'the token with its claims, as JSON')
    .addHelpText('after', HELP)
    .action(runToken);
  addRevoke(command);
  addRevoked(command);
}

async function runToken(flags: TokenFlags): Promise<void> {
  const { openIssuer } = await import('../issuer.js');
  const issuer = await openIssuer(settingsOf(flags), settingsOfPolicy(flags));
  const issued = await issuer.mint(flags);
  if (issuer.besideIssuers)
    note('warning: this server has issuers: tokens of its own key are for development (OSL_LOCAL_TOKENS=on)');
  for (const role of issued.unknownRoles) note(`warning: the policy declares no role \`${role}\``);
  const { token, subject, chain, aclRoles } = issued;
  if (flags.json) {
    printJson({ token, subject, chain, acl_roles: aclRoles, roles: flags.roles ?? [], ttl: flags.ttl });
  } else {
    print(token);
  }
  process.exitCode = EXIT.ok;
}

/** The policy file that a flag names, absolute. */
function settingsOfPolicy(flags: TokenFlags): string | null {
  return flags.policy === undefined ? null : settingsOf(flags).policyFile;
}
